package memplan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Holding is a buffer that is alive at the peak.
type Holding struct {
	Buffer *Buffer
	Value  *graph.Value // the value in it at that step; nil for a workspace
	Why    string
}

// Category returns the category of what is held.
func (h Holding) Category() Category {
	if h.Value == nil {
		return Workspace
	}
	return categoryOf(h.Value)
}

// Saving is a way to have fewer bytes alive at the peak.
type Saving struct {
	Value *graph.Value
	Bytes int64
	FLOPs float64
	Text  string
}

// Holdings returns what is alive at step at, the largest first, each with the reason.
func (l *Live) Holdings(at int) []Holding {
	step := l.steps()
	var list []Holding
	for _, b := range l.Buffers {
		if b.First > at || b.Last < at || b.Bytes == 0 {
			continue
		}
		list = append(list, l.holding(b, at, step))
	}
	slices.SortStableFunc(list, func(a, b Holding) int { return cmp.Compare(b.Buffer.Bytes, a.Buffer.Bytes) })
	return list
}

// steps returns when each node runs.
func (l *Live) steps() map[*graph.Node]int {
	step := make(map[*graph.Node]int, len(l.Order))
	for i, n := range l.Order {
		step[n] = i
	}
	return step
}

// holding says why b is alive at step at.
func (l *Live) holding(b *Buffer, at int, step map[*graph.Node]int) Holding {
	if b.Node != nil {
		return Holding{b, nil, "what the bodies of the node that runs have alive at most"}
	}
	h := Holding{Buffer: b}
	readsHere := false
	var next *graph.Node // first reader behind this step
	readers := 0
	output := false
	for _, v := range b.Values {
		made := step[v.Def]
		if made <= at {
			h.Value = v
		}
		for _, u := range v.Uses() {
			n := l.reader(u)
			if n == nil {
				output = output || u.Node == nil && u.Graph == l.Graph
				continue
			}
			if made > at { // another value's story, in the same bytes
				continue
			}
			switch s := step[n]; {
			case s == at:
				readsHere = true
			case s > at:
				readers++
				if next == nil || s < step[next] {
					next = n
				}
			}
		}
	}
	if h.Value == nil {
		h.Value = b.Values[0]
	}
	var why []string
	if step[h.Value.Def] == at {
		why = append(why, "made here")
	}
	if readsHere {
		if next == nil && !output {
			why = append(why, "read here for the last time")
		} else {
			why = append(why, "read here")
		}
	}
	if next != nil {
		text := fmt.Sprintf("read by %s%s at step %d", next.Label(), roleText(next), step[next])
		if readers > 1 {
			text += fmt.Sprintf(" and by %d more", readers-1)
		}
		why = append(why, text)
	}
	if output {
		why = append(why, "graph output")
	}
	h.Why = strings.Join(why, ", ")
	return h
}

// reader returns the node of l's graph that holds a use; nil for an output use.
func (l *Live) reader(u graph.Use) *graph.Node {
	n := u.Node
	g := u.Graph
	if n != nil {
		g = n.Graph
	}
	for g != l.Graph {
		if g == nil || g.Parent == nil {
			return nil
		}
		n = g.Parent
		g = n.Graph
	}
	return n
}

func roleText(n *graph.Node) string {
	if r := n.Meta.Get(graph.MetaRole); r != "" && r != graph.RoleForward {
		return " of the " + r + " part"
	}
	return ""
}

// Cheapest returns the way to save bytes at step at that costs the fewest FLOPs per byte: computing a value again in front of its
// next reader, from what is alive then anyway. ok is false where there is none.
func (l *Live) Cheapest(at int) (best Saving, ok bool) {
	step := l.steps()
	for _, b := range l.Buffers {
		if b.Node != nil || b.Output || b.First >= at || b.Last <= at || b.Bytes == 0 {
			continue
		}
		s, can := l.again(b, at, step)
		if can && (!ok || s.FLOPs*float64(best.Bytes) < best.FLOPs*float64(s.Bytes)) {
			best, ok = s, true
		}
	}
	return best, ok
}

