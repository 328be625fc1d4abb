package autodiff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// report is a situation in which somebody's derivative was missing, wrong or impossible to build, by the public record of
// other projects (name), as a small model. Its gradient with respect to all float inputs is compared with central
// differences, at random inputs with symbols bound to 2, unless the exact values at given inputs are listed.
type report struct {
	name, what string
	head       string // opsets and functions; "": opset 17
	model      string // in the text syntax
	in         []op.Arg
	want       map[string][]float64 // gradients for a cotangent of ones, by input
	order      int                  // 0: 1
	functions  string               // model-local functions
}

// TestReports builds and checks the derivative of every reported situation.
func TestReports(t *testing.T) {
	for _, r := range reports() {
		t.Run(r.name, func(t *testing.T) {
			t.Log(r.what)
			m, feed := r.build(t)
			if r.want != nil {
				r.compare(t, m, feed)
				return
			}
			c := &check{m: m, feed: feed, rng: rand.New(rand.NewPCG(5, 5))}
			var err error
			if c.info, err = op.Infer(m); err != nil {
				t.Fatal(err)
			}
			c.wrt = Reached(m, FloatOutputs(m), FloatInputs(m))
			if len(c.wrt) == 0 {
				t.Fatal("no input has a gradient")
			}
			machine, err := interp.New(m, interp.Options{Wide: true})
			if err != nil {
				t.Fatal(err)
			}
			outs, err := machine.Run(feed)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.weigh(m.Graph.Outputs, outs); err != nil {
				t.Fatal(err)
			}
			for o := 1; o <= max(r.order, 1); o++ {
				if err := c.differentiate(o); err != nil {
					t.Fatal(err)
				}
			}
			for n := range m.Graph.AllNodes() {
				if n.Domain != "" && n.Meta.Get(graph.MetaRole) == graph.RoleBackward {
					t.Errorf("node %s of the gradient is none of the standard's", n.Label())
				}
			}
			c.compare(t)
		})
	}
}

// build parses the model, brings it into canonical form and makes its inputs.
func (r report) build(t *testing.T) (*graph.Model, []*op.Array) {
	t.Helper()
	head := r.head
	if head == "" {
		head = `<ir_version: 8, opset_import: ["" : 17]>`
	}
	m, err := graph.Parse(head + "\ng " + r.model + "\n" + r.functions)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Inline(m, func(*graph.Function) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if err := op.Upgrade(m); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Infer(m); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(8, 8))
	var feed []*op.Array
	for i, v := range m.Graph.Inputs {
		var shape []int
		for _, d := range v.Type.Shape {
			n, ok := d.Int()
			if !ok {
				n = 2
			}
			shape = append(shape, int(n))
		}
		a := op.NewArray(v.Type.Elem, shape, false)
		for j := range a.Len() {
			x := math.Round(1000*(rng.Float64()*2-1)) / 1000
			switch {
			case i < len(r.in) && r.in[i].Values != nil:
				x = r.in[i].Values[j]
			case v.Type.Elem.IsInt():
				x = float64(rng.IntN(16))
			}
			if a.IsFloat() {
				a.SetFloat(j, x)
			} else {
				a.I64[j] = int64(x)
			}
		}
		feed = append(feed, a.Round())
	}
	return m, feed
}

