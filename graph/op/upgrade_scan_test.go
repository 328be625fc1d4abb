package op_test

import (
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestUpgradeScan runs a Scan of opset 8, whose operands carry a batch axis, through two nested Scans: running sums of
// two sequences, and what they end with.
func TestUpgradeScan(t *testing.T) {
	m, err := graph.Parse(`<ir_version: 3, opset_import: ["" : 8]>
g (float[2,1] start, float[2,3,1] x) => (float[2,1] last, float[2,3,1] sums)
{
   last, sums = Scan ("", start, x) <num_scan_inputs: int = 1, body: graph = step (float[1] s, float[1] v) => (float[1] next, float[1] out)
   {
      next = Add (s, v)
      out = Identity (next)
   }>
}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Upgrade(m); err != nil {
		t.Fatal(err)
	}
	checkNewest(t, m)
	if err := graph.Verify(m); err != nil {
		t.Fatal(err)
	}
	if err := op.Verify(m); err != nil {
		t.Fatal(err)
	}
	outer := m.Graph.Nodes[0]
	if inner := outer.Subgraph("body").Nodes[0]; inner.Op != "Scan" || outer.Int("num_scan_inputs", 0) != 2 || inner.Int("num_scan_inputs", 0) != 1 {
		t.Fatalf("got\n%s", m)
	}
	mach, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Skipf("not evaluated: %v", err)
	}
	start, x := op.NewArray(graph.Float, []int{2, 1}, false), op.NewArray(graph.Float, []int{2, 3, 1}, false)
	copy(start.F32, []float32{10, 20})
	copy(x.F32, []float32{1, 2, 3, 4, 5, 6})
	out, err := mach.Run([]*op.Array{start, x})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{16, 35}; !slices.Equal(out[0].F32, want) {
		t.Errorf("last is %v, want %v", out[0].F32, want)
	}
	if want := []float32{11, 13, 16, 24, 29, 35}; !slices.Equal(out[1].F32, want) {
		t.Errorf("sums are %v, want %v", out[1].F32, want)
	}
}
