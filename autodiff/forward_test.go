package autodiff

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestForward compares, on every sample of every operator with a derivative, the JVP along a random direction with the
// VJP (<u, J t> = <J^T u, t>) and with central differences, in float64, for inputs of declared, symbolic and
// unknown shape.
func TestForward(t *testing.T) {
	for _, d := range op.All() {
		r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != HasVJP && r.Kind != Decomposed {
			continue
		}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				continue
			}
			for _, hide := range []string{"", "rank", "symbols", "all"} {
				t.Run(fmt.Sprintf("%s/%s/%s", d.Name, s.Title(i), hide), func(t *testing.T) {
					// Constants of a graph are rounded to its type, by which the two modes may differ.
					wide, tol := inDouble(s), 1e-9
					c, err := newCheck(d, wide, hide)
					if err != nil {
						wide, tol = s, 1e-7
						c, err = newCheck(d, wide, hide)
					}
					if err != nil {
						t.Fatal(err)
					}
					if len(c.wrt) == 0 {
						return
					}
					c.forward(t, hide != "" && r.Check != nil, tol)
				})
			}
		}
	}
}

// inDouble returns s with its float operands in float64.
func inDouble(s op.Sample) op.Sample {
	s.In = slices.Clone(s.In)
	for i, a := range s.In {
		if a.Elem.IsDifferentiable() {
			s.In[i] = a.As(graph.Double)
		}
	}
	return s
}

// TestHessianSymmetric checks, on every sample, that the tangent of the gradient is symmetric: <s, H t> = <t, H s>, with the
// Hessian H applied forward over reverse.
func TestHessianSymmetric(t *testing.T) {
	for _, d := range op.All() {
		r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != HasVJP && r.Kind != Decomposed {
			continue
		}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				continue
			}
			for _, hide := range []string{"", "rank"} {
				t.Run(fmt.Sprintf("%s/%s/%s", d.Name, s.Title(i), hide), func(t *testing.T) {
					c, err := newCheck(d, inDouble(s), hide)
					if err != nil {
						c, err = newCheck(d, s, hide)
					}
					if err == nil {
						err = c.differentiate(1)
					}
					var blocked *BlockedError
					if hide != "" && r.Check != nil && errors.As(err, &blocked) {
						t.Skipf("the rule refuses the node: %v", err)
					}
					if err != nil {
						t.Fatal(err)
					}
					if len(c.wrt) > 0 {
						c.symmetric(t)
					}
				})
			}
		}
	}
}