// again returns what computing the value in b anew behind step at would save.
func (l *Live) again(b *Buffer, at int, step map[*graph.Node]int) (Saving, bool) {
	var v *graph.Value
	first := len(l.Order)
	for _, w := range b.Values {
		if made := step[w.Def]; made < at && viewed(w) == nil {
			v = w
		}
		for _, u := range w.Uses() {
			n := l.reader(u)
			if n == nil {
				continue
			}
			if step[n] == at {
				return Saving{}, false
			}
			if s := step[n]; s > at {
				first = min(first, s)
			}
		}
	}
	if v == nil || first == len(l.Order) || op.Of(v.Def).Has(op.Random) || len(v.Def.Subgraphs()) > 0 {
		return Saving{}, false
	}
	for _, x := range v.Def.In {
		if x == nil {
			continue
		}
		if o := l.Of[x]; o != nil && (o.Last < first || !l.holds(o, x, first, step)) {
			return Saving{}, false // an operand is gone by then
		}
		if o := l.Of[x]; o == nil && x.Def != nil && !constant(x) && viewed(x) == nil {
			return Saving{}, false
		}
	}
	flops := FLOPs(v.Def)
	return Saving{v, b.Bytes, flops, fmt.Sprintf("compute %q (%s) again in front of step %d, from what is alive then anyway", v.Name, v.Def.Op, first)}, true
}

// holds reports whether buffer b holds x at a step, not something that was written over it.
func (l *Live) holds(b *Buffer, x *graph.Value, at int, step map[*graph.Node]int) bool {
	after := false
	for _, v := range b.Values {
		if v == x {
			after = true
			continue
		}
		if after && step[v.Def] < at && viewed(v) == nil {
			return false
		}
	}
	return true
}

// FLOPs returns the work of a node, by the operator table; one per element of the first result where the table says nothing. The
// types of its operands and results must be known.
func FLOPs(n *graph.Node) float64 {
	c := &op.CostCtx{Node: n}
	shapes := func(list []*graph.Value) (out [][]int, ok bool) {
		for _, v := range list {
			if v == nil {
				out = append(out, nil)
				continue
			}
			dims, known := v.Type.Shape.Ints()
			if !known {
				return nil, false
			}
			shape := make([]int, len(dims))
			for i, d := range dims {
				shape[i] = int(d)
			}
			out = append(out, shape)
		}
		return out, true
	}
	var ok, ok2 bool
	c.In, ok = shapes(n.In)
	c.Out, ok2 = shapes(n.Out)
	if !ok || !ok2 {
		return 0
	}
	if d := op.Of(n); d != nil && d.Cost != nil {
		return d.Cost(c)
	}
	return c.OutLen(0)
}

// Beside returns the bytes of inputs and of weights, which lie outside of the arena, as far as their sizes are known.
func (l *Live) Beside() (weights, inputs int64) {
	for v := range l.Graph.Values() {
		n, ok := SizeOf(v.Type).Int()
		if !ok {
			continue
		}
		switch categoryOf(v) {
		case Weights:
			weights += min(n, math.MaxInt64-weights) // the most that can be said of more
		case Inputs:
			inputs += min(n, math.MaxInt64-inputs)
		}
	}
	return weights, inputs
}

// ByCategory returns the bytes alive at each step for each category of the arena: bytes are of the category of the value that they
// hold at the time.
func (l *Live) ByCategory() [][]int64 {
	out := make([][]int64, numCategories)
	for c := range out {
		out[c] = make([]int64, len(l.Order)+1)
	}
	step := l.steps()
	for _, b := range l.Buffers {
		now, from := b.Category, b.First
		spend := func(to int) {
			out[now][from] += b.Bytes
			out[now][to] -= b.Bytes
		}
		for _, v := range b.Values {
			if c, made := categoryOf(v), step[v.Def]; c != now && viewed(v) == nil {
				spend(made)
				now, from = c, made
			}
		}
		spend(b.Last + 1)
	}
	for c := range out {
		for i := 1; i < len(out[c]); i++ {
			out[c][i] += out[c][i-1]
		}
		out[c] = out[c][:len(l.Order)]
	}
	return out
}

// Categories are those that the arena can hold bytes of.
func Categories() []Category { return []Category{Activations, Gradients, Optimizer, Workspace} }
