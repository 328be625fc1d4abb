package emit

import (
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// TestNestTiles computes two sums that reduce different dimensions in tiles of all shapes. Where the emitter takes the tiles, the
// instructions give what the numeric contract does.
func TestNestTiles(t *testing.T) {
	const n = 24
	mach, err := machine.Builtin("ref-small")
	if err != nil {
		t.Fatal(err)
	}
	x := &legal.Buffer{ID: 0, Elem: graph.Float, Len: n * n, Role: legal.Input}
	z := &legal.Buffer{ID: 1, Elem: graph.Float, Len: n, Role: legal.Input}
	u := &legal.Buffer{ID: 2, Elem: graph.Float, Len: 1, Role: legal.Output}
	w := &legal.Buffer{ID: 3, Elem: graph.Float, Len: 1, Role: legal.Output}
	addr := map[*legal.Buffer]int64{x: 0, z: 4 * n * n, u: 4*n*n + 128, w: 4*n*n + 192}
	k := &legal.Nest{
		Dims: []int{n, n},
		In: []*legal.Access{
			{Buf: x, Axes: []legal.Axis{{Size: n, Stride: n, Coef: []int{1, 0}}, {Size: n, Stride: 1, Coef: []int{0, 1}}}},
			{Buf: z, Axes: []legal.Axis{{Size: n, Stride: 1, Coef: []int{1, 0}}}},
		},
		Body: []legal.Stmt{{Op: legal.Sum, Elem: graph.Float, Args: []int{0}, Over: 3}, {Op: legal.Sum, Elem: graph.Float, Args: []int{1}, Over: 1}},
		Out:  []legal.Store{{To: &legal.Access{Buf: u}, Value: 2}, {To: &legal.Access{Buf: w}, Value: 3}},
	}
	in := map[*legal.Buffer][]uint32{x: make([]uint32, n*n), z: make([]uint32, n)}
	for _, b := range []*legal.Buffer{x, z} {
		for i := range in[b] {
			in[b][i] = math.Float32bits(float32(math.Sin(float64(i + 1))))
		}
	}
	taken := 0
	for _, tile := range [][]int{{n, n}, {8, n}, {n, 8}, {8, 8}, {7, 5}} {
		e := New(mach, addr)
		if err := e.Nest(k, tile); err != nil {
			continue
		}
		taken++
		ref := &Exact{Machine: mach, Mem: map[*legal.Buffer][]uint32{x: in[x], z: in[z]}}
		if err := ref.Kernel(k, nestPlan(k, tile)); err != nil {
			t.Fatal(err)
		}
		core := isa.NewCore(mach, 4*n*n+256)
		for _, b := range []*legal.Buffer{x, z} {
			copy(core.Words(isa.DRAM)[addr[b]/4:], in[b])
		}
		for i := range e.List {
			if err := core.Exec(&e.List[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range []*legal.Buffer{u, w} {
			if got := core.Words(isa.DRAM)[addr[b]/4]; got != ref.Mem[b][0] {
				t.Errorf("tiles %v: sum %d is %v, want %v", tile, b.ID, math.Float32frombits(got), math.Float32frombits(ref.Mem[b][0]))
			}
		}
	}
	if taken < 2 {
		t.Errorf("%d ways to cut the nest are taken", taken)
	}
}
