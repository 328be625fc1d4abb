package legal

import (
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// labelled is a view with a label for each axis, no label twice.
type labelled struct {
	v      val
	labels string
}

// lowerEinsum contracts operands one after the other: labels that nothing to come has are summed as soon as they can be.
func lowerEinsum(l *lowerer, n *graph.Node) error {
	eq, err := op.ParseEquation(n.Str("equation", ""), len(n.In))
	if err != nil {
		return unsupported("%v", err)
	}
	ranks := make([]int, len(n.In))
	for i, x := range n.In {
		ranks[i] = len(l.shapeOf(x))
	}
	if eq, err = eq.Expand(ranks); err != nil {
		return unsupported("%v", err)
	}
	if len(n.In) > 1 && device(n.Out[0].Type.Elem) != graph.Float {
		return unsupported("integers")
	}
	size := map[rune]int{}
	for i, t := range eq.In {
		for j, c := range t {
			size[c] = max(size[c], l.shapeOf(n.In[i])[j])
		}
	}
	y := l.result(0)
	acc := l.diagonal(eq.In[0], l.arg(0), size)
	for i := 1; i < len(n.In); i++ {
		later := eq.Out + strings.Join(eq.In[i+1:], "")
		next := l.diagonal(eq.In[i], l.arg(i), size)
		// What one of the two has alone, and nothing later, is summed first.
		acc = l.summed(acc, later+next.labels, size)
		next = l.summed(next, later+acc.labels, size)
		out := labelled{labels: eq.Out}
		if i < len(n.In)-1 {
			out.labels = ""
			for _, c := range acc.labels + next.labels {
				if strings.ContainsRune(later, c) && !strings.ContainsRune(out.labels, c) {
					out.labels += string(c)
				}
			}
		}
		if out.v = y; i < len(n.In)-1 {
			out.v = l.temp("einsum", y.elem, extents(out.labels, size))
		}
		l.product(acc, next, out, size)
		acc = out
	}
	if len(n.In) == 1 {
		return l.reduceTo(acc, labelled{y, eq.Out}, size)
	}
	return nil
}

// extents returns the sizes of labels.
func extents(labels string, size map[rune]int) []int {
	var out []int
	for _, c := range labels {
		out = append(out, size[c])
	}
	return out
}

// diagonal returns the view of v whose axes have different labels. An axis of size 1 whose label is larger is left out.
func (l *lowerer) diagonal(labels string, v val, size map[rune]int) labelled {
	v = l.materialize(v)
	out := labelled{v: v}
	out.v.shape, out.v.stride = nil, nil
	for i, c := range labels {
		if v.shape[i] == 1 && size[c] > 1 {
			continue
		}
		if at := strings.IndexRune(out.labels, c); at >= 0 {
			out.v.stride[at] += v.stride[i]
			continue
		}
		out.labels += string(c)
		out.v.shape, out.v.stride = append(out.v.shape, v.shape[i]), append(out.v.stride, v.stride[i])
	}
	return out
}

// summed adds up a view over the labels that keep does not have.
func (l *lowerer) summed(x labelled, keep string, size map[rune]int) labelled {
	out := labelled{}
	for _, c := range x.labels {
		if strings.ContainsRune(keep, c) {
			out.labels += string(c)
		}
	}
	if out.labels == x.labels {
		return x
	}
	out.v = l.temp("einsum", x.v.elem, extents(out.labels, size))
	if err := l.reduceTo(x, out, size); err != nil {
		return x
	}
	return out
}

// at returns the coordinates of a view in a nest over the labels of dims.
func (x labelled) at(dims string) [][]int {
	out := [][]int{} // a scalar has none
	for _, c := range x.labels {
		out = append(out, along(len(dims), strings.IndexRune(dims, c)))
	}
	return out
}

// reduceTo writes x, in another order of axes and added up over those that y has not, to y.
func (l *lowerer) reduceTo(x, y labelled, size map[rune]int) error {
	dims := y.labels
	var over []int
	for _, c := range x.labels {
		if !strings.ContainsRune(dims, c) {
			over = append(over, len(dims))
			dims += string(c)
		}
	}
	b := l.nest(extents(dims, size))
	r := b.loadAt(x.v, x.at(dims), 0)
	if len(over) > 0 {
		r = b.reduce(Sum, r, over...)
	}
	b.storeAt(y.v, y.at(dims), b.wrap(r, y.v.elem))
	b.done()
	return nil
}

// product contracts two operands over the labels that the result has not.
func (l *lowerer) product(x, z, y labelled, size map[rune]int) {
	has := func(s string, c rune) bool { return strings.ContainsRune(s, c) }
	order := y.labels
	for _, c := range x.labels {
		if !has(order, c) {
			order += string(c)
		}
	}
	t := contraction{size: extents(order, size)}
	sums := false
	for _, c := range order {
		switch {
		case !has(y.labels, c):
			t.kind = append(t.kind, K)
			sums = true
		case has(x.labels, c) && has(z.labels, c):
			t.kind = append(t.kind, Batch)
		case has(z.labels, c):
			t.kind = append(t.kind, N)
		default:
			t.kind = append(t.kind, M)
		}
	}
	if !sums { // products alone
		b := l.nest(t.size)
		p := b.do(Mul, b.loadAt(x.v, x.at(order), 0), b.loadAt(z.v, z.at(order), 0))
		b.storeAt(y.v, y.at(order), b.wrap(p, y.v.elem))
		b.done()
		return
	}
	place := func(s labelled) side {
		out := side{v: s.v}
		for _, c := range s.labels {
			out.axes = append(out.axes, strings.IndexRune(order, c))
		}
		return out
	}
	t.a, t.b, t.c = place(x), place(z), place(y)
	if !slices.Contains(t.kind, N) && slices.Contains(t.kind, M) { // rows of one operand only: it streams
		t.a, t.b = t.b, t.a
		for i, k := range t.kind {
			if k == M {
				t.kind[i] = N
			}
		}
	}
	l.contract(t)
}
