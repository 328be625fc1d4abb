package sim_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"gradtool/npu/internal/sample"
	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

func program(t testing.TB) *isa.Program {
	t.Helper()
	p, err := sample.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func floats(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

func TestRunSample(t *testing.T) {
	p := program(t)
	in := sample.Inputs()
	res, err := sim.Run(context.Background(), p, in, sim.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	x, b, w := floats(in["x"]), floats(in["b"]), floats(p.Segments[0].Data)
	y, z := make([]float32, 64*32), make([]float32, 48*32)
	for i := range 64 {
		sum := float32(0)
		for j := range 32 {
			s := float32(0)
			for k := range 48 {
				s += x[i*48+k] * w[k*32+j]
			}
			y[i*32+j] = max(s+b[j], 0)
			sum += y[i*32+j]
		}
		for j := range 32 {
			y[i*32+j] *= sum
			for k := range 48 {
				z[k*32+j] += x[i*48+k] * y[i*32+j]
			}
		}
	}
	if got := floats(res.Outputs["z"]); !slices.Equal(got, z) {
		t.Errorf("z is wrong: %v, want %v", got[:8], z[:8])
	}
	for i, v := range floats(res.Outputs["y"]) {
		if v != 0 { // y + -y
			t.Fatalf("y[%d] is %v", i, v)
		}
	}
}

// TestEveryWaitCounts removes each wait of a program in turn: the simulator must notice every time.
func TestEveryWaitCounts(t *testing.T) {
	p := program(t)
	n := 0
	for q := range p.Queues {
		for i, in := range p.Queues[q] {
			if in.Op != isa.OpWait {
				continue
			}
			n++
			mutant := *p
			mutant.Queues[q] = slices.Delete(slices.Clone(p.Queues[q]), i, i+1)
			_, err := sim.Run(context.Background(), &mutant, sample.Inputs(), sim.Options{})
			if err == nil {
				t.Errorf("%s queue without the wait %d (%+v): nothing noticed", isa.Queue(q), i, in.Args)
			} else if !strings.Contains(err.Error(), "hazard") && !strings.Contains(err.Error(), "nothing has written") {
				t.Errorf("%s queue without the wait %d: %v", isa.Queue(q), i, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("the program has only %d waits", n)
	}
}

// TestEverySignalCounts removes each signal in turn.
func TestEverySignalCounts(t *testing.T) {
	p := program(t)
	for q := range p.Queues {
		for i, in := range p.Queues[q] {
			if in.Op != isa.OpSignal {
				continue
			}
			mutant := *p
			mutant.Queues[q] = slices.Delete(slices.Clone(p.Queues[q]), i, i+1)
			if _, err := sim.Run(context.Background(), &mutant, sample.Inputs(), sim.Options{}); err == nil {
				t.Errorf("%s queue without the signal %d: nothing noticed", isa.Queue(q), i)
			}
		}
	}
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(p *isa.Program, in map[string][]byte)
	}{
		{"missing input", `input "x" is missing`, func(_ *isa.Program, in map[string][]byte) { delete(in, "x") }},
		{"unknown input", `did you mean "x"`, func(_ *isa.Program, in map[string][]byte) { in["xx"] = nil }},
		{"short input", "bytes given", func(_ *isa.Program, in map[string][]byte) { in["x"] = in["x"][4:] }},
		{"uninitialised", `of node "matmul"`, func(p *isa.Program, _ map[string][]byte) { p.Segments = nil }},
		{"out of range", "operand a is at", func(p *isa.Program, _ map[string][]byte) {
			q := slices.Clone(p.Queues[isa.Matrix])
			i := slices.IndexFunc(q, func(in isa.Instr) bool { return in.Op == isa.OpMatmul })
			a := *q[i].Args.(*isa.Matmul)
			a.A = isa.Local(p.Machine.Scratchpad.Bytes) - 4
			q[i].Args = &a
			p.Queues[isa.Matrix] = q
		}},
		{"incomplete output", `output "y" is not written`, func(p *isa.Program, _ map[string][]byte) {
			for q := range p.Queues {
				p.Queues[q] = nil
			}
		}},
		{"wrong queue", "not of the vector queue", func(p *isa.Program, _ map[string][]byte) {
			p.Queues[isa.Vector] = append(slices.Clone(p.Queues[isa.Vector]), p.Queues[isa.Load][0])
		}},
		{"fallback", "cannot do", func(p *isa.Program, _ map[string][]byte) { p.Fallbacks = []string{"Foo"} }},
		{"deadlock", "deadlock", func(p *isa.Program, _ map[string][]byte) {
			p.Queues[isa.Load] = append([]isa.Instr{{Op: isa.OpWait, Node: -1, Args: &isa.Sync{Sem: 9, Value: 1}}}, p.Queues[isa.Load]...)
		}},
	} {
		p, in := program(t), sample.Inputs()
		c.change(p, in)
		if _, err := sim.Run(context.Background(), p, in, sim.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestHostTypes(t *testing.T) {
	for _, c := range []struct{ typ, host, dev string }{
		{"int64", "\xff\xff\xff\xff\xff\xff\xff\xff\x07\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\x07\x00\x00\x00"},
		{"bool", "\x00\x01", "\x00\x00\x00\x00\x01\x00\x00\x00"},
		{"int8", "\x80", "\x80\xff\xff\xff"},
		{"uint16", "\xff\xff", "\xff\xff\x00\x00"},
		{"float", "abcd", "abcd"},
		{"float16", "ab", "ab"},
	} {
		dev, err := sim.ToDevice(c.typ, []byte(c.host))
		if err != nil || string(dev) != c.dev {
			t.Errorf("%s: %x, %v", c.typ, dev, err)
		}
		host, err := sim.FromDevice(c.typ, dev)
		if err != nil || !bytes.Equal(host, []byte(c.host)) {
			t.Errorf("%s comes back as %x, %v", c.typ, host, err)
		}
	}
	if _, err := sim.ToDevice("int64", []byte{0, 0, 0, 0, 1, 0, 0, 0}); err == nil {
		t.Error("an integer of 33 bits is accepted")
	}
	if _, err := sim.ToDevice("double", nil); err == nil {
		t.Error("double is accepted")
	}
}