// compare evaluates the gradients for cotangents of ones, in the model's own types, and compares with the values listed.
func (r report) compare(t *testing.T, m *graph.Model, feed []*op.Array) {
	t.Helper()
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(m.Graph, info)
	var seeds []Seed
	for _, y := range FloatOutputs(m) {
		seeds = append(seeds, Seed{y, b.FullLike(y, 1)})
	}
	wrt := FloatInputs(m)
	grads, err := Reverse(b, seeds, wrt)
	if err != nil {
		t.Fatal(err)
	}
	if r.order == 2 {
		seeds = nil
		for _, g := range grads {
			if g != nil {
				seeds = append(seeds, Seed{g, b.FullLike(g, 1)})
			}
		}
		if grads, err = Reverse(b, seeds, wrt); err != nil {
			t.Fatal(err)
		}
	}
	for i, g := range grads {
		if g == nil {
			grads[i] = b.FullLike(wrt[i], 0)
		}
	}
	m.Graph.SetOutputs(grads...)
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, v := range wrt {
		if want, ok := r.want[v.Name]; ok {
			seen++
			if got := out[i]; got.Len() != len(want) || got.Elem != v.Type.Elem {
				t.Errorf("gradient of %s: %s, want %d elements of %s", v.Name, got, len(want), v.Type.Elem)
			} else {
				compareClosely(t, i, got, want)
			}
		}
	}
	if seen != len(r.want) {
		t.Errorf("%d of %d gradients found", seen, len(r.want))
	}
}

// TestReportStatistics: of a batch normalization, running statistics are no parameters; its training mode's result does not
// depend on the momentum, and neither does the gradient (microsoft/onnxruntime#17879, #29790).
func TestReportStatistics(t *testing.T) {
	var first []float64
	for _, momentum := range []string{"0.0", "0.5", "1.0"} {
		r := report{model: `(float[2,4,3] x) => (float[2,4,3] y) <float[4] s = {1,2,1,3}, float[4] b = {0,1,0,1}, float[4] mean = {0,0,0,0}, float[4] var = {1,1,1,1}> {
			y, m1, v1 = BatchNormalization<training_mode: int = 1, momentum: float = ` + momentum + `>(x, s, b, mean, var) }`}
		m, feed := r.build(t)
		info, err := op.Infer(m)
		if err != nil {
			t.Fatal(err)
		}
		params := Params(m, m.Graph.Outputs)
		if len(params) != 2 || params[0].Name != "s" || params[1].Name != "b" {
			t.Fatalf("parameters %v, want s and b", params)
		}
		b := op.NewBuilder(m.Graph, info)
		y := m.Graph.Outputs[0]
		grads, err := Reverse(b, []Seed{{y, b.Mul(y, y)}}, m.Graph.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.SetOutputs(grads...)
		machine, err := interp.New(m, interp.Options{Wide: true})
		if err != nil {
			t.Fatal(err)
		}
		out, err := machine.Run(feed)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out[0].F64
		}
		if !slices.Equal(first, out[0].F64) {
			t.Errorf("momentum %s changes the gradient", momentum)
		}
	}
}

// TestReportUnwanted: what nobody asks for costs no node and leaves no result dangling: the gradient of a convolution by one
// of its operands (microsoft/onnxruntime#4762), and of one output among many (#21327).
func TestReportUnwanted(t *testing.T) {
	r := report{model: `(float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,3,3] y, float[1,3,3,3] z, float other) {
		y = Conv(x, w)
		z = Exp(y)
		other = ReduceSum<keepdims: int = 0>(z) }`}
	for _, wrt := range []string{"x", "w"} {
		m, _ := r.build(t)
		info, err := op.Infer(m)
		if err != nil {
			t.Fatal(err)
		}
		x := m.Graph.Inputs[slices.IndexFunc(m.Graph.Inputs, func(v *graph.Value) bool { return v.Name == wrt })]
		res, err := Gradient(m, info, GradOptions{Of: m.Graph.Outputs[:1], Wrt: []*graph.Value{x}, Seeds: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(len(res.Grads), len(res.Cotangents), len(m.Graph.Outputs)); got != "1 1 4" {
			t.Errorf("%s: gradients, cotangents, outputs: %s", wrt, got)
		}
		for _, n := range m.Graph.Nodes {
			used := false
			for _, v := range n.Out {
				used = used || v != nil && v.NumUses() > 0
			}
			if !used {
				t.Errorf("%s: nobody reads node %s", wrt, n.Label())
			}
		}
		if err := graph.Verify(m); err != nil {
			t.Error(err)
		}
	}
}
