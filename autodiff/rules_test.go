package autodiff

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestRulesExist demands a rule for every operator of the table, and a derivative of every rule that claims one.
func TestRulesExist(t *testing.T) {
	for _, d := range op.All() {
		k := op.Key{Domain: d.Domain, Name: d.Name}
		r := Lookup(k)
		switch {
		case r == nil:
			t.Errorf("%s has no rule", k)
		case (r.Kind == HasVJP) != (r.VJP != nil):
			t.Errorf("%s: kind %s does not fit its VJP", k, r.Kind)
		case r.Kind == Decomposed && d.Decompose == nil:
			t.Errorf("%s is to be decomposed, but has no decomposition", k)
		case (r.Kind == Unsupported || r.Kind == NoGrad) && r.Reason == "":
			t.Errorf("%s: %s without a reason", k, r.Kind)
		}
	}
}

// TestFirstOrder compares, on every sample of every operator with a derivative, the VJP along random
// directions with central differences in float64, for inputs of declared, symbolic and unknown shape.
func TestFirstOrder(t *testing.T) { eachSample(t, []string{"", "rank", "symbols", "all"}, 1) }

// TestSecondOrder does the same for the gradient of the gradient's product with a random vector: rules
// emit operators that have right rules themselves.
func TestSecondOrder(t *testing.T) { eachSample(t, []string{""}, 2) }

func eachSample(t *testing.T, hides []string, order int) {
	for _, d := range op.All() {
		r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != HasVJP && r.Kind != Decomposed {
			continue
		}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				continue
			}
			for _, hide := range hides {
				t.Run(fmt.Sprintf("%s/%s/%s", d.Name, s.Title(i), hide), func(t *testing.T) {
					c, err := newCheck(d, s, hide)
					if err != nil {
						t.Fatal(err)
					}
					for o := 1; o <= order && err == nil; o++ {
						err = c.differentiate(o)
					}
					var blocked *BlockedError
					if hide != "" && r.Check != nil && errors.As(err, &blocked) {
						t.Skipf("the rule refuses the node: %v", err)
					}
					if err != nil {
						t.Fatal(err)
					}
					if len(c.wrt) > 0 {
						c.compare(t)
					}
				})
			}
		}
	}
}

// check is a scalar function of some inputs, as a graph, and its gradient.
type check struct {
	m     *graph.Model
	info  *op.Info
	feed  []*op.Array // by input
	wrt   []*graph.Value
	grads []*graph.Value
	loss  *graph.Value // the scalar
	rng   *rand.Rand
	plan  LoopPlan
}

func newCheck(d *op.Def, s op.Sample, hide string) (*check, error) {
	for i := range s.In { // constants of float type are variables here: they have cotangents too
		if s.In[i].Elem.IsDifferentiable() && !stoppedOperand(d, i) {
			in := append([]op.Arg{}, s.In...)
			in[i].Const = false
			s.In = in
		}
	}
	m, feed, err := op.SampleModel(d, s, 3, hide)
	if err != nil {
		return nil, err
	}
	c := &check{m: m, feed: feed, rng: rand.New(rand.NewPCG(5, 5))}
	if c.info, err = op.Infer(m); err != nil {
		return nil, err
	}
	for _, v := range m.Graph.Inputs {
		if v.Type.Elem.IsDifferentiable() {
			c.wrt = append(c.wrt, v)
		}
	}
	// The scalar is the sum of all float results times random weights. Their shapes come from a run.
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return nil, err
	}
	outs, err := machine.Run(feed)
	if err != nil {
		return nil, err
	}
	return c, c.weigh(m.Graph.Outputs, outs)
}

func stoppedOperand(d *op.Def, i int) bool {
	r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
	return r != nil && r.stops(i)
}

// weigh makes the sum of the values times random weights the scalar.
func (c *check) weigh(vals []*graph.Value, arrays []*op.Array) error {
	b := op.NewBuilder(c.m.Graph, c.info)
	c.loss = nil
	for i, v := range vals {
		if v == nil || !arrays[i].Elem.IsDifferentiable() {
			continue
		}
		w := op.NewArray(arrays[i].Elem, arrays[i].Shape, false)
		for j := range w.Len() {
			w.SetFloat(j, c.rng.Float64()*2-1)
		}
		term := b.ReduceAll(b.Mul(v, b.Const(w.Tensor())))
		term = b.Cast(term, graph.Double)
		if c.loss == nil {
			c.loss = term
		} else {
			c.loss = b.Add(c.loss, term)
		}
	}
	if c.loss == nil {
		c.wrt = nil
	}
	return b.Err
}

