package op_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestEvalOfWrongTypes: kernels may rely on the types that the schema allows; for others the error names the operand,
// and nothing panics.
func TestEvalOfWrongTypes(t *testing.T) {
	for _, c := range []struct{ node, in, out, want string }{
		{"GlobalLpPool <p: int = 2>", "int64[1,2,3,4]", "int64[1,2,1,1]", "input 0 (X) has type tensor(int64)"},
		{"GlobalAveragePool", "int32[1,2,3,4]", "int32[1,2,1,1]", "input 0 (X) has type tensor(int32)"},
		{"Softmax", "int64[2,3]", "int64[2,3]", "input 0 (input) has type tensor(int64)"},
	} {
		m, err := graph.Parse(`<ir_version: 8, opset_import: ["" : 22]> g (` + c.in + ` x) => (` + c.out + ` y) { y = ` + c.node + ` (x) }`)
		if err != nil {
			t.Fatal(err)
		}
		machine, err := interp.New(m, interp.Options{})
		if err == nil {
			shape, _ := m.Graph.Inputs[0].Type.Shape.Ints()
			dims := make([]int, len(shape))
			for i, d := range shape {
				dims[i] = int(d)
			}
			_, err = machine.Run([]*op.Array{op.NewArray(m.Graph.Inputs[0].Type.Elem, dims, false)})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.node, err, c.want)
		}
	}
}
