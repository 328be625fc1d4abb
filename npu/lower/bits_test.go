package lower_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// TestBits compares whole lowered graphs with the numeric contract, bit by bit: products that do not fit on chip, whose terms
// are still added one by one in the order of k, and a chain of element-wise operators over the result.
func TestBits(t *testing.T) {
	const rows, inner, cols = 70, 1100, 90
	for _, fused := range []bool{false, true} {
		mach, err := machine.Builtin("ref-small")
		if err != nil {
			t.Fatal(err)
		}
		mach.Numerics.Fused = fused
		m := graph.NewModel("bits", 21)
		g := m.Graph
		x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(rows, inner)))
		w := g.AddInput("w", graph.TensorOf(graph.Float, graph.ShapeOf(inner, cols)))
		b := g.AddInput("b", graph.TensorOf(graph.Float, graph.ShapeOf(cols)))
		result := graph.TensorOf(graph.Float, graph.ShapeOf(rows, cols))
		node := func(name string, in ...*graph.Value) *graph.Value {
			n := g.NewNode("", name, in, []string{name + "_out"})
			g.Append(n)
			n.Out[0].Type = result
			return n.Out[0]
		}
		p := node("MatMul", x, w)
		g.AddOutput(p)
		g.AddOutput(node("Mul", node("Exp", node("Tanh", node("Add", p, b))), p))
		r := rand.New(rand.NewPCG(1, 2))
		var feed []*op.Array
		for _, shape := range [][]int{{rows, inner}, {inner, cols}, {cols}} {
			a := op.NewArray(graph.Float, shape, false)
			for i := range a.Len() {
				a.SetFloat(i, float64(float32(r.NormFloat64())))
			}
			feed = append(feed, a)
		}
		res, err := lower.Model(m, lower.Options{Machine: mach})
		if err != nil {
			t.Fatal(err)
		}
		got := execute(t, res, feed)
		mac := func(c, a, b float32) float32 {
			if fused {
				return float32(math.FMA(float64(a), float64(b), float64(c))) // may round twice: see below
			}
			return c + float32(a*b)
		}
		unary := func(o isa.Op, a float32) float32 { return isa.Intrinsics[o].F32(a, 0, 0) }
		differ := 0
		for i := range rows {
			for j := range cols {
				c := float32(0)
				for k := range inner {
					c = mac(c, float32(feed[0].Float(i*inner+k)), float32(feed[1].Float(k*cols+j)))
				}
				at := i*cols + j
				product := float32(got[0].Float(at))
				if product != c {
					differ++
				}
				want := unary(isa.OpExp, unary(isa.OpTanh, product+float32(feed[2].Float(j)))) * product
				if y := float32(got[1].Float(at)); math.Float32bits(y) != math.Float32bits(want) {
					t.Fatalf("fused %v: element %d, %d of the chain is %v, want %v", fused, i, j, y, want)
				}
			}
		}
		// The reference for the fused MAC rounds to binary64 in between, which goes wrong about once in 2^29 sums.
		if limit := map[bool]int{false: 0, true: 3}[fused]; differ > limit {
			t.Errorf("fused %v: %d of %d elements of the product differ", fused, differ, rows*cols)
		}
	}
}