// differentiate appends the gradient of the scalar; for a second order the gradient's product with
// random weights becomes the scalar first.
func (c *check) differentiate(order int) error {
	if len(c.wrt) == 0 {
		return nil
	}
	if order > 1 {
		var vals []*graph.Value
		for _, g := range c.grads {
			if g != nil {
				vals = append(vals, g)
			}
		}
		c.m.Graph.SetOutputs(vals...)
		machine, err := interp.New(c.m, interp.Options{Wide: true})
		if err != nil {
			return err
		}
		arrays, err := machine.Run(c.feed)
		if err != nil {
			return err
		}
		if err := c.weigh(vals, arrays); err != nil {
			return err
		}
		if c.loss == nil {
			return nil
		}
	}
	b := op.NewBuilder(c.m.Graph, c.info)
	var err error
	c.grads, err = ReverseLoops(b, []Seed{{c.loss, b.Scalar(graph.Double, 1)}}, c.wrt, c.plan)
	return err
}

// compare checks <grad, direction> against central differences of the scalar along random directions.
func (c *check) compare(t *testing.T) {
	t.Helper()
	outs := []*graph.Value{c.loss}
	for _, g := range c.grads {
		if g != nil {
			outs = append(outs, g)
		}
	}
	c.m.Graph.SetOutputs(outs...)
	machine, err := interp.New(c.m, interp.Options{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	run := func(feed []*op.Array) []*op.Array {
		out, err := machine.Run(feed)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	base := run(c.feed)
	const h = 1e-6
	for trial := range 3 {
		plus, minus, dot, scale := append([]*op.Array{}, c.feed...), append([]*op.Array{}, c.feed...), 0.0, 0.0
		k := 1
		for i, v := range c.wrt {
			at := indexOf(c.m.Graph.Inputs, v)
			x := c.feed[at]
			p, q := op.NewArray(x.Elem, x.Shape, true), op.NewArray(x.Elem, x.Shape, true)
			var g *op.Array
			if c.grads[i] != nil {
				g = base[k]
				k++
				if fmt.Sprint(g.Shape) != fmt.Sprint(x.Shape) {
					t.Fatalf("gradient of %s has shape %v, want %v", v.Name, g.Shape, x.Shape)
				}
				if g.Elem != x.Elem {
					t.Fatalf("gradient of %s is %s, want %s", v.Name, g.Elem, x.Elem)
				}
			}
			for j := range x.Len() {
				d := c.rng.Float64()*2 - 1
				p.F64[j], q.F64[j] = x.Float(j)+h*d, x.Float(j)-h*d
				if g != nil {
					dot += d * g.Float(j)
					scale += math.Abs(d * g.Float(j))
				}
			}
			plus[at], minus[at] = p, q
		}
		fp, fm := run(plus)[0].Float(0), run(minus)[0].Float(0)
		numeric := (fp - fm) / (2 * h)
		// Truncation is about h^2, cancellation about eps*|f|/h.
		tol := 1e-6*(1+scale) + 1e-8*(math.Abs(fp)+math.Abs(fm))
		if !(math.Abs(numeric-dot) <= tol) {
			t.Errorf("direction %d: gradient gives %.9g, central difference %.9g (difference %.3g, allowed %.3g)\n%s", trial, dot, numeric, dot-numeric, tol, describe(c.m))
			return
		}
	}
}

func indexOf(list []*graph.Value, v *graph.Value) int {
	for i := range list {
		if list[i] == v {
			return i
		}
	}
	return -1
}

// describe lists the nodes, for failures.
func describe(m *graph.Model) string {
	s := ""
	for _, n := range m.Graph.Nodes {
		for _, y := range n.Out {
			if y != nil {
				s += y.Name + " "
			}
		}
		s += "= " + n.Op + "("
		for _, x := range n.In {
			if x != nil {
				s += x.Name + " "
			}
		}
		s += ")\n"
	}
	return s
}
