package batch

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestSquare divides graphs in which all axes have the same length, so that nothing but the rules tells which is the batch: operators with
// several operands, each with the batch in its first axis, in its second, or not at all.
func TestSquare(t *testing.T) {
	ops := []string{
		`GatherElements<axis=0>(A, I)`, `GatherElements<axis=1>(A, I)`, `Gather<axis=0>(A, I)`, `Gather<axis=1>(A, I)`,
		`GatherND(A, I2)`, `GatherND<batch_dims=1>(A, I1)`, `ScatterElements<axis=0,reduction="add">(A, I, B)`, `ScatterElements<axis=1,reduction="add">(A, I, B)`,
		`ScatterND<reduction="add">(A, I1, B)`, `ScatterND<reduction="add">(A, I2, row)`, `MatMul(A, B)`, `Gemm<transA=1>(A, B)`, `Gemm<transB=1>(A, B)`, `Gemm<transA=1,transB=1>(A, B)`,
		`Add(A, B)`, `Where(C, A, B)`, `Concat<axis=0>(A, B)`, `Concat<axis=1>(A, B)`, `Einsum<equation="ij,jk->ik">(A, B)`, `Einsum<equation="ij,ij->i">(A, B)`, `Einsum<equation="ij,kl->">(A, B)`,
		`Softmax<axis=0>(A)`, `Softmax<axis=1>(A)`, `CumSum(A, zero)`, `ReverseSequence<batch_axis=0,time_axis=1>(A, length)`, `ReverseSequence<batch_axis=1,time_axis=0>(A, length)`,
		`SoftmaxCrossEntropyLoss(A, label)`, `OneHot<axis=0>(I, four, values)`, `TopK<axis=0>(A, two)`, `ArgMax<axis=0>(A)`, `LpNormalization<axis=0>(A)`, `Mean(A, B, row2)`,
	}
	forms := [...]string{"Sin(%)", "Transpose(%)", "Identity(w%)"}
	rng := rand.New(rand.NewPCG(9, 1))
	runs := 0
	for _, o := range ops {
		for a, fa := range forms {
			for b, fb := range forms {
				if b > 0 && !strings.ContainsAny(o, "IBC") {
					continue
				}
				form := func(f, x string) string { return strings.ReplaceAll(f, "%", x) }
				text := `g (float[4,4] x, float[4,4] y, int64[4,4] i, float[4,4] wx, float[4,4] wy, int64[4,4] wi) => (float z) {
					A = ` + form(fa, "x") + ` B = ` + form(fb, "y") + ` I = ` + strings.Replace(form(fb, "i"), "Sin", "Abs", 1) + `
					k0 = Constant<value_ints=[0]>() k1 = Constant<value_ints=[1]>() k2 = Constant<value_ints=[2]>() kk = Constant<value_ints=[1,1]>() zero = Constant<value: tensor = int64 {0}>()
					I2 = Slice(I, k0, k2, k1) I1 = Slice(I, k0, k1, k1) label = Squeeze(I1, k1) length = Add(label, k1) C = Greater(B, row2)
					row = Slice(B, k0, k1, k1) row1 = Squeeze(row, k1) row2 = Slice(B, k0, k1, k0) four = Constant<value_ints=[4]>() two = Constant<value_ints=[2]>() values = Constant<value_floats=[0.5,2.0]>()
					z = ` + o + ` }`
				text = strings.Replace(text, "ScatterND<reduction=\"add\">(A, I2, row)", "ScatterND<reduction=\"add\">(A, I2, row1)", 1)
				fresh := func() *graph.Model {
					m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]> ` + text)
					if err != nil {
						t.Fatal(err)
					}
					m.Graph.Outputs[0].Type = graph.Type{}
					if err := m.Graph.Sort(); err != nil {
						t.Fatal(err)
					}
					return m
				}
				m := fresh()
				if _, err := op.Infer(m); err != nil {
					t.Fatalf("%s: %v", o, err)
				}
				feed := feeds(m, rng, nil)
				for _, x := range feed {
					for e := range x.Len() {
						if x.I64 != nil {
							x.I64[e] = int64(rng.IntN(4))
						}
					}
				}
				want, err := machine(t, m).Run(feed)
				if err != nil {
					t.Fatalf("%s: %v", o, err)
				}
				for _, axis := range []int{0, 1} {
					m := fresh()
					info, err := op.Infer(m)
					if err != nil {
						t.Fatal(err)
					}
					var from []origin
					for _, x := range m.Graph.Inputs[:3] {
						from = append(from, origin{x, plain(axis)})
					}
					_, err = split(m, info, Options{Parts: 3}, from, graph.Known(4))
					if errors.Is(err, ErrNothing) {
						continue
					}
					if err := errors.Join(err, graph.Verify(m)); err != nil {
						t.Fatalf("%s: %v", o, err)
					}
					got, err := machine(t, m).Run(feed)
					if err != nil {
						t.Errorf("%s of %s, %s, axis %d: %v\n%s", o, forms[a], forms[b], axis, err, m)
						continue
					}
					runs++
					if d, err := distance(want[0], got[0]); err != nil || d > 1e-5 {
						t.Errorf("%s of %s, %s, axis %d: %v, distance %v\n%s", o, forms[a], forms[b], axis, err, d, m)
					}
				}
			}
		}
	}
	t.Logf("%d graphs", runs)
	if runs < 300 {
		t.Error("too few")
	}
}
