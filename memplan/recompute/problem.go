// Package recompute fits a model into a memory budget by computing some values again instead of keeping them
// (rematerialization): it states the problem as a graph of package remat, finds plans for budgets, and writes a plan
// into the model, so that runtimes that know nothing of it hold to it.
package recompute

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/memplan/remat"
)

// Problem is a model as a graph of units, each a node together with the views of its results. Views, which take no
// memory and no time, are no units; nor is what depends on constants alone, nodes without operands. Inputs and
// initializers take no part: they are there from beginning to end.
type Problem struct {
	Model *graph.Model
	Graph *remat.Graph
	Nodes []*graph.Node // by unit
	FLOPs []float64     // by unit, as the operator table counts them

	unit map[*graph.Node]int32 // of nodes that are units
}

// Options says what a problem is made of.
type Options struct {
	// Bytes returns the size of a value.
	Bytes func(*graph.Value) (int64, error)
	// Seconds returns the measured time of a node, if there is one.
	Seconds func(*graph.Node) (float64, bool)
}

// root returns the value whose storage v is: v itself, or what it is a view of.
func root(v *graph.Value) *graph.Value {
	for v.Def != nil && v.Index == 0 && isView(v.Def) {
		v = v.Def.In[0]
	}
	return v
}

// isView reports whether the node's only result is its first operand in another shape.
func isView(n *graph.Node) bool {
	if !op.Of(n).Has(op.View) || len(n.In) == 0 || n.In[0] == nil || len(n.Out) == 0 || n.Out[0] == nil {
		return false
	}
	for _, v := range n.Out[1:] {
		if v != nil {
			return false
		}
	}
	return true
}

// operands returns what n reads, with what its subgraphs capture.
func operands(n *graph.Node) []*graph.Value {
	var list []*graph.Value
	for _, v := range n.In {
		if v != nil {
			list = append(list, v)
		}
	}
	return append(list, n.Captures()...)
}

// New states the problem of m's main graph, whose nodes must be sorted and canonical.
func New(m *graph.Model, opt Options) (*Problem, error) {
	p := &Problem{Model: m, Graph: &remat.Graph{}, unit: map[*graph.Node]int32{}}
	var bad []error
	for _, n := range m.Graph.Nodes {
		if isView(n) || len(n.In) == 0 && len(n.Subgraphs()) == 0 {
			continue
		}
		var memory int64
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			b, err := opt.Bytes(v)
			if err != nil {
				bad = append(bad, err)
				continue
			}
			memory += b
		}
		u := int32(len(p.Nodes))
		p.unit[n] = u
		p.Nodes = append(p.Nodes, n)
		g := p.Graph
		g.Names = append(g.Names, n.Label())
		g.Memory = append(g.Memory, memory)
		g.Parents = append(g.Parents, p.parents(n))
		flops, moved, err := work(n, opt.Bytes, ints)
		if err != nil {
			bad = append(bad, err)
		}
		p.FLOPs = append(p.FLOPs, flops)
		g.Cost = append(g.Cost, int64(flops+moved))
		g.Order = append(g.Order, u)
	}
	return p, errors.Join(bad...)
}

// parents returns the units whose results n reads: those of its operands, and behind views those of the operands that
// shape them, which must be there when a view is made anew.
func (p *Problem) parents(n *graph.Node) []int32 {
	var list []int32
	seen := map[*graph.Value]bool{}
	var visit func(v *graph.Value)
	visit = func(v *graph.Value) {
		if v == nil || seen[v] || v.Def == nil || v.Graph != n.Graph {
			return
		}
		seen[v] = true
		if isView(v.Def) {
			for _, w := range v.Def.In {
				visit(w)
			}
			return
		}
		if u, ok := p.unit[v.Def]; ok {
			for _, x := range list {
				if x == u {
					return
				}
			}
			list = append(list, u)
		}
	}
	for _, v := range operands(n) {
		visit(v)
	}
	return list
}

// ints returns the shape of a value.
func ints(v *graph.Value) ([]int, bool) {
	s, ok := v.Type.Shape.Ints()
	if !ok || v.Type.Shape == nil {
		return nil, false
	}
	out := make([]int, len(s))
	for i := range s {
		out[i] = int(s[i])
	}
	return out, true
}

// work returns the FLOPs of a node and the bytes that it moves.
func work(n *graph.Node, bytes func(*graph.Value) (int64, error), dims func(*graph.Value) ([]int, bool)) (flops, moved float64, err error) {
	shapes := func(list []*graph.Value) ([][]int, bool) {
		out := make([][]int, len(list))
		for i, v := range list {
			if v == nil {
				continue
			}
			s, ok := dims(v)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	in, ok := shapes(n.In)
	out, ok2 := shapes(n.Out)
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v == nil {
				continue
			}
			b, err := bytes(v)
			if err != nil {
				return 0, 0, err
			}
			moved += float64(b)
		}
	}
	d := op.Of(n)
	if d == nil || !ok || !ok2 {
		return 0, moved, nil
	}
	c := &op.CostCtx{Node: n, In: in, Out: out}
	if d.Cost == nil {
		return c.OutLen(0), moved, nil
	}
	if flops = d.Cost(c); flops < 0 {
		return 0, 0, fmt.Errorf("node %s: the operator table counts %g FLOPs", n.Label(), flops)
	}
	return flops, moved, nil
}
