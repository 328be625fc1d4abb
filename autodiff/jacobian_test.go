package autodiff

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestJacobian compares whole Jacobians, by rows and by columns, with central differences on every sample, also where shapes are
// unknown.
func TestJacobian(t *testing.T) {
	for _, d := range op.All() {
		r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != HasVJP && r.Kind != Decomposed {
			continue
		}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				continue
			}
			for _, forward := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", d.Name, s.Title(i), forward), func(t *testing.T) {
					c, err := newCheck(d, inDouble(s), "")
					if err != nil {
						t.Skip("the sample has no float64 form")
					}
					if len(c.wrt) > 0 {
						c.jacobian(t, forward)
					}
				})
			}
		}
	}
}

// jacobian checks the derivatives of the scalar's terms, one element of each input at a time.
func (c *check) jacobian(t *testing.T, forward bool) {
	t.Helper()
	g := c.m.Graph
	of := []*graph.Value{c.loss}
	x := c.wrt[c.rng.IntN(len(c.wrt))]
	if at := slices.Index(g.Inputs, x); c.feed[at].Len() > 16 {
		t.Skip("too large for a difference by element")
	}
	b := op.NewBuilder(g, c.info)
	blocks := [][]*graph.Value{{nil}}
	var err error
	if forward {
		err = columns(b, of, []*graph.Value{x}, GradOptions{}, blocks)
	} else {
		err = jacobianRows(b, of, []*graph.Value{x}, GradOptions{}, blocks)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := blocks[0][0]
	if v == nil {
		v = b.FullLike(x, 0)
	}
	g.SetOutputs(c.loss, v)
	if err := graph.Verify(c.m); err != nil {
		t.Fatal(err)
	}
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
	got := run(c.feed)[1]
	at := slices.Index(g.Inputs, x)
	if got.Len() != c.feed[at].Len() {
		t.Fatalf("%d elements, want %d", got.Len(), c.feed[at].Len())
	}
	const h = 1e-6
	for j := range got.Len() {
		var f [2]float64
		for k, sign := range []float64{1, -1} {
			feed := slices.Clone(c.feed)
			a := op.NewArray(feed[at].Elem, feed[at].Shape, true)
			for i := range a.Len() {
				a.F64[i] = feed[at].Float(i)
			}
			a.F64[j] += sign * h
			feed[at] = a
			f[k] = run(feed)[0].Float(0)
		}
		want := (f[0] - f[1]) / (2 * h)
		if !(math.Abs(got.Float(j)-want) <= 1e-6*(1+math.Abs(want))+1e-8*(math.Abs(f[0])+math.Abs(f[1]))) {
			t.Fatalf("element %d: %.9g, central difference %.9g\n%s", j, got.Float(j), want, describe(c.m))
		}
	}
}
