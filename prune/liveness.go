package prune

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// liveness knows, for the main graph of a model, when each value begins and ends to take memory if nodes run in their order
// and a value is dropped after its last use. Weights and constants are not counted, views take the memory of what they view,
// a node with subgraphs takes at most what these take, graph inputs live from the start to their last use and graph
// outputs to the end.
type liveness struct {
	g     *graph.Graph
	index map[*graph.Node]int
	bytes map[*graph.Value]int64
	root  map[*graph.Value]*graph.Value // whose memory a value takes, nil for constants
	inner []int64                       // by node: bytes inside of its subgraphs
}

// newLiveness wants the sizes of all values, and says which are not known.
func newLiveness(g *graph.Graph) (*liveness, error) {
	l := &liveness{g: g, index: map[*graph.Node]int{}, bytes: map[*graph.Value]int64{}, root: map[*graph.Value]*graph.Value{}, inner: make([]int64, len(g.Nodes))}
	var unknown []string
	add := func(v *graph.Value) {
		b, ok := typeBytes(v.Type)
		if !ok {
			unknown = append(unknown, fmt.Sprintf("%q is %s", v.Name, v.Type))
		}
		l.bytes[v], l.root[v] = b, v
	}
	for _, v := range g.Inputs {
		if v.Init == nil {
			add(v)
		}
	}
	for i, n := range g.Nodes {
		l.index[n] = i
		if n.Is("Constant") {
			continue
		}
		for k, v := range n.Out {
			switch {
			case v == nil:
			case k == 0 && op.Of(n).Has(op.View) && len(n.In) > 0 && n.In[0] != nil:
				l.root[v], l.bytes[v] = l.root[n.In[0]], 0
			default:
				add(v)
			}
		}
		for _, sub := range n.Subgraphs() {
			in, err := newLiveness(sub)
			if err != nil {
				unknown = append(unknown, err.Error())
				continue
			}
			l.inner[i] = max(l.inner[i], in.peak(nil, nil))
		}
	}
	if len(unknown) > 3 {
		unknown = append(unknown[:3], fmt.Sprintf("%d more", len(unknown)-3))
	}
	if unknown != nil {
		return nil, fmt.Errorf("sizes are not known: %s", strings.Join(unknown, ", "))
	}
	return l, nil
}

// span is a piece of memory that is taken from one node to another, both included.
type span struct {
	from, to int
	bytes    int64
}

// peak returns the most bytes that are taken at once if the outputs in drop are no longer computed, and the gradients of
// cuts in part.
func (l *liveness) peak(drop map[*graph.Value]bool, cuts []*cutting) int64 {
	end := len(l.g.Nodes)
	need := l.needed(func(v *graph.Value) bool { return !drop[v] })
	first, last := map[*graph.Value]int{}, map[*graph.Value]int{}
	use := func(v *graph.Value, i int) {
		if r := l.root[v]; r != nil {
			last[r] = max(last[r], i)
		}
	}
	// Nodes of a cutting read a slice in place of the whole, and have smaller results.
	inside, smaller := map[*graph.Node]*cutting{}, map[*graph.Value]int64{}
	var spans []span
	for _, c := range cuts {
		for v, k := range c.cuts {
			if c.source[v] {
				at := -1
				if v.Def != nil {
					at = l.index[v.Def]
				}
				to := at
				for _, u := range v.Uses() {
					if u.Node != nil && c.nodes[u.Node] {
						to = max(to, l.index[u.Node])
					}
				}
				spans = append(spans, span{at, to, l.whole(v) * k.keep / k.block})
				use(v, max(at, 0))
				continue
			}
			smaller[v] = l.whole(v) * k.keep / k.block
		}
		for n := range c.nodes {
			inside[n] = c
		}
		use(c.grad, end)
		spans = append(spans, span{end, end, l.whole(c.grad)})
	}
	for i, n := range l.g.Nodes {
		if !need[n] {
			continue
		}
		for _, v := range n.Out {
			if v != nil && l.root[v] == v {
				first[v] = i
				use(v, i)
			}
		}
		for _, v := range slices.Concat(n.In, n.Captures()) {
			if v == nil || inside[n] != nil && inside[n].source[v] {
				continue
			}
			use(v, i)
		}
		spans = append(spans, span{i, i, l.inner[i]})
	}
	for _, v := range l.g.Outputs {
		if !drop[v] {
			use(v, end)
		}
	}
	for _, v := range l.g.Inputs {
		if _, ok := last[v]; ok {
			first[v] = -1
		}
	}
	for v, from := range first {
		b := l.bytes[v]
		if s, ok := smaller[v]; ok {
			b = s
		}
		spans = append(spans, span{from, last[v], b})
	}
	change := make([]int64, end+3)
	for _, s := range spans {
		change[s.from+1] += s.bytes
		change[s.to+2] -= s.bytes
	}
	most, now := int64(0), int64(0)
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return most
}

// whole returns the bytes of v, also of views.
func (l *liveness) whole(v *graph.Value) int64 {
	b, _ := typeBytes(v.Type)
	return b
}

// needed returns the nodes that the outputs which keep names depend on.
func (l *liveness) needed(keep func(*graph.Value) bool) map[*graph.Node]bool {
	need := map[*graph.Node]bool{}
	var stack []*graph.Node
	push := func(v *graph.Value) {
		if v != nil && v.Def != nil && v.Def.Graph == l.g && !need[v.Def] {
			need[v.Def] = true
			stack = append(stack, v.Def)
		}
	}
	for _, v := range l.g.Outputs {
		if keep(v) {
			push(v)
		}
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, v := range slices.Concat(n.In, n.Captures()) {
			push(v)
		}
	}
	return need
}
