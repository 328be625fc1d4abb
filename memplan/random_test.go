package memplan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// randomGraph returns a graph of n nodes: element-wise ones with one and two operands, views, matrix products, splits,
// reductions and scatters on 4x4 matrices, with some values as outputs.
func randomGraph(t testing.TB, seed uint64, n int) *graph.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	m := graph.NewModel("g", 21)
	g := m.Graph
	matrix := graph.TensorOf(graph.Float, graph.ShapeOf(4, 4))
	pool := []*graph.Value{g.AddInput("x", matrix), g.AddInput("x2", matrix), g.AddInit("w", graph.Floats([]int64{4, 4}, make([]float32, 16)...))}
	flat := g.AddInit("flat", graph.Ints(nil, 16))
	square := g.AddInit("square", graph.Ints(nil, 4, 4))
	axes := g.AddInit("axes", graph.Ints(nil, 0))
	index := g.AddInit("index", graph.Ints([]int64{1, 1}, 2))
	row := g.AddInit("row", graph.Floats([]int64{1, 4}, 1, 2, 3, 4))
	pick := func() *graph.Value { return pool[len(pool)-1-min(rng.IntN(len(pool)), rng.IntN(len(pool)))] }
	for i := range n {
		add := func(op string, in []*graph.Value, attrs ...*graph.Attr) *graph.Value {
			k := g.NewNode("", op, in, []string{m.Fresh(fmt.Sprintf("v%d", i))}, attrs...)
			g.Append(k)
			return k.Out[0]
		}
		var y *graph.Value
		switch rng.IntN(9) {
		case 0, 1:
			y = add([]string{"Relu", "Tanh", "Neg", "Abs"}[rng.IntN(4)], []*graph.Value{pick()})
		case 2, 3:
			y = add([]string{"Add", "Mul", "Sub", "Max"}[rng.IntN(4)], []*graph.Value{pick(), pick()})
		case 4:
			y = add("Reshape", []*graph.Value{add("Reshape", []*graph.Value{pick(), flat}), square})
		case 5:
			y = add("MatMul", []*graph.Value{pick(), pick()})
		case 6:
			y = add("Identity", []*graph.Value{pick()})
		case 7:
			r := add("ReduceMean", []*graph.Value{pick(), axes})
			y = add("Add", []*graph.Value{pick(), r})
		case 8:
			y = add("ScatterND", []*graph.Value{pick(), index, row})
		}
		pool = append(pool, y)
	}
	g.AddOutput(pool[len(pool)-1])
	for i, v := range pool[3 : len(pool)-1] {
		if v.NumUses() == 0 || rng.IntN(8) == 0 {
			if i%3 > 0 || v.NumUses() == 0 {
				g.AddOutput(v)
			}
		}
	}
	if _, err := op.Infer(m); err != nil {
		t.Fatal(err)
	}
	return m
}
