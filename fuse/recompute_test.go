package fuse_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/op"
)

// attentionText is an attention of 32 queries with 16 numbers each, in front of a layer.
const attentionText = `g (float[N,2,32,16] x, float[16,16] wq, float[16,16] wk, float[16,16] wv, float[16,16] wo, float[32,32] mask) => (float[N,2,32,16] y) {
	q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) c = Constant<value: tensor = float {0.25}>() t = Transpose<perm=[0,1,3,2]>(k)
	[scores] s = MatMul(q, t) [scale] d = Mul(s, c) [mask] e = Add(d, mask) [softmax] p = Softmax(e) [out] o = MatMul(p, v) [linear] r = MatMul(o, wo) [act] y = Tanh(r) }`

// trained returns a model with its gradient.
func trained(t *testing.T, text string) *graph.Model {
	t.Helper()
	m := parse(t, text)
	gradient(t, m, "mse")
	return m
}

func TestRecompute(t *testing.T) {
	plain, m := trained(t, attentionText), trained(t, attentionText)
	crossing := func(m *graph.Model) (big []string, backward int) {
		info, err := op.Infer(m)
		if err != nil || info == nil {
			t.Fatal(err)
		}
		types := map[string]graph.Type{}
		for v := range m.Graph.Values() {
			types[v.Name] = v.Type
		}
		r, err := fuse.Run(m, fuse.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for v := range m.Graph.Values() {
			if s := types[v.Name].Shape; len(s) == 4 && s[2].Equal(graph.Known(32)) && s[3].Equal(graph.Known(32)) && v.NumUses() > 0 {
				big = append(big, v.Name)
			}
		}
		for _, c := range r.Clusters {
			if c.Rule == "attention-backward" {
				backward++
				if len(c.Pair) == 0 {
					t.Errorf("cluster %s does not know the forward one", c.ID)
				}
			}
		}
		return big, backward
	}
	whole := trained(t, attentionText)
	if big, _ := crossing(whole); !slices.Contains(big, "p") {
		t.Fatalf("without recomputation the probabilities cross a border, found only %v", big)
	}
	res := fuse.Recompute(m, fuse.Options{})
	if len(res) != 1 || res[0].Why != "" || res[0].Value != "p" || res[0].Nodes != 4 {
		t.Fatalf("recomputed: %+v", res)
	}
	// Written and read, 4 bytes each, less the mask, which is read again.
	if got, want := res[0].Saved.String(), "16384*N - 4096"; got != want {
		t.Errorf("saves %s bytes, want %s", got, want)
	}
	if err := graph.Verify(m); err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, n := range m.Graph.Nodes {
		if n.Meta.Get(graph.MetaRole) == graph.RoleRecompute {
			marked++
			if n.Meta.Get(graph.MetaFrom) == "" {
				t.Errorf("node %s does not say what it stems from", n.Label())
			}
			if b := n.Meta.Get(fuse.MetaRecomputed); (b != "") != n.Is("Softmax") {
				t.Errorf("node %s: saved %q", n.Label(), b)
			}
		}
	}
	if marked != 4 {
		t.Errorf("%d nodes are marked, want 4", marked)
	}
	for seed := range uint64(2) {
		want, got := compute(t, plain, seed), compute(t, m, seed)
		for i := range want {
			for k := range want[i].Len() {
				if math.Float64bits(want[i].Float(k)) != math.Float64bits(got[i].Float(k)) {
					t.Fatalf("output %d, element %d: %g, was %g", i, k, got[i].Float(k), want[i].Float(k))
				}
			}
		}
	}
	if again := fuse.Recompute(m, fuse.Options{}); len(again) != 0 {
		t.Errorf("a second time: %+v", again)
	}
	again := trained(t, attentionText)
	fuse.Recompute(again, fuse.Options{})
	roundTrip(t, again)
	if big, backward := crossing(m); len(big) > 0 || backward != 1 {
		t.Errorf("%v cross a border; %d gradients of attention", big, backward)
	}
}

func TestRecomputeLeavesAlone(t *testing.T) {
	for _, c := range []struct {
		name, text, why string
		train           bool
		machine         fuse.Machine
	}{
		{"no gradient", attentionText, "", false, fuse.Machine{}},
		{"slow arithmetic", attentionText, "takes longer", true, fuse.Machine{Bandwidth: 1e12, Speed: 1e9, Launch: 1e-6}},
		{"fast arithmetic", attentionText, "done", true, fuse.Machine{Bandwidth: 1e9, Speed: 1e15, Launch: 1e-6}},
		{"a mask that is larger", strings.Replace(attentionText, "float[32,32] mask", "float[N,2,32,32] mask", 1), "done", true, fuse.Machine{}},
		{"no softmax", strings.Replace(attentionText, "Softmax", "Sigmoid", 1), "", true, fuse.Machine{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.text)
			if c.train {
				m = trained(t, c.text)
			}
			before := m.String()
			var words []string
			for _, r := range fuse.Recompute(m, fuse.Options{Machine: c.machine}) {
				if r.Why == "" {
					words = append(words, "done")
				}
				words = append(words, r.Why)
			}
			got := strings.Join(words, "")
			if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("got %q, want %q", got, c.why)
			}
			if c.why != "done" && m.String() != before {
				t.Errorf("the model changed:\n%s", m)
			}
		})
	}
}

// TestRecomputeAllow checks that a refusal leaves the model as it was.
func TestRecomputeAllow(t *testing.T) {
	m := trained(t, attentionText)
	before := m.String()
	if res := fuse.Recompute(m, fuse.Options{Allow: func(string, ...any) bool { return false }}); len(res) != 0 || m.String() != before {
		t.Errorf("%+v after a refusal", res)
	}
}
