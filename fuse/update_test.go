package fuse_test

import (
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
)

// TestUpdates finds the updates of parameters in optimizers that are written by hand.
func TestUpdates(t *testing.T) {
	const consts = `b = Constant<value: tensor = float {0.9}>() c = Constant<value: tensor = float {0.1}>() e = Constant<value: tensor = float {1e-8}>() `
	sgd := func(i string) string {
		return `s` + i + ` = Mul(g` + i + `, lr) p` + i + `_next = Sub(p` + i + `, s` + i + `) `
	}
	adam := func(i string) string {
		return strings.ReplaceAll(`x# = Mul(m#, b) y# = Mul(g#, c) m#_next = Add(x#, y#) q# = Mul(g#, g#) z# = Mul(v#, b) w# = Mul(q#, c) v#_next = Add(z#, w#)
			h# = Div(m#_next, d) k# = Div(v#_next, d) r# = Sqrt(k#) n# = Add(r#, e) u# = Div(h#, n#) j# = Mul(u#, lr) a# = Mul(p#, f) p#_next = Sub(a#, j#) `, "#", i)
	}
	for _, c := range []struct {
		name, model     string
		machine         fuse.Machine
		updates, shared int
	}{
		{name: "sgd, small ones together", updates: 1, shared: 1,
			model: `(float[4,5] g1, float[4,5] g2, float lr, float[4,5] p1, float[4,5] p2) => (float[4,5] p1_next, float[4,5] p2_next) { ` + sgd("1") + sgd("2") + `}`},
		{name: "sgd, each by itself", updates: 2, shared: 1, machine: fuse.Machine{Bandwidth: 1, Speed: 1, Launch: 1e-9},
			model: `(float[4,5] g1, float[4,5] g2, float lr, float[4,5] p1, float[4,5] p2) => (float[4,5] p1_next, float[4,5] p2_next) { ` + sgd("1") + sgd("2") + `}`},
		{name: "parameters that are initializers", updates: 1, shared: 1,
			model: `(float[2] g, float lr) => (float[2] n) <float[2] p = {1, 2}> { s = Mul(lr, g) n = Sub(p, s) }`},
		{name: "adam with decay, two shapes", updates: 3, shared: 1, machine: fuse.Machine{Bandwidth: 1, Speed: 1, Launch: 1e-9},
			model: `(float[4,5] g1, float[4,5] g2, float[5] g3, float lr, float step, float f, float[4,5] p1, float[4,5] m1, float[4,5] v1, float[4,5] p2, float[4,5] m2, float[4,5] v2, float[5] p3, float[5] m3, float[5] v3)
				=> (float[4,5] p1_next, float[4,5] m1_next, float[4,5] v1_next, float[4,5] p2_next, float[4,5] m2_next, float[4,5] v2_next, float[5] p3_next, float[5] m3_next, float[5] v3_next) { ` + consts +
				`t = Pow(b, step) d = Sub(e, t) ` + adam("1") + adam("2") + adam("3") + `}`},
		{name: "the gradient stays outside", updates: 1, shared: 1,
			model: `(float[4,3] x, float[4,5] g, float lr, float[3,5] p) => (float[3,5] p_next) { d = Gemm<transA=1>(x, g) s = Mul(d, lr) p_next = Sub(p, s) }`},
		{name: "a residual is no update",
			model: `(float[4,5] x) => (float[4,5] y) { r = Relu(x) s = Mul(r, r) y = Add(x, s) }`},
		{name: "a factor is no parameter",
			model: `(float[4,5] g, float[5] p) => (float[4,5] p_next) { s = Mul(g, g) p_next = Add(p, s) }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parse := func() *graph.Model {
				m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]> g ` + c.model)
				if err != nil {
					t.Fatal(err)
				}
				mg, err := pass.New([]pass.Pass{pass.Sort(), pass.Infer()}, nil, pass.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := mg.Run(m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			m := parse()
			r, err := fuse.Run(m, fuse.Options{Machine: c.machine})
			if err != nil {
				t.Fatal(err)
			}
			updates, shared := 0, map[string]bool{}
			for _, k := range r.Clusters {
				if k.Rule == "update" {
					updates++
					shared[k.Call.Op] = true
				}
			}
			if updates != c.updates || len(shared) != c.shared {
				t.Errorf("%d updates in %d functions, want %d in %d", updates, len(shared), c.updates, c.shared)
			}
			if _, err := fuse.Inline(m); err != nil {
				t.Fatal(err)
			}
			want, got := compute(t, parse(), 5), compute(t, m, 5)
			for i := range want {
				for k := range want[i].Len() {
					if a, b := want[i].Float(k), got[i].Float(k); a != b && (a == a || b == b) {
						t.Fatalf("output %d, element %d: %g, was %g", i, k, b, a)
					}
				}
			}
		})
	}
}

// TestTimed checks that a machine that says how fast it is gets times, which clusters make shorter.
func TestTimed(t *testing.T) {
	m, _ := canonical(t, `g (float[64,64] x, float[64,64] w) => (float[64,64] y) { a = MatMul(x, w) b = Relu(a) y = Add(b, x) }`)
	r, err := fuse.Run(m, fuse.Options{Machine: fuse.Machine{Bandwidth: 1e9, Speed: 1e9, Launch: 1e-6}})
	if err != nil {
		t.Fatal(err)
	}
	// The product of 64^3 multiplications and as many additions takes longer than its tensors; a kernel for all three nodes
	// begins once.
	if len(r.Clusters) != 1 || !r.Clusters[0].Time[1].Arithmetic || r.Seconds[1] < 2*64*64*64/1e9 || r.Seconds[1] >= r.Seconds[0] {
		t.Errorf("clusters %d, seconds %v", len(r.Clusters), r.Seconds)
	}
}
