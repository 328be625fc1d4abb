package prune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/size"
)

// Update says what becomes of the gradient of one parameter.
type Update struct {
	Param, Grad string
	Elems       int64 // of the parameter
	Parts       int64 // 0: not updated; 1: all of it; n: one part of n equal ones along Axis
	Axis        int
	GradBytes   int64
	SavedBytes  int64 // of forward values that only this gradient reads again
	Peak        int64 // with those chosen before; for one that is left out the least that was tried, 0 if it is too far from the loss
}

// Sparse is a sparse update: which gradients fit a budget.
type Sparse struct {
	Updates []Update // in the order in which they were considered
	Limit   int64    // bytes that are allowed
	Full    int64    // peak with all gradients
	Forward int64    // peak with none
	Peak    int64    // peak with those that are kept
}

// parts are the shares of a weight's channels that are tried, the largest first.
var parts = [...]int64{1, 2, 4, 8}

// Fit drops gradients until a training graph needs at most limit(full) bytes for activations and gradients at once, where
// full is what it needs with all of them. Bytes are counted as type liveness says. Gradients are the outputs that isGrad
// names, with their parameters.
//
// Which gradients stay is a matter of taste where nothing is known of the data. Fit keeps those that are cheap for what they
// change. Vectors come first, biases and factors of normalizations, from the loss to the input: their gradients need few
// bytes, and of biases no saved activations (Cai et al., TinyTL, 2020). Then weights, in the order of the bytes that each takes
// per number that it updates: those of the gradient, and of forward values that are kept for this gradient alone. A weight
// that does not fit is tried with a half, a quarter and an eighth of the channels of the activation that it is multiplied with
// (Lin et al., On-Device Training Under 256KB Memory, 2022); the gradient of the others is zero. As every layer that is
// reached costs activations, this is done for the last layers only, for several numbers of them, and the choice that
// updates most numbers is taken.
//
// The model must be pruned, its types inferred, and all sizes known.
func Fit(m *graph.Model, info *op.Info, limit func(full int64) int64, isGrad func(y *graph.Value) (param string, ok bool)) (*Sparse, error) {
	live, err := newLiveness(m.Graph)
	if err != nil {
		return nil, err
	}
	f := &fitter{live: live, info: info, drop: map[*graph.Value]bool{}}
	for _, y := range m.Graph.Outputs {
		if param, ok := isGrad(y); ok {
			f.all = append(f.all, &candidate{y: y, Update: Update{Param: param, Grad: y.Name, Elems: elements(y), GradBytes: live.whole(y)}})
		}
	}
	if len(f.all) == 0 {
		return nil, fmt.Errorf("the model computes no gradient of a parameter: outputs are %s", outputNames(m.Graph))
	}
	out := &Sparse{Full: live.peak(nil, nil)}
	out.Limit = limit(out.Full)
	for _, c := range f.all {
		f.drop[c.y] = true
	}
	if out.Forward = live.peak(f.drop, nil); out.Forward > out.Limit {
		return nil, fmt.Errorf("the outputs other than gradients alone need %s at once, more than the budget of %s", size.Bytes(out.Forward), size.Bytes(out.Limit))
	}
	f.measure()
	order := f.order()
	byDepth := slices.Clone(f.all)
	slices.SortStableFunc(byDepth, func(a, b *candidate) int { return cmp.Compare(a.depth, b.depth) })
	var best *fitter
	for i := range depths {
		near := byDepth[:(len(byDepth)*(i+1)+depths-1)/depths]
		if i > 0 && len(near) == (len(byDepth)*i+depths-1)/depths {
			continue
		}
		if t := f.trial(order, near[len(near)-1].depth, out.Limit); best == nil || t.updated >= best.updated {
			best = t
		}
	}
	out.Peak = out.Forward
	for _, c := range best.all {
		if c.Parts > 0 {
			out.Peak = c.Peak
		}
		out.Updates = append(out.Updates, c.Update)
	}
	return out, best.apply(m.Graph)
}

// depths is how many numbers of last layers are tried.
const depths = 8

// trial chooses among the gradients that are no farther from the loss than depth. It returns a fitter of its own.
func (f *fitter) trial(order []*candidate, depth int, limit int64) *fitter {
	t := &fitter{live: f.live, info: f.info, drop: maps.Clone(f.drop)}
	for _, c := range order {
		c := *c
		if c.depth <= depth {
			t.choose(&c, limit)
		}
		if c.Parts > 0 {
			t.updated += c.Elems / c.Parts
		}
		t.all = append(t.all, &c)
	}
	return t
}

