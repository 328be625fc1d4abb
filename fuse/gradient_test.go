package fuse_test

import (
	"slices"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
)

// TestGradients checks that what is one kernel in the forward part has its gradient as one too, or as few, that names it.
func TestGradients(t *testing.T) {
	const tail = ` [tail] z = MatMul(h, o) [end] y = Tanh(z) }`
	for _, c := range []struct{ name, in, forward string }{
		{"linear and gelu", `g (float[N,16] x, float[16,32] w, float[32] b, float[32,4] o) => (float[N,4] y) { [m] a = MatMul(x, w) [b] c = Add(a, b) [act] h = Gelu(c)` + tail, "linear-gelu"},
		{"mish", `g (float[N,16] x, float[16,32] w, float[32,4] o) => (float[N,4] y) { [m] a = MatMul(x, w) [s] s = Softplus(a) [t] u = Tanh(s) [mul] h = Mul(a, u)` + tail, "linear-mish"},
		{"swiglu", `g (float[N,16] x, float[16,32] u, float[16,32] v, float[32,4] o) => (float[N,4] y) { [u] a = MatMul(x, u) [v] b = MatMul(x, v) [s] s = Sigmoid(a) [silu] k = Mul(a, s) [gate] h = Mul(k, b)` + tail, "gated-linear-silu"},
		{"geglu", `g (float[N,16] x, float[16,32] u, float[16,32] v, float[32,4] o) => (float[N,4] y) { [u] a = MatMul(x, u) [v] b = MatMul(x, v) [gelu] k = Gelu(a) [gate] h = Mul(k, b)` + tail, "gated-linear-gelu"},
		{"layer norm", `g (float[N,16] x, float[16] s, float[16] b, float[16,4] o) => (float[N,4] y) { [pre] p = Tanh(x) [n] h = LayerNormalization(p, s, b)` + tail, "layer-norm-tanh"},
		{"rms norm spelled", `g (float[N,16] x, float[16] s, float[16,4] o) => (float[N,4] y) { e = Constant<value: tensor = float {1e-5}>() i = Constant<value: tensor = int64[1] {-1}>() [sq] q = Mul(x, x) [mean] v = ReduceMean(q, i) [eps] p = Add(v, e) [root] r = Sqrt(p) [div] n = Div(x, r) [scale] h = Mul(n, s)` + tail, "rms-norm"},
		{"group norm", `g (float[N,8,4,4] x, float[2] s, float[2] b, float[4,4] o) => (float[N,8,4,4] y) { [pre] p = Tanh(x) [n] k = GroupNormalization<num_groups=2>(p, s, b) [act] h = Relu(k)` + tail, "group-norm-relu"},
		{"embedding and position", `g (int64[N,8] i, float[100,16] w, float[8,16] p, float[16,4] o) => (float[N,8,4] y) { [look] e = Gather(w, i) [pos] h = Add(e, p)` + tail, "embedding-tanh"},
		{"convolution", `g (float[N,3,8,8] x, float[4,3,3,3] w, float[4] b, float[6,4] o) => (float[N,4,6,4] y) { [c] a = Conv(x, w, b) [act] h = Relu(a)` + tail, "conv-relu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := trained(t, c.in)
			r, err := fuse.Run(m, fuse.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, k := range r.Clusters {
				names = append(names, k.Rule)
				if k.Saved.String() == "" || k.Call.Meta.Get(fuse.MetaSaved) != k.Saved.String() {
					t.Errorf("cluster %s saves %q, its call says %q", k.ID, k.Saved, k.Call.Meta.Get(fuse.MetaSaved))
				}
			}
			i := slices.IndexFunc(r.Clusters, func(k *fuse.Cluster) bool { return k.Rule == c.forward })
			if i < 0 {
				t.Fatalf("clusters are %q, want %s", names, c.forward)
			}
			stems := map[string]bool{}
			for _, n := range r.Clusters[i].Nodes {
				stems[n.Name] = n.Name != ""
			}
			var homes []string
			for _, k := range r.Clusters {
				if slices.ContainsFunc(k.Nodes, func(n *graph.Node) bool {
					return n.Meta.Get(graph.MetaRole) == graph.RoleBackward && stems[n.Meta.Get(graph.MetaFrom)]
				}) {
					homes = append(homes, k.ID)
				}
			}
			for _, n := range m.Graph.Nodes {
				if n.Meta.Get(graph.MetaRole) == graph.RoleBackward && n.Domain != fuse.Domain && stems[n.Meta.Get(graph.MetaFrom)] && !n.Is("Constant") {
					homes = append(homes, n.Label())
				}
			}
			if len(homes) != 1 || !slices.Equal(r.Clusters[i].Pair, homes) {
				t.Errorf("the gradient of %s is in %q, it knows %q; clusters are %q", c.forward, homes, r.Clusters[i].Pair, names)
			}
		})
		t.Run(c.name+", and back", func(t *testing.T) { roundTrip(t, trained(t, c.in)) })
	}
}
