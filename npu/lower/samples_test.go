package lower_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// TestSamples lowers every sample of every operator, executes the instructions in order, and compares the results with the
// evaluator's.
func TestSamples(t *testing.T) {
	for _, name := range []string{"ref-edge", "ref-small"} {
		m, err := machine.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { samples(t, m) })
	}
}

func samples(t *testing.T, mach *machine.Machine) {
	fallbacks, lowered := map[string]string{}, 0
	for _, d := range op.All() {
		for i, s := range d.Samples {
			name := fmt.Sprintf("%s/%s", op.Key{Domain: d.Domain, Name: d.Name}, s.Title(i))
			t.Run(name, func(t *testing.T) {
				m, feed, err := op.SampleModel(d, s, 1, "")
				if err != nil {
					t.Fatal(err)
				}
				ref, err := interp.New(m, interp.Options{})
				if err != nil {
					t.Skip(err)
				}
				want, err := ref.Run(feed)
				if err != nil {
					t.Skip(err)
				}
				r, err := lower.Model(m, lower.Options{Machine: mach})
				switch {
				case err != nil:
					fallbacks[name] = err.Error()
				case r.Program == nil:
					fallbacks[name] = r.Legal.Fallbacks[0].Op + ": " + r.Legal.Fallbacks[0].Reason
				default:
					lowered++
					compare(t, r, execute(t, r, feed), want)
					return
				}
				t.Skip(fallbacks[name])
			})
		}
	}
	t.Logf("%d samples lowered, %d not", lowered, len(fallbacks))
	var names []string
	for k := range fallbacks {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("not lowered %s: %s", name, fallbacks[name])
	}
}

// execute runs the list of instructions one after the other and returns the outputs.
func execute(t *testing.T, r *lower.Result, feed []*op.Array) [][]float64 {
	t.Helper()
	p := r.Program
	s := isa.NewCore(p.Machine, p.DRAMBytes)
	for _, seg := range p.Segments {
		s.LoadBytes(seg.Addr, seg.Data)
	}
	dram := s.Words(isa.DRAM)
	for i, in := range p.Inputs {
		for j := range feed[i].Len() {
			w := uint32(isa.FloatBits(float32(feed[i].Float(j))))
			if in.Device == isa.I32 {
				w = uint32(int32(feed[i].Float(j)))
			}
			dram[in.Addr/4+int64(j)] = w
		}
	}
	for i := range r.List {
		if err := s.Exec(&r.List[i]); err != nil {
			t.Fatalf("instruction %d: %v", i, err)
		}
	}
	var out [][]float64
	for _, y := range p.Outputs {
		v := make([]float64, y.Len())
		for j := range v {
			w := dram[y.Addr/4+int64(j)]
			v[j] = float64(math.Float32frombits(w))
			if y.Device == isa.I32 {
				v[j] = float64(int32(w))
			}
		}
		out = append(out, v)
	}
	return out
}

func compare(t *testing.T, r *lower.Result, got [][]float64, want []*op.Array) {
	t.Helper()
	for i := range want {
		for j := range want[i].Len() {
			g, w := got[i][j], want[i].Float(j)
			tol := 1e-4 * max(1, math.Abs(w))
			if bits := want[i].Elem.Bits(); bits < 32 && want[i].Elem.IsFloat() {
				tol = 1e-2 * max(1, math.Abs(w))
			}
			if g != w && !(math.Abs(g-w) <= tol) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Fatalf("output %d element %d is %g, want %g\n%s", i, j, g, w, r.Legal)
			}
		}
	}
}
