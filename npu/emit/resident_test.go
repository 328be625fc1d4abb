package emit

import (
	"fmt"
	"testing"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
	"gradtool/npu/token"
)

// product returns the contraction of an m x k and a k x n matrix, and how its buffers lie in DRAM.
func product(m, k, n int) (*legal.Contract, map[*legal.Buffer]int64, int64) {
	addr := map[*legal.Buffer]int64{}
	at := int64(0)
	matrix := func(role legal.Role, rows, cols, row, col int) *legal.Access {
		b := &legal.Buffer{ID: len(addr), Elem: graph.Float, Len: rows * cols, Role: role}
		addr[b] = at
		at += int64(b.Bytes()+63) / 64 * 64
		x := make([]int, 3)
		y := make([]int, 3)
		x[row], y[col] = 1, 1
		return &legal.Access{Buf: b, Axes: []legal.Axis{{Size: rows, Stride: cols, Coef: x}, {Size: cols, Stride: 1, Coef: y}}}
	}
	c := &legal.Contract{Dims: []int{m, n, k}, Kind: []legal.Kind{legal.M, legal.N, legal.K},
		A: matrix(legal.Input, m, k, 0, 2), B: matrix(legal.Input, k, n, 2, 1), C: matrix(legal.Output, m, n, 0, 1)}
	return c, addr, at
}

// simulated returns the time of a plan in the simulator.
func simulated(t *testing.T, m *machine.Machine, k *legal.Contract, p *Plan, addr map[*legal.Buffer]int64, bytes int64) float64 {
	t.Helper()
	e := New(m, addr)
	if err := e.Contract(k, p); err != nil {
		t.Fatal(err)
	}
	out := &isa.Program{Machine: m, DRAMBytes: bytes, Nodes: []isa.Source{{}}}
	var err error
	if out.Queues, err = token.Insert(m, bytes, e.List); err != nil {
		t.Fatal(err)
	}
	tl, err := sim.Time(out)
	if err != nil {
		t.Fatal(err)
	}
	return tl.Cycles
}

// TestLarge checks that products bound by computing keep the array busy: neither transfers nor the store of a result that fills the accumulator
// are waited for.
func TestLarge(t *testing.T) {
	mach, err := machine.Builtin("ref-edge")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range [][3]int{{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {256, 2304, 512}, {64, 576, 8192}, {700, 333, 1000}} {
		k, addr, bytes := product(d[0], d[1], d[2])
		p := New(mach, addr).ContractPlans(k)[0]
		_, array := flow(mach, d[0], d[2], d[1])
		if share := float64(array) / simulated(t, mach, k, p, addr, bytes); share < 0.97 {
			t.Errorf("%v: the array is busy for %.3f of the time, tiles %v, want 0.97", d, share, p.Tile)
		}
	}
}

// TestResident checks plans of products whose operands fit on chip: the estimate is that of the simulator, the time near what the units
// need, each operand is loaded once, and no other plan is more than 1 % faster.
func TestResident(t *testing.T) {
	for _, c := range []struct {
		machine string
		m, k, n int
		share   float64 // of the time, that the busiest unit needs
	}{
		{"ref-edge", 64, 64, 64, 0.86},
		{"ref-edge", 128, 128, 128, 0.90},
		{"ref-edge", 100, 300, 70, 0.86},
		{"ref-edge", 256, 256, 256, 0.98},
		{"ref-edge", 48, 512, 64, 0.86},
		{"ref-edge", 33, 17, 65, 0.62},
		{"ref-small", 64, 64, 64, 0.89},
		{"ref-server", 256, 256, 256, 0.42},
	} {
		t.Run(fmt.Sprintf("%s/%dx%dx%d", c.machine, c.m, c.k, c.n), func(t *testing.T) {
			mach, err := machine.Builtin(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			k, addr, bytes := product(c.m, c.k, c.n)
			e := New(mach, addr)
			plans := e.ContractPlans(k)
			p := plans[0]
			if err := p.Check(k); err != nil {
				t.Fatal(err)
			}
			got := simulated(t, mach, k, p, addr, bytes)
			if e.estimate(k, p); got < 0.94*p.Compute || got > 1.06*p.Compute {
				t.Errorf("%v cycles, the estimate was %v", got, p.Compute)
			}
			for _, q := range plans[1:min(len(plans), 40)] {
				if other := simulated(t, mach, k, q, addr, bytes); 1.01*other < got {
					t.Errorf("tiles %v take %v cycles, the plan chosen, tiles %v after %v, takes %v", q.Tile, other, p.Tile, p.First, got)
				}
			}
			_, array := flow(mach, c.m, c.n, c.k)
			dram := 4 * (c.m*c.k + c.k*c.n + c.m*c.n) / mach.DMA.BytesPerCycle
			if share := float64(max(array, dram)) / got; share < c.share {
				t.Errorf("%.3f of %v cycles are needed, want %v", share, got, c.share)
			}
			moved := int64(0)
			if err := e.Contract(k, p); err != nil {
				t.Fatal(err)
			}
			for i := range e.List {
				w := e.List[i].Work(mach)
				moved += w.Read + w.Written
			}
			if want := 4 * int64(c.m*c.k+c.k*c.n+c.m*c.n); moved != want {
				t.Errorf("%d bytes moved, want %d", moved, want)
			}
		})
	}
}
