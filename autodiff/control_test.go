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
				for _, hide := range []string{"", "rank", "all"} {
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