// symmetric checks the second derivative along two directions.
func (c *check) symmetric(t *testing.T) {
	t.Helper()
	g := c.m.Graph
	b := op.NewBuilder(g, c.info)
	feed := slices.Clone(c.feed)
	var directions [2][]*op.Array
	var grads []*graph.Value
	for _, v := range c.grads {
		if v != nil {
			grads = append(grads, v)
		}
	}
	var outs []*graph.Value
	for k := range directions {
		var tangents []Tangent
		for _, x := range c.wrt {
			at := c.feed[slices.Index(g.Inputs, x)]
			a := op.NewArray(at.Elem, at.Shape, true)
			for j := range a.Len() {
				a.F64[j] = c.rng.Float64()*2 - 1
			}
			directions[k] = append(directions[k], a)
			tangents = append(tangents, Tangent{x, g.AddInput(g.Model.Fresh(x.Name+"_tangent"), x.Type)})
			feed = append(feed, a)
		}
		ts, err := Forward(b, tangents, grads)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range ts {
			if h == nil {
				h = b.FullLike(grads[i], 0)
			}
			outs = append(outs, h)
		}
	}
	g.SetOutputs(outs...)
	if err := graph.Verify(c.m); err != nil {
		t.Fatal(err)
	}
	machine, err := interp.New(c.m, interp.Options{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	var dot [2]float64
	scale := 0.0
	for k := range directions {
		at := 0
		for i := range c.wrt {
			if c.grads[i] == nil {
				continue
			}
			h, s := got[k*len(grads)+at], directions[1-k][i]
			at++
			for j := range s.Len() {
				p := h.Float(j) * s.Float(j)
				dot[k] += p
				scale += math.Abs(p)
			}
		}
	}
	if !(math.Abs(dot[0]-dot[1]) <= 1e-7*scale+1e-12) {
		t.Errorf("<s, H t> = %.12g, <t, H s> = %.12g\n%s", dot[0], dot[1], describe(c.m))
	}
}

// forward checks the tangent of the scalar. Where refuse is true a rule may refuse the node.
func (c *check) forward(t *testing.T, refuse bool, tol float64) {
	t.Helper()
	g := c.m.Graph
	var tangents []Tangent
	direction := map[*graph.Value]*op.Array{}
	feed := slices.Clone(c.feed)
	for _, x := range c.wrt {
		at := c.feed[slices.Index(g.Inputs, x)]
		a := op.NewArray(at.Elem, at.Shape, true)
		for j := range a.Len() {
			a.F64[j] = c.rng.Float64()*2 - 1
		}
		direction[x] = a
	}
	for _, x := range c.wrt {
		tangents = append(tangents, Tangent{x, g.AddInput(g.Model.Fresh(x.Name+"_tangent"), x.Type)})
		feed = append(feed, direction[x])
	}
	b := op.NewBuilder(g, c.info)
	ts, err := Forward(b, tangents, []*graph.Value{c.loss})
	var blocked *BlockedError
	if refuse && errors.As(err, &blocked) {
		t.Skipf("the rule refuses the node: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.Verify(c.m); err != nil {
		t.Fatal(err)
	}
	jvp := ts[0]
	if jvp == nil {
		jvp = b.Like(c.loss, 0)
	}
	grads, err := Reverse(b, []Seed{{c.loss, b.Like(c.loss, 1)}}, c.wrt)
	if errors.As(err, &blocked) && refuse {
		t.Skipf("the rule refuses the node: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	outs := []*graph.Value{c.loss, jvp}
	for _, v := range grads {
		if v != nil {
			outs = append(outs, v)
		}
	}
	g.SetOutputs(outs...)
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
	base := run(feed)
	got, k := base[1].Float(0), 2
	want, scale := 0.0, 0.0
	for i, x := range c.wrt {
		if grads[i] == nil {
			continue
		}
		for j := range direction[x].Len() {
			p := direction[x].Float(j) * base[k].Float(j)
			want += p
			scale += math.Abs(p)
		}
		k++
	}
	if !(math.Abs(got-want) <= tol*(scale+math.Abs(base[0].Float(0)))+1e-15) {
		t.Errorf("J t gives %.12g, J^T u gives %.12g\n%s", got, want, describe(c.m))
	}
	const h = 1e-6
	at := func(sign float64) float64 {
		moved := slices.Clone(feed)
		for _, x := range c.wrt {
			i := slices.Index(g.Inputs, x)
			a := op.NewArray(feed[i].Elem, feed[i].Shape, true)
			for j := range a.Len() {
				a.F64[j] = feed[i].Float(j) + sign*h*direction[x].Float(j)
			}
			moved[i] = a
		}
		return run(moved)[0].Float(0)
	}
	plus, minus := at(1), at(-1)
	numeric := (plus - minus) / (2 * h)
	if tol := 1e-6*(1+scale) + 1e-8*(math.Abs(plus)+math.Abs(minus)); !(math.Abs(numeric-got) <= tol) {
		t.Errorf("J t is %.9g, central difference %.9g (difference %.3g, allowed %.3g)\n%s", got, numeric, got-numeric, tol, describe(c.m))
	}
}

// TestPowerForward compares derivatives of x^n by a Loop, n known at run time only, with the closed form: by the forward mode alone,
// over itself and over the reverse mode.
func TestPowerForward(t *testing.T) {
	m := graph.NewModel("power", op.SampleOpset)
	g := m.Graph
	n := g.AddInput("n", graph.TensorOf(graph.Int64, graph.ShapeOf()))
	x := g.AddInput("x", graph.TensorOf(graph.Double, graph.ShapeOf()))
	b := op.NewBuilder(g, op.NewInfo())
	one := b.Like(x, 1)
	y := b.Loop(n, nil, []*graph.Value{one}, nil, func(b *op.Builder, i *graph.Value, s []*graph.Value) op.LoopBody {
		return op.LoopBody{Next: []*graph.Value{b.Mul(s[0], x)}}
	}).Out[0]
	along := func(y *graph.Value) *graph.Value {
		ts, err := Forward(b, []Tangent{{x, one}}, []*graph.Value{y})
		if err != nil {
			t.Fatal(err)
		}
		return ts[0]
	}
	cts, err := Reverse(b, []Seed{{y, one}}, []*graph.Value{x})
	if err != nil {
		t.Fatal(err)
	}
	first := along(y)
	second := along(first)
	g.SetOutputs(first, second, along(second), along(cts[0]))
	if err := graph.Verify(m); err != nil {
		t.Fatal(err)
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const at = 1.25
	for _, trips := range []int64{0, 1, 2, 7} {
		in := op.NewArray(graph.Double, nil, false)
		in.SetFloat(0, at)
		got, err := machine.Run([]*op.Array{op.IntScalar(trips), in})
		if err != nil {
			t.Fatal(err)
		}
		for i, order := range []int64{1, 2, 3, 2} {
			want := math.Pow(at, float64(trips-order))
			for k := range order {
				want *= float64(trips - k)
			}
			if math.Abs(got[i].Float(0)-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("derivative %d (of order %d) of x^%d is %g, want %g", i, order, trips, got[i].Float(0), want)
			}
		}
	}
}

// TestForwardBlockers wants every node without derivative named, and nothing added.
func TestForwardBlockers(t *testing.T) {
	m := graph.NewModel("blocked", 21)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2)))
	var outs []*graph.Value
	for _, name := range []string{"First", "Second"} {
		n := g.NewNode("my", name, []*graph.Value{x}, []string{name + "_y"})
		n.Out[0].Type = x.Type
		g.Append(n)
		outs = append(outs, n.Out[0])
	}
	_, err := Forward(op.NewBuilder(g, op.NewInfo()), []Tangent{{x, x}}, outs)
	var blocked *BlockedError
	if !errors.As(err, &blocked) || len(blocked.Blockers) != 2 || len(g.Nodes) != 2 {
		t.Errorf("got %v and %d nodes, want two blockers and nothing added", err, len(g.Nodes))
	}
}
