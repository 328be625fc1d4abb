package memplan

import (
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// viewed returns the value whose bytes the result v holds too, nil if v has bytes of its own.
func viewed(v *graph.Value) *graph.Value {
	n := v.Def
	if n == nil || v.Index != 0 || graph.StdDomain(n.Domain) != "" || !v.Type.IsTensor() {
		return nil
	}
	x := n.Operand(0)
	if x == nil || !x.Type.IsTensor() || !op.Of(n).Has(op.View) {
		return nil
	}
	return x
}

// overwritable returns the operands of n over which result 0 may be written if n is their last reader, in operand order.
func overwritable(n *graph.Node) []*graph.Value {
	y := n.Result(0)
	if y == nil || !y.Type.IsTensor() {
		return nil
	}
	var list []*graph.Value
	switch op.KindOf(n) {
	case op.KindElementwise:
		in := n.In
		if !op.Of(n).Has(op.Elementwise) {
			in = in[:min(len(in), 1)] // the others are scales, statistics, ... for many elements each
		}
		for _, x := range in {
			if x != nil && x.Type.IsTensor() && x.Type.Elem.Bits() == y.Type.Elem.Bits() && x.Type.Shape.Equal(y.Type.Shape) {
				list = append(list, x)
			}
		}
	case op.KindScatter:
		if x := n.Operand(0); x != nil && x.Type.IsTensor() && x.Type.Elem == y.Type.Elem {
			list = append(list, x)
		}
	}
	return list
}

// nextSuffix ends the name of what an optimizer makes of an input.
const nextSuffix = "_next"

// successor reports whether y is what an optimizer makes of the graph input p, over which it may be written.
func successor(y, p *graph.Value) bool {
	name, ok := strings.CutSuffix(y.Name, nextSuffix)
	return ok && p.Def == nil && p.Name == name && y.Type.Same(p.Type) && y.IsOutput() && p.IsInput()
}

// constant reports whether v is the result of a node that holds its value.
func constant(v *graph.Value) bool { return v.Def != nil && op.KindOf(v.Def) == op.KindConstant }

// Viewed returns the value whose bytes the result v holds too, nil if v has bytes of its own.
func Viewed(v *graph.Value) *graph.Value { return viewed(v) }

// Copies returns the outputs of main graph g that are views of inputs or constants and so must have bytes of their own: callers do not
// find their inputs in their outputs.
func Copies(g *graph.Graph) map[*graph.Value]bool {
	isOut := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		isOut[v] = true
	}
	return lenders(g, isOut, Options{})
}

// Overwritable returns the operands of n over which its first result may be written if n is their last reader.
func Overwritable(n *graph.Node) []*graph.Value { return overwritable(n) }

// Constant reports whether v is the result of a node that holds its value.
func Constant(v *graph.Value) bool { return constant(v) }
