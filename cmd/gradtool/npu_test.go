package main

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	npu "gradtool/npu/binary"
	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

// lowered makes the training step of a demo model for a machine.
func lowered(t *testing.T, demo, loss, dims, machine string) *isa.Program {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, line := range []string{
		"demo " + demo + " -q -o " + in("m.onnx"),
		"grad -q --loss " + loss + " " + in("m.onnx") + " -o " + in("t.onnx"),
		"lower -q " + dims + " --machine " + machine + " " + in("t.onnx") + " -o " + in("t.npu"),
	} {
		if code := Main(append([]string{"gradtool"}, strings.Fields(line)...)); code != 0 {
			t.Fatalf("gradtool %s: exit code %d", line, code)
		}
	}
	data, err := os.ReadFile(in("t.npu"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := npu.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// someInputs returns small values for the inputs of a program.
func someInputs(p *isa.Program) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 1))
	in := map[string][]byte{}
	for i := range p.Inputs {
		x := &p.Inputs[i]
		if x.Default {
			continue
		}
		var raw []byte
		for range x.Len() {
			if x.Type == "int64" {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(r.IntN(2)))
			} else {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r.NormFloat64())))
			}
		}
		in[x.Name] = raw
	}
	return in
}

// TestLoweredWaits removes waits of lowered training steps: the simulator must notice each time.
func TestLoweredWaits(t *testing.T) {
	for _, c := range []struct {
		demo, loss, dims, machine string
		stride                    int // every how manyeth wait
	}{
		{"regression", "mse", "--dim N=2", "ref-small", 1},
		{"lenet", "softmax-cross-entropy", "--dim N=2", "ref-edge", 7},
		{"residual", "softmax-cross-entropy", "--dim N=2", "ref-small", 3},
		{"transformer", "softmax-cross-entropy,axis=-1", "--dim N=2 --dim T=8", "ref-small", 1},
	} {
		p := lowered(t, c.demo, c.loss, c.dims, c.machine)
		in := someInputs(p)
		if _, err := sim.Run(context.Background(), p, in, sim.Options{}); err != nil {
			t.Fatalf("%s: %v", c.demo, err)
		}
		n, tried := 0, 0
		for q := range p.Queues {
			for i, x := range p.Queues[q] {
				if x.Op != isa.OpWait {
					continue
				}
				if n++; n%c.stride != 0 {
					continue
				}
				tried++
				mutant := *p
				mutant.Queues[q] = slices.Delete(slices.Clone(p.Queues[q]), i, i+1)
				if _, err := sim.Run(context.Background(), &mutant, in, sim.Options{}); err == nil {
					t.Errorf("%s: the %s queue does without the wait %d", c.demo, isa.Queue(q), i)
				}
			}
		}
		if tried == 0 || tried < 10 && tried < n {
			t.Errorf("%s: only %d of %d waits tried", c.demo, tried, n)
		}
		t.Logf("%s: %d of %d waits", c.demo, tried, n)
	}
}
