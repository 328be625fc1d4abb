package testmodels

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// Choose returns a number from 0 to n-1. Everything about a random model follows from its answers.
type Choose func(n int) int

// Random returns a model of about the given number of nodes: operators of all families on operands that fit, chosen so
// that passes find something to do: neutral elements, filled tensors, constants in a row, movements that undo each other,
// equal nodes, decided branches. Dimensions are small numbers and the symbols N and M. The model is in canonical form,
// its types are inferred, and no node is certain to fail; one may fail for some sizes.
//
// With smooth there are only operators that are continuous and bounded, and no special numbers, so that small errors stay
// small.
func Random(choose Choose, nodes int, smooth bool) *graph.Model {
	m := graph.NewModel("random", int64(schema.MaxOpset("")))
	info, err := op.Infer(m)
	if err != nil {
		panic(err)
	}
	r := &randomNet{Builder: op.NewBuilder(m.Graph, info), choose: choose, smooth: smooth}
	for i := range 1 + choose(3) {
		r.pool = append(r.pool, m.Graph.AddInput("x"+string(rune('0'+i)), graph.TensorOf(graph.Float, r.shape())))
	}
	if choose(3) == 0 {
		r.pool = append(r.pool, m.Graph.AddInput("k", graph.TensorOf(graph.Int64, r.shape())))
	}
	if choose(4) == 0 {
		r.pool = append(r.pool, m.Graph.AddInput("b", graph.TensorOf(graph.Bool, r.shape())))
	}
	steps := r.steps()
	for range nodes {
		r.try(steps[choose(len(steps))])
	}
	for range 1 + choose(3) {
		v := r.pick(anyType)
		if choose(4) > 0 {
			v = r.pool[len(r.pool)-1-choose(min(len(r.pool), 6))]
		}
		if v.Def == nil || v.IsOutput() {
			continue
		}
		m.Graph.AddOutput(v)
	}
	if len(m.Graph.Outputs) == 0 {
		m.Graph.AddOutput(r.Unary("Identity", r.pool[0]))
	}
	return m
}

// randomNet grows a model; pool are the values that nodes may read.
type randomNet struct {
	*op.Builder
	choose Choose
	smooth bool
	pool   []*graph.Value
}

// step applies an operator and returns its results, nil if no operands fit.
type step func() []*graph.Value

// try takes a step, and takes it back if a node of it is certain to fail.
func (r *randomNet) try(s step) {
	first := r.G.Model.NextID()
	outs := s()
	if r.Err != nil {
		r.Err = nil
		r.G.Remove(slices.DeleteFunc(slices.Clone(r.G.Nodes), func(n *graph.Node) bool { return n.ID < first })...)
		fresh := op.NewBuilder(r.G, r.Info) // whose constants are those that are left
		*r.Builder = *fresh
		return
	}
	for _, v := range outs {
		if v != nil && v.Type.IsTensor() && v.Type.Shape != nil && len(v.Type.Shape) <= 5 {
			if n, ok := v.Type.Shape.Size().Int(); !ok || n <= 4096 {
				r.pool = append(r.pool, v)
			}
		}
	}
}

// dim returns a small dimension.
func (r *randomNet) dim() graph.Dim {
	switch k := r.choose(12); k {
	case 0, 1, 2:
		return graph.Sym("N")
	case 3:
		return graph.Sym("M")
	case 4, 5, 6:
		return graph.Known(1)
	case 7:
		if r.choose(3) == 0 {
			return graph.Known(0)
		}
		return graph.Known(2)
	default:
		return graph.Known(int64(k) - 6)
	}
}

func (r *randomNet) shape() graph.Shape {
	s := make(graph.Shape, r.choose(5))
	for i := range s {
		s[i] = r.dim()
	}
	return s
}

