package autodiff

import (
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestParams: which initializers count as trainable.
func TestParams(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"weight and bias", `float[2] w = {1, 2}, float b = {2} > { p = Mul (x, w) y = Add (p, b) }`, []string{"w", "b"}},
		{"unused", `float[2] w = {1, 2}, float b = {2} > { y = Mul (x, w) }`, []string{"w"}},
		{"behind a step", `float[2] w = {1, 2}, float[2] b = {2, 3} > { s = Sign (b) p = Mul (x, w) y = Add (p, s) }`, []string{"w"}},
		{"square", `float[2] w = {1, 2}, float two = {2} > { p = Mul (x, w) y = Pow (p, two) }`, []string{"w"}},
		{"square, of rank 1", `float[2] w = {1, 2}, float[1] two = {2} > { p = Mul (x, w) y = Pow (p, two) }`, []string{"w"}},
		{"exponents that are no whole numbers", `float[2] w = {1, 2}, float e = {2.5} > { p = Mul (x, w) y = Pow (p, e) }`, []string{"w", "e"}},
		{"several exponents", `float[2] w = {1, 2}, float[2] e = {2, 3} > { p = Mul (x, w) y = Pow (p, e) }`, []string{"w", "e"}},
		{"exponent and factor", `float e = {3} > { p = Pow (x, e) y = Div (p, e) }`, []string{"e"}},
		{"base", `float b = {3} > { y = Pow (b, x) }`, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := graph.Parse(`<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) < ` + c.body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := op.Infer(m); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range Params(m, m.Graph.Outputs) {
				got = append(got, v.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
