package lower_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
)

var update = flag.Bool("update", false, "write the list of samples that are not lowered")

// TestSamples lowers every sample of every operator, executes the instructions in the simulator, and compares the results with the
// evaluator's, and with those by the numeric contract bit by bit, in all arithmetics that a machine can have. What is not lowered must be
// listed with the reason, and the list be that of testdata/fallbacks.txt.
func TestSamples(t *testing.T) {
	for _, name := range []string{"ref-edge", "ref-small"} {
		m, err := machine.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { samples(t, m) })
		if name == "ref-small" {
			m := *m
			m.Numerics.Fused, m.Numerics.Flush = true, true
			t.Run(name+", fused, flushing", func(t *testing.T) { samples(t, &m) })
		}
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
				r, err := lower.Model(m, lower.Options{Machine: mach, Plain: i%3 == 2})
				if err != nil {
					t.Fatal(err)
				}
				if r.Program == nil {
					f := r.Legal.Fallbacks[0]
					fallbacks[name] = fmt.Sprintf("%s (%s): %s", f.Node, f.Op, f.Reason)
					return
				}
				lowered++
				compare(t, r, execute(t, r, feed), want)
			})
		}
	}
	var list strings.Builder
	fmt.Fprintf(&list, "%d samples are lowered, %d are not:\n", lowered, len(fallbacks))
	for _, name := range slices.Sorted(maps.Keys(fallbacks)) {
		fmt.Fprintf(&list, "%s: %s\n", name, fallbacks[name])
	}
	if t.Failed() {
		return
	}
	golden := "testdata/fallbacks.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(list.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != list.String() {
		t.Errorf("%s is not what is lowered now: run the test with -update and look at the difference\n%s", golden, list.String())
	}
}

// agree lowers a sample with the feed of a seed, executes it and compares the results with the evaluator's.
func agree(t *testing.T, mach *machine.Machine, s op.Sample, seed uint64) *lower.Result {
	t.Helper()
	m, feed, err := op.SampleModel(&op.Def{}, s, seed, "")
	if err != nil {
		t.Fatal(err)
	}
	ref, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := ref.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := lower.Model(m, lower.Options{Machine: mach})
	if err != nil {
		t.Fatal(err)
	}
	if r.Program == nil {
		t.Fatalf("not lowered: %v", r.Legal.Fallbacks)
	}
	compare(t, r, execute(t, r, feed), want)
	return r
}

// execute runs the program in the simulator and returns the outputs.
func execute(t *testing.T, r *lower.Result, feed []*op.Array) []*op.Array {
	t.Helper()
	inputs := map[string][]byte{}
	for i, in := range r.Program.Inputs {
		raw, err := feed[i].Tensor().Data.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		inputs[in.Name] = raw
	}
	res, err := sim.Run(context.Background(), r.Program, inputs, sim.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Legal)
	}
	exact, err := r.Execute(inputs)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Legal)
	}
	for _, y := range r.Program.Outputs {
		sameBits(t, &y, res.Outputs[y.Name], exact[y.Name], r)
	}
	var out []*op.Array
	for _, y := range r.Program.Outputs {
		elem, _ := graph.ParseDataType(y.Type)
		a, err := op.FromTensor(&graph.Tensor{Elem: elem, Dims: y.Shape, Data: graph.Bytes(res.Outputs[y.Name])}, false)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// sameBits compares what the simulator and the reference give for an output. The bits of a NaN are open.
func sameBits(t *testing.T, y *isa.Tensor, got, want []byte, r *lower.Result) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	if len(got) != len(want) {
		t.Fatalf("output %s has %d bytes, the reference %d", y.Name, len(got), len(want))
	}
	n := len(got) / max(int(y.Len()), 1)
	for i := 0; i < len(got); i += n {
		g, w := got[i:i+n], want[i:i+n]
		if bytes.Equal(g, w) || y.Type == "float" && isNaN(g) && isNaN(w) {
			continue
		}
		t.Fatalf("output %s: element %d has the bits %x, by the reference %x\n%s%s", y.Name, i/n, g, w, r.Legal, r.Tiles())
	}
}

func isNaN(b []byte) bool {
	x := math.Float32frombits(binary.LittleEndian.Uint32(b))
	return x != x
}

func compare(t *testing.T, r *lower.Result, got, want []*op.Array) {
	t.Helper()
	for i := range want {
		for j := range want[i].Len() {
			g, w := got[i].Float(j), want[i].Float(j)
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