// candidate is a gradient that may be kept.
type candidate struct {
	Update
	y     *graph.Value
	depth int // where its node stands: gradients near the loss come first
	cut   *cutting
}

// perElement compares candidates by bytes per number updated.
func perElement(a, b *candidate) int {
	return cmp.Compare(float64(a.GradBytes+a.SavedBytes)/float64(max(a.Elems, 1)), float64(b.GradBytes+b.SavedBytes)/float64(max(b.Elems, 1)))
}

type fitter struct {
	live *liveness
	info *op.Info
	all  []*candidate
	drop map[*graph.Value]bool
	cuts []*cutting

	updated int64 // numbers
}

func elements(v *graph.Value) int64 {
	n, _ := v.Type.Shape.Size().Int()
	return n
}

func outputNames(g *graph.Graph) string {
	var out []string
	for _, v := range g.Outputs {
		out = append(out, v.Name)
	}
	if len(out) > 5 {
		out = append(out[:5], "...")
	}
	return strings.Join(out, ", ")
}

// measure finds, for each gradient, the forward values that no other node of the backward pass reads.
func (f *fitter) measure() {
	count := map[*graph.Node]int{} // gradients and other outputs that need a node
	cone := map[*candidate]map[*graph.Node]bool{}
	for _, c := range f.all {
		c.depth = len(f.live.g.Nodes)
		if c.y.Def != nil {
			c.depth = f.live.index[c.y.Def]
		}
		cone[c] = f.live.needed(func(v *graph.Value) bool { return v == c.y })
		for n := range cone[c] {
			count[n]++
		}
	}
	for n := range f.live.needed(func(v *graph.Value) bool { return !f.drop[v] }) {
		count[n]++
	}
	backward := func(n *graph.Node) bool {
		return n != nil && n.Meta.Get(graph.MetaRole) == graph.RoleBackward
	}
	for _, c := range f.all {
		seen := map[*graph.Value]bool{}
		for n := range cone[c] {
			if count[n] > 1 || !backward(n) {
				continue
			}
			for _, v := range n.In {
				if v == nil || f.live.root[v] == nil || backward(v.Def) || seen[f.live.root[v]] {
					continue
				}
				alone := !slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return backward(u.Node) && !(cone[c][u.Node] && count[u.Node] == 1) })
				if alone {
					seen[f.live.root[v]] = true
					c.SavedBytes += f.live.bytes[f.live.root[v]]
				}
			}
		}
	}
}

// order returns the gradients in the order in which they are considered.
func (f *fitter) order() []*candidate {
	out := slices.Clone(f.all)
	vector := func(c *candidate) bool { return len(c.y.Type.Shape) <= 1 }
	slices.SortStableFunc(out, func(a, b *candidate) int {
		switch {
		case vector(a) != vector(b):
			if vector(a) {
				return -1
			}
			return 1
		case !vector(a):
			if c := perElement(a, b); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.depth, b.depth)
	})
	return out
}

// choose keeps c, or part of it, if that fits.
func (f *fitter) choose(c *candidate, limit int64) {
	delete(f.drop, c.y)
	for _, n := range parts {
		cuts := f.cuts
		var k *cutting
		if n > 1 {
			if k = newCutting(f.known, c.y, n); k == nil {
				continue
			}
			cuts = append(slices.Clone(cuts), k)
		}
		peak := f.live.peak(f.drop, cuts)
		if c.Peak == 0 || peak < c.Peak {
			c.Peak = peak
		}
		if peak <= limit {
			c.Parts, c.Peak, c.cut, f.cuts = n, peak, k, cuts
			if k != nil {
				c.Axis = k.cuts[c.y].axis
			}
			return
		}
	}
	f.drop[c.y] = true
}

func (f *fitter) known(v *graph.Value) *op.Array {
	if v == nil {
		return nil
	}
	return f.info.Const(v)
}

// apply drops outputs and cuts gradients.
func (f *fitter) apply(g *graph.Graph) error {
	g.SetOutputs(slices.DeleteFunc(slices.Clone(g.Outputs), func(v *graph.Value) bool { return f.drop[v] })...)
	for _, c := range f.all {
		if c.cut != nil {
			if err := c.cut.apply(f.info); err != nil {
				return err
			}
		}
	}
	return nil
}

// Peak returns the most bytes of activations and gradients that the main graph of m keeps at once, in the order of its
// nodes. Types must be inferred and all sizes known.
func Peak(m *graph.Model) (int64, error) {
	live, err := newLiveness(m.Graph)
	if err != nil {
		return 0, err
	}
	return live.peak(nil, nil), nil
}
