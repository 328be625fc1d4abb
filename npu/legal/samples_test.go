package legal_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestSamples lowers every sample of every operator, runs the program plainly and compares the results with the
// evaluator's. Operators that are not lowered are counted, not failed.
func TestSamples(t *testing.T) {
	fallbacks, lowered := map[string]string{}, 0
	for _, d := range op.All() {
		for i, s := range d.Samples {
			name := fmt.Sprintf("%s/%s", op.Key{Domain: d.Domain, Name: d.Name}, s.Title(i))
			t.Run(name, func(t *testing.T) {
				m, feed, want := evaluated(t, d, s)
				p, err := legal.Lower(m)
				if err != nil {
					fallbacks[name] = err.Error()
					t.Skip(err)
				}
				if len(p.Fallbacks) > 0 {
					fallbacks[name] = p.Fallbacks[0].Op + ": " + p.Fallbacks[0].Reason
					t.Skip(fallbacks[name])
				}
				if err := p.Verify(); err != nil {
					t.Fatalf("%v\n%s", err, p)
				}
				lowered++
				compare(t, p, feed, want)
			})
		}
	}
	t.Logf("%d samples lowered, %d not", lowered, len(fallbacks))
	for _, name := range sorted(fallbacks) {
		t.Logf("fallback %s: %s", name, fallbacks[name])
	}
}

// evaluated returns a sample's model, its inputs, and the evaluator's results. A sample that this does not compute is skipped.
func evaluated(t *testing.T, d *op.Def, s op.Sample) (m *graph.Model, feed, want []*op.Array) {
	t.Helper()
	m, feed, err := op.SampleModel(d, s, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Skip(err)
	}
	if want, err = machine.Run(feed); err != nil {
		t.Skip(err)
	}
	return m, feed, want
}

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// evaluate returns what the evaluator makes of m.
func evaluate(t *testing.T, m *graph.Model, feed []*op.Array) []*op.Array {
	t.Helper()
	ref, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := ref.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// fused returns the kernels of m, joined wherever they can be.
func fused(t *testing.T, m *graph.Model) *legal.Program {
	t.Helper()
	p, err := legal.Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	f := &legal.Fuser{Fits: func(*legal.Nest) bool { return true }, FitsPost: func(*legal.Contract) bool { return true }}
	f.Run(p)
	return p
}

func compare(t *testing.T, p *legal.Program, feed, want []*op.Array) {
	t.Helper()
	mem := make([][]float64, len(p.Buffers))
	for i, in := range p.Inputs {
		x := make([]float64, in.Buf.Len)
		for j := range x {
			x[j] = feed[i].Float(j)
		}
		mem[in.Buf.ID] = x
	}
	if err := p.Run(mem); err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	for i, out := range p.Outputs {
		if fmt.Sprint(out.Shape) != fmt.Sprint(want[i].Shape) {
			t.Fatalf("output %d has shape %v, want %v", i, out.Shape, want[i].Shape)
		}
		for j := range want[i].Len() {
			g, w := mem[out.Buf.ID][j], want[i].Float(j)
			tol := 1e-4 * max(1, math.Abs(w))
			if bits := want[i].Elem.Bits(); bits < 32 && want[i].Elem.IsFloat() {
				tol = 1e-2 * max(1, math.Abs(w))
			}
			if g != w && !(math.Abs(g-w) <= tol) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Fatalf("output %d element %d is %g, want %g\n%s", i, j, g, w, p)
			}
		}
	}
}
