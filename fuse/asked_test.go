package fuse_test

import (
	"slices"
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
)

// TestAsked gives kernels by the names of their nodes' results and expects clusters.
func TestAsked(t *testing.T) {
	const chain = `g (float[4,16] x, float[16,16] w) => (float[4,16] y, float[16] z) {
		a = MatMul(x, w)
		b = Relu(a)
		s = Constant<value: tensor = int64[2] {16, 4}>()
		v = Reshape(b, s)
		c = Exp(v)
		i = Constant<value: tensor = int64[2] {4, 16}>()
		u = Reshape(c, i)
		d = Tanh(u)
		y = Add(d, b)
		k = Constant<value: tensor = int64[1] {0}>()
		z = ReduceSum<keepdims=0>(y, k)
	}`
	for _, c := range []struct {
		name, text string
		kernels    []string
		back       string // results of nodes of the backward part
		want       []string
	}{
		{"views between and around go along", chain, []string{"a b", "c d y", "z"}, "", []string{"a b", "v c u d y"}},
		{"a view between that holds a kernel together", chain, []string{"a b c d y z"}, "", []string{"a b v c u d y z"}},
		{"a node of two kernels is in no cluster", chain, []string{"a b", "b c d", "y z"}, "", []string{"v c u d", "y z"}},
		{"the backward part is apart, what no kernel computes goes along", chain, []string{"a b y z"}, "y z", []string{"a b v c u d", "y z"}},
		{"what would be needed by itself is left", chain, []string{"a b y", "c d", "z"}, "", []string{"a b", "v c u d"}},
		{"no kernels", chain, []string{}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.text)
			node := map[string]*graph.Node{}
			for _, n := range m.Graph.Nodes {
				node[n.Out[0].Name] = n
			}
			for name := range strings.FieldsSeq(c.back) {
				node[name].Meta.Set(graph.MetaRole, graph.RoleBackward)
			}
			opt := fuse.Options{Kernels: [][]*graph.Node{}, Explain: true}
			for _, k := range c.kernels {
				var list []*graph.Node
				for name := range strings.FieldsSeq(k) {
					list = append(list, node[name])
				}
				opt.Kernels = append(opt.Kernels, list)
			}
			before := m.String()
			r, err := fuse.Run(m, opt)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range r.Clusters {
				var names []string
				for _, n := range k.Nodes {
					for name, o := range node {
						if o == n {
							names = append(names, name)
						}
					}
				}
				got = append(got, strings.Join(names, " "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("clusters %q, want %q", got, c.want)
			}
			if len(r.Refusals) == 0 && len(c.kernels) > 1 {
				t.Error("no reason is given for what stays apart")
			}
			if _, err := fuse.Inline(m); err != nil {
				t.Fatal(err)
			}
			if after := m.String(); after != before {
				t.Errorf("inline gives\n%s\nwant\n%s", after, before)
			}
		})
	}
}