// Tests of values.
func anyType(*graph.Value) bool   { return true }
func isFloat(v *graph.Value) bool { return v.Type.Elem == graph.Float }
func isInt(v *graph.Value) bool   { return v.Type.Elem == graph.Int64 }
func isBool(v *graph.Value) bool  { return v.Type.Elem == graph.Bool }
func isNumber(v *graph.Value) bool {
	return v.Type.Elem.IsFloat() || v.Type.Elem.IsInt()
}

// ranked wants a rank.
func ranked(test func(*graph.Value) bool, lo, hi int) func(*graph.Value) bool {
	return func(v *graph.Value) bool { return test(v) && len(v.Type.Shape) >= lo && len(v.Type.Shape) <= hi }
}

// pick returns a value of the pool that passes the test, nil without one. Late ones are likelier.
func (r *randomNet) pick(test func(*graph.Value) bool) *graph.Value {
	var fit []*graph.Value
	for _, v := range r.pool {
		if test(v) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	if r.choose(2) == 0 {
		return fit[len(fit)-1-r.choose(min(3, len(fit)))]
	}
	return fit[r.choose(len(fit))]
}

// number returns a number of the kind that identities are about.
func (r *randomNet) number() float64 {
	list := []float64{0, math.Copysign(0, -1), 1, 1, -1, 2, 0.5, 3, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat32, 1e38}
	if r.smooth {
		list = []float64{1, 1, -1, 2, 0.5, 0.25, 3, 0}
	}
	return list[r.choose(len(list))]
}

// operand returns something to combine x with: a value that broadcasts with it, a constant, a filled or repeated tensor.
func (r *randomNet) operand(x *graph.Value) *graph.Value {
	s := x.Type.Shape
	switch r.choose(6) {
	case 0:
		return r.Like(x, r.whole(x, r.number()))
	case 1: // along the last axis
		if len(s) > 0 {
			if n, ok := s[len(s)-1].Int(); ok && n > 0 {
				a := op.NewArray(x.Type.Elem, []int{int(n)}, false)
				for i := range a.Len() {
					set(a, i, r.whole(x, r.number()))
				}
				return r.Const(a.Tensor())
			}
		}
	case 2:
		return r.FullLike(x, r.whole(x, r.number()))
	case 3:
		if v := r.pick(func(v *graph.Value) bool { return v.Type.Elem == x.Type.Elem }); v != nil {
			return r.ExpandLike(v, x)
		}
	}
	v := r.pick(func(v *graph.Value) bool {
		if v.Type.Elem != x.Type.Elem || len(v.Type.Shape) > len(s) {
			return false
		}
		for i, d := range v.Type.Shape {
			if n, ok := d.Int(); !(ok && n == 1) && !d.Equal(s[len(s)-len(v.Type.Shape)+i]) {
				return false
			}
		}
		return true
	})
	if v == nil {
		return x
	}
	return v
}

// whole makes a number one of x's type.
func (r *randomNet) whole(x *graph.Value, f float64) float64 {
	if x.Type.Elem.IsFloat() {
		return f
	}
	if math.IsNaN(f) || math.Abs(f) > 100 || math.Abs(f) < 1 {
		return 0
	}
	if x.Type.Elem == graph.Bool {
		return 1
	}
	return f
}

func set(a *op.Array, i int, x float64) {
	if a.I64 != nil {
		a.I64[i] = int64(x)
	} else {
		a.SetFloat(i, x)
	}
}

// axis returns an axis of a shape, counted from the front or the back.
func (r *randomNet) axis(s graph.Shape) int64 {
	a := int64(r.choose(len(s)))
	if r.choose(3) == 0 {
		a -= int64(len(s))
	}
	return a
}

// perm returns a permutation, often one that exchanges two axes.
func (r *randomNet) perm(rank int) []int64 {
	p := make([]int64, rank)
	for i := range p {
		p[i] = int64(i)
	}
	for range 1 + r.choose(2) {
		i, j := r.choose(rank), r.choose(rank)
		p[i], p[j] = p[j], p[i]
	}
	return p
}
