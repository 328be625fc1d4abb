package autodiff

import (
	"fmt"
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestLoopPlans checks the derivatives of all Loop and SequenceMap samples, to the second order, with each plan for what
// loops keep.
func TestLoopPlans(t *testing.T) {
	for _, text := range []string{"stack", "recompute", "checkpoint:1", "checkpoint:2", "checkpoint:4", "auto"} {
		plan, err := ParseLoopPlan(text)
		if err != nil {
			t.Fatal(err)
		}
		if plan.String() != text {
			t.Errorf("plan %s reads back as %s", text, plan)
		}
		for _, name := range []string{"Loop", "SequenceMap"} {
			d := op.Lookup(op.Key{Name: name})
			for i, s := range d.Samples {
				hides := []string{"", "rank", "all"}
				if text != "stack" && text != "recompute" && text != "checkpoint:2" {
					hides = hides[:1]
				}
				for _, hide := range hides {
					for order := 1; order <= 2; order++ {
						t.Run(fmt.Sprintf("%s/%s/%s/%s/%d", text, name, s.Title(i), hide, order), func(t *testing.T) {
							c, err := newCheck(d, s, hide)
							if err != nil {
								t.Fatal(err)
							}
							c.plan = plan
							for o := 1; o <= order && err == nil; o++ {
								err = c.differentiate(o)
							}
							if err != nil {
								t.Fatal(err)
							}
							c.compare(t)
						})
					}
				}
			}
		}
	}
}

func TestLoopPlanErrors(t *testing.T) {
	for _, s := range []string{"", "stacks", "checkpoint", "checkpoint:", "checkpoint:0", "checkpoint:-1", "checkpoint:x"} {
		if p, err := ParseLoopPlan(s); err == nil {
			t.Errorf("plan %q reads as %s", s, p)
		}
	}
}

// TestPower compares derivatives of x^n by a Loop, n known at run time only, with the closed form.
func TestPower(t *testing.T) {
	for _, text := range []string{"stack", "recompute", "checkpoint:3"} {
		plan, _ := ParseLoopPlan(text)
		m := graph.NewModel("power", op.SampleOpset)
		g := m.Graph
		n := g.AddInput("n", graph.TensorOf(graph.Int64, graph.ShapeOf()))
		x := g.AddInput("x", graph.TensorOf(graph.Double, graph.ShapeOf()))
		b := op.NewBuilder(g, op.NewInfo())
		y := b.Loop(n, nil, []*graph.Value{b.Like(x, 1)}, nil, func(b *op.Builder, i *graph.Value, s []*graph.Value) op.LoopBody {
			return op.LoopBody{Next: []*graph.Value{b.Mul(s[0], x)}}
		}).Out[0]
		outs := []*graph.Value{y}
		for range 3 {
			cts, err := ReverseLoops(b, []Seed{{outs[len(outs)-1], b.Like(x, 1)}}, []*graph.Value{x}, plan)
			if err != nil {
				t.Fatal(err)
			}
			outs = append(outs, cts[0])
		}
		g.SetOutputs(outs...)
		machine, err := interp.New(m, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, trips := range []int64{0, 1, 2, 7} {
			const at = 1.25
			in := op.NewArray(graph.Double, nil, false)
			in.SetFloat(0, at)
			got, err := machine.Run([]*op.Array{op.IntScalar(trips), in})
			if err != nil {
				t.Fatal(err)
			}
			factor := 1.0
			for order, a := range got {
				want := 0.0
				if factor != 0 {
					want = factor * math.Pow(at, float64(trips)-float64(order))
				}
				if math.Abs(a.Float(0)-want) > 1e-12*(1+math.Abs(want)) {
					t.Errorf("%s: derivative %d of x^%d at %g is %g, want %g", text, order, trips, at, a.Float(0), want)
				}
				factor *= float64(trips) - float64(order)
			}
		}
	}
}

// TestWhatLoopsKeep counts the elements that Loops hand from the forward to the backward graph.
func TestWhatLoopsKeep(t *testing.T) {
	const trips, size = 64, 100
	var stacked LoopUse
	for _, test := range []struct {
		plan     string
		min, max int
	}{
		{"stack", trips * size, trips*size + 10*size},
		{"checkpoint:8", trips / 8 * size, trips/8*size + 10*size},
		{"recompute", 0, 10 * size},
	} {
		m := graph.NewModel("keep", op.SampleOpset)
		n := m.Graph.AddInput("n", graph.TensorOf(graph.Int64, graph.ShapeOf()))
		x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(size)))
		b := op.NewBuilder(m.Graph, op.NewInfo())
		y := b.Loop(n, nil, []*graph.Value{x}, nil, func(b *op.Builder, i *graph.Value, s []*graph.Value) op.LoopBody {
			return op.LoopBody{Next: []*graph.Value{b.Unary("Sin", b.Mul(s[0], x))}}
		}).Out[0]
		plan, _ := ParseLoopPlan(test.plan)
		var uses []LoopUse
		plan.Record = &uses
		cts, err := ReverseLoops(b, []Seed{{y, x}}, []*graph.Value{x}, plan)
		if err != nil {
			t.Fatal(err)
		}
		if test.plan == "stack" {
			stacked = uses[0]
		}
		m.Graph.SetOutputs(cts[0])
		kept, sines := 0, 0
		machine, err := interp.New(m, interp.Options{Watch: func(v *graph.Value, a *op.Array) {
			if v.Def.Is("Loop") {
				kept += a.Len()
			}
		}, Count: func(n *graph.Node) {
			if n.Is("Sin") {
				sines++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Run([]*op.Array{op.IntScalar(trips), op.NewArray(graph.Float, []int{size}, false)}); err != nil {
			t.Fatal(err)
		}
		if kept < test.min || kept > test.max {
			t.Errorf("%s: Loops give %d elements, want %d to %d", test.plan, kept, test.min, test.max)
		}
		cost := stacked.Cost(plan)
		count := map[string]int64{"n": trips, "T": trips}
		for _, s := range cost.Bytes.Symbols() {
			count[s] = trips
		}
		if again, ok := cost.Again.Eval(count).Int(); !ok || trips+again != int64(sines) {
			t.Errorf("%s: %d iterations ran, the prediction is %d and %s more", test.plan, sines, trips, cost.Again)
		}
		inner := plan.Every * size // of the segment at hand
		if bytes, ok := cost.Bytes.Eval(count).Int(); !ok || bytes < int64(4*(test.min+inner)) || bytes > int64(4*(test.max+inner)) {
			t.Errorf("%s: %d elements are kept, the prediction is %s bytes", test.plan, kept, cost.Bytes)
		}
	}
}

// TestAutoPlan splits loops whose stacks would be large, and no others.
func TestAutoPlan(t *testing.T) {
	for _, test := range []struct{ trips, size, want int64 }{
		{1_000_000, 1000, 1000}, {10_000, 100_000, 100}, {10, 1000, 0}, {2, 1 << 30, 0},
	} {
		m := graph.NewModel("auto", op.SampleOpset)
		x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(test.size)))
		b := op.NewBuilder(m.Graph, op.NewInfo())
		n := b.Loop(b.IntScalar(test.trips), nil, []*graph.Value{x, x}, nil, func(b *op.Builder, i *graph.Value, s []*graph.Value) op.LoopBody {
			return op.LoopBody{Next: []*graph.Value{b.Mul(s[0], s[1]), s[1]}}
		})
		r := &reverse{b: b, g: m.Graph, plan: LoopPlan{Auto: true}}
		r.mark([]Seed{{Y: n.Out[0]}}, []*graph.Value{x})
		if got := r.segmentLength(n); got != test.want {
			t.Errorf("%d iterations of %d floats: segments of %d, want %d", test.trips, test.size, got, test.want)
		}
	}
}

// TestReadRows finds that slices read by number are summed up once, by a scatter behind the reverse Loop.
func TestReadRows(t *testing.T) {
	m := graph.NewModel("rows", op.SampleOpset)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(5, 3)))
	h := m.Graph.AddInput("h", graph.TensorOf(graph.Float, graph.ShapeOf(3)))
	b := op.NewBuilder(m.Graph, op.NewInfo())
	y := b.Loop(b.IntScalar(5), nil, []*graph.Value{h}, nil, func(b *op.Builder, i *graph.Value, s []*graph.Value) op.LoopBody {
		return op.LoopBody{Next: []*graph.Value{b.Mul(s[0], b.Gather(x, i, 0))}}
	}).Out[0]
	if _, err := Reverse(b, []Seed{{y, h}}, []*graph.Value{x}); err != nil {
		t.Fatal(err)
	}
	scatters := 0
	for n := range m.Graph.AllNodes() {
		switch {
		case n.Op == "ScatterND" && n.Graph == m.Graph:
			scatters++
		case n.Op == "ScatterND", n.Op == "Pad":
			t.Errorf("%s runs in every iteration", n.Label())
		}
	}
	if scatters != 1 {
		t.Errorf("%d scatters behind the loop, want 1", scatters)
	}
}

// TestKeptByIf finds that an expensive result of a branch becomes a result of the If, and cheap ones are computed again.
func TestKeptByIf(t *testing.T) {
	m := graph.NewModel("kept", op.SampleOpset)
	c := m.Graph.AddInput("c", graph.TensorOf(graph.Bool, graph.ShapeOf()))
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(3, 3)))
	b := op.NewBuilder(m.Graph, op.NewInfo())
	y := b.If(c, func(b *op.Builder) []*graph.Value {
		return []*graph.Value{b.Unary("Sin", b.Unary("Exp", b.MatMul(x, x)))}
	},
		func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Mul(x, x)} })[0]
	if _, err := Reverse(b, []Seed{{y, x}}, []*graph.Value{x}); err != nil {
		t.Fatal(err)
	}
	if got := len(y.Def.Out); got != 2 {
		t.Errorf("the forward If has %d results, want 2", got)
	}
	products, exps := 0, 0
	for n := range m.Graph.AllNodes() {
		switch n.Op {
		case "MatMul", "Gemm":
			products++
		case "Exp":
			exps++
		}
	}
	if products != 3 || exps != 2 {
		t.Errorf("%d products and %d exponentials, want 3 and 2", products, exps)
	}
}
