package op

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
)

func einsumDefs() []Def {
	eq := func(s string) []*graph.Attr { return []*graph.Attr{graph.StringAttr("equation", s)} }
	return []Def{{Name: "Einsum", Infer: inferEinsum, Eval: evalEinsum, Cost: costEinsum, Samples: []Sample{
		{Name: "matrix product", In: []Arg{F(3, 4), F(4, 2)}, Attrs: eq("ij,jk->ik")},
		{Name: "implicit", In: []Arg{F(3, 4), F(4, 2)}, Attrs: eq("bj, ja")},
		{Name: "attention scores", In: []Arg{F(2, 3, 2, 4), F(2, 5, 2, 4)}, Attrs: eq("bqhd,bkhd->bhqk")},
		{Name: "transpose", In: []Arg{F(2, 3, 4)}, Attrs: eq("abc->cab")},
		{Name: "sum", In: []Arg{F(2, 3, 4)}, Attrs: eq("abc->b")},
		{Name: "sum of all", In: []Arg{F(2, 3)}, Attrs: eq("ij->")},
		{Name: "trace", In: []Arg{F(3, 3)}, Attrs: eq("ii")},
		{Name: "diagonal", In: []Arg{F(2, 3, 3)}, Attrs: eq("bii->ib")},
		{Name: "triple diagonal", In: []Arg{F(2, 2, 3, 2), F(3)}, Attrs: eq("iiji,j->i")},
		{Name: "outer product", In: []Arg{F(3), F(4)}, Attrs: eq("i,j->ji")},
		{Name: "summed alone", In: []Arg{F(3, 4), F(3, 2)}, Attrs: eq("ij,ik->ik")},
		{Name: "three operands", In: []Arg{F(2, 3), F(3, 4), F(4, 2)}, Attrs: eq("ij,jk,kl->il")},
		{Name: "bilinear", In: []Arg{F(5, 2), F(3, 2, 4), F(5, 4)}, Attrs: eq("bi,oij,bj->bo")},
		{Name: "ellipsis", In: []Arg{F(2, 3, 2, 4), F(2, 3, 4, 5)}, Attrs: eq("...ij,...jk->...ik")},
		{Name: "ellipsis broadcast", In: []Arg{F(2, 1, 2, 3), F(1, 3, 3, 2)}, Attrs: eq("...ij,...jk->...ki")},
		{Name: "ellipsis implicit", In: []Arg{F(2, 3, 4), F(2, 4)}, Attrs: eq("...ij,...j")},
		{Name: "ellipsis in the middle", In: []Arg{F(2, 3, 4), F(4, 5)}, Attrs: eq("a...c,cd->...ad")},
		{Name: "int", In: []Arg{TV(graph.Int64, []int{2, 2}, 1, 2, 3, 4), TV(graph.Int64, []int{2}, 5, 6)}, Attrs: eq("ij,j->i")},
	}}}
}

// Equation is a parsed einsum equation: a label per axis of each operand and of the result. The label Ellipsis stands for
// any number of axes.
type Equation struct {
	In  []string
	Out string
}

// Ellipsis is the label that stands for "..." in a term of an [Equation].
const Ellipsis = '.'

// ParseEquation parses an einsum equation for n operands. Without an arrow the result has the ellipsis, if there
// is one, and then the labels that occur once, in ASCII order.
func ParseEquation(s string, n int) (*Equation, error) {
	s = strings.ReplaceAll(s, " ", "")
	left, out, explicit := strings.Cut(s, "->")
	e := &Equation{In: strings.Split(left, ","), Out: out}
	if len(e.In) != n {
		return nil, fmt.Errorf("equation %q has %d terms for %d operands", s, len(e.In), n)
	}
	count := map[rune]int{}
	for i := range e.In {
		var err error
		if e.In[i], err = parseTerm(e.In[i]); err != nil {
			return nil, fmt.Errorf("equation %q: %w", s, err)
		}
		for _, l := range e.In[i] {
			count[l]++
		}
	}
	if !explicit {
		var labels []rune
		for l, n := range count {
			if l != Ellipsis && n == 1 {
				labels = append(labels, l)
			}
		}
		slices.Sort(labels)
		if e.Out = string(labels); count[Ellipsis] > 0 {
			e.Out = string(Ellipsis) + e.Out
		}
		return e, nil
	}
	var err error
	if e.Out, err = parseTerm(e.Out); err != nil {
		return nil, fmt.Errorf("equation %q: %w", s, err)
	}
	for i, l := range e.Out {
		if count[l] == 0 {
			return nil, fmt.Errorf("equation %q: label %q of the result is in no operand", s, l)
		}
		if strings.IndexRune(e.Out, l) != i {
			return nil, fmt.Errorf("equation %q: label %q is twice in the result", s, l)
		}
	}
	return e, nil
}

// parseTerm checks a term and writes its ellipsis as one label.
func parseTerm(t string) (string, error) {
	t = strings.Replace(t, "...", "\x00", 1)
	for _, l := range t {
		if l != 0 && (l < 'a' || l > 'z') && (l < 'A' || l > 'Z') {
			return "", fmt.Errorf("%q is no label", l)
		}
	}
	return strings.Replace(t, "\x00", string(Ellipsis), 1), nil
}

// Expand returns the equation with labels of their own for the axes that ellipses stand for, given the operands' ranks.
// Axes are aligned at the right, as for broadcasting.
func (e *Equation) Expand(ranks []int) (*Equation, error) {
	used := strings.Join(e.In, "")
	var fresh []rune
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		if !strings.ContainsRune(used, r) {
			fresh = append(fresh, r)
		}
	}
	out, most := &Equation{In: slices.Clone(e.In)}, 0
	for i, t := range e.In {
		n := ranks[i] - len(t)
		if strings.ContainsRune(t, Ellipsis) {
			n++
		} else if n != 0 {
			return nil, fmt.Errorf("term %q does not fit operand %d of rank %d", t, i, ranks[i])
		}
		if n < 0 || n > len(fresh) {
			return nil, fmt.Errorf("term %q does not fit operand %d of rank %d", t, i, ranks[i])
		}
		out.In[i] = strings.Replace(t, string(Ellipsis), reversed(fresh[:n]), 1)
		most = max(most, n)
	}
	out.Out = strings.Replace(e.Out, string(Ellipsis), reversed(fresh[:most]), 1)
	return out, nil
}

func reversed(r []rune) string {
	r = slices.Clone(r)
	slices.Reverse(r)
	return string(r)
}

// String returns the equation in ONNX's notation.
func (e *Equation) String() string {
	return strings.ReplaceAll(strings.Join(e.In, ",")+"->"+e.Out, string(Ellipsis), "...")
}

// costEinsum is two FLOPs per operand for each combination of label values, as if nothing were contracted early; for two
// operands that is exact.
func costEinsum(c *CostCtx) float64 {
	e, err := ParseEquation(c.Node.Str("equation", ""), len(c.In))
	if err != nil {
		return 0
	}
	ranks := make([]int, len(c.In))
	for i, s := range c.In {
		ranks[i] = len(s)
	}
	if e, err = e.Expand(ranks); err != nil {
		return 0
	}
	size, work := map[rune]int{}, float64(max(2*(len(c.In)-1), 1))
	var order []rune
	for i, t := range e.In {
		for j, l := range t {
			if size[l] == 0 {
				order = append(order, l)
			}
			size[l] = max(size[l], c.In[i][j])
		}
	}
	for _, l := range order {
		work *= float64(size[l])
	}
	return work
}

func inferEinsum(c *InferCtx) error {
	c.Set(0, c.Elem(0), nil)
	e, err := ParseEquation(c.Node.Str("equation", ""), c.NumIn())
	if err != nil {
		return err
	}
	ranks := make([]int, c.NumIn())
	for i, t := range e.In {
		s := c.Shape(i)
		if ranks[i] = len(s); s == nil {
			if strings.ContainsRune(t, Ellipsis) {
				return nil
			}
			ranks[i] = len(t)
		}
	}
	if e, err = e.Expand(ranks); err != nil {
		return err
	}
	size := map[rune]graph.Dim{}
	for i, t := range e.In {
		for j, l := range t {
			var d graph.Dim
			if s := c.Shape(i); s != nil {
				d = s[j]
			}
			if old, ok := size[l]; ok {
				if d, err = broadcastDim(old, d); err != nil {
					return c.Errorf("label %q has sizes %s and %s in equation %s", l, old, size[l], e)
				}
			}
			size[l] = d
		}
	}
	out := graph.Shape{}
	for _, l := range e.Out {
		out = append(out, size[l])
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// labelled is an array with a label per axis, all different.
type labelled struct {
	*Array
	labels []rune
}

func (a labelled) has(l rune) bool { return slices.Contains(a.labels, l) }

// evalEinsum contracts the operands pairwise from left to right, each step a batched matrix product. Labels are summed
// as soon as no later operand and not the result has them.
func evalEinsum(c *EvalCtx) error {
	e, err := ParseEquation(c.Node.Str("equation", ""), len(c.In))
	if err != nil {
		return err
	}
	ranks := make([]int, len(c.In))
	for i, a := range c.In {
		ranks[i] = a.Rank()
	}
	if e, err = e.Expand(ranks); err != nil {
		return err
	}
	size := map[rune]int{}
	for i, t := range e.In {
		for j, l := range []rune(t) {
			n := c.In[i].Shape[j]
			old, ok := size[l]
			if ok && old != n && old != 1 && n != 1 {
				return c.Errorf("label %q has sizes %d and %d in equation %s", l, old, n, e)
			}
			if !ok || old == 1 {
				size[l] = n
			}
		}
	}
	var acc labelled
	for i, t := range e.In {
		// A label is kept if the result, another operand or what is contracted so far has it.
		later := e.Out + strings.Join(e.In[i+1:], "")
		next := reduceLabels(c.In[i], []rune(t), size, func(l rune) bool {
			return strings.ContainsRune(later, l) || i > 0 && acc.has(l)
		})
		if i == 0 {
			acc = next
			continue
		}
		acc = reduceLabels(acc.Array, acc.labels, size, func(l rune) bool { return strings.ContainsRune(later, l) || next.has(l) })
		acc = contract(acc, next, func(l rune) bool { return strings.ContainsRune(later, l) })
	}
	c.Set(0, permuteLabels(acc, []rune(e.Out)).Array)
	return nil
}

// reduceLabels takes the diagonal of repeated labels, drops axes of size 1 that are broadcast, and sums over the
// labels that are not kept.
func reduceLabels(a *Array, labels []rune, size map[rune]int, keep func(rune) bool) labelled {
	step := strides(a.Shape)
	var kept, dims, at, sums, sumAt = []rune{}, []int{}, []int{}, []int{}, []int{}
	same := true
	for j, l := range labels {
		first := slices.Index(labels, l)
		if a.Shape[j] != size[l] || first != j {
			same = false
			continue
		}
		stride := 0
		for k := range labels {
			if labels[k] == l && a.Shape[k] == size[l] {
				stride += step[k]
			}
		}
		if keep(l) {
			kept, dims, at = append(kept, l), append(dims, size[l]), append(at, stride)
		} else {
			sums, sumAt, same = append(sums, size[l]), append(sumAt, stride), false
		}
	}
	if same {
		return labelled{a, labels}
	}
	y := a.NewLike(dims)
	sumStrided(y, a, at, sums, sumAt)
	return labelled{y, kept}
}

// sumStrided sets each element of y to the sum of elements of x: at gives the step in x per axis of y, and the sums
// run over axes of the given sizes and steps.
func sumStrided(y, x *Array, at, sums, sumAt []int) {
	switch {
	case y.F32 != nil:
		runSums[float32, float64](y.F32, x.F32, y.Shape, at, sums, sumAt)
	case y.F64 != nil:
		runSums[float64, float64](y.F64, x.F64, y.Shape, at, sums, sumAt)
	case y.I64 != nil:
		runSums[int64, int64](y.I64, x.I64, y.Shape, at, sums, sumAt)
	}
}

func runSums[T, A number](y, x []T, dims, at, sums, sumAt []int) {
	offsets := stepOffsets(sums, sumAt)
	parallel(len(y), grainOf(8+len(offsets)), func(lo, hi int) {
		index, from, rest := make([]int, len(dims)), 0, lo
		for i := len(dims) - 1; i >= 0; i-- {
			index[i] = rest % dims[i]
			rest /= dims[i]
			from += index[i] * at[i]
		}
		for k := lo; k < hi; k++ {
			var sum A
			for _, o := range offsets {
				sum += A(x[from+o])
			}
			y[k] = T(sum)
			for i := len(dims) - 1; i >= 0; i-- {
				from += at[i]
				if index[i]++; index[i] < dims[i] {
					break
				}
				from -= index[i] * at[i]
				index[i] = 0
			}
		}
	})
}

// stepOffsets returns the offsets of all elements of a strided block in row-major order.
func stepOffsets(dims, at []int) []int {
	out := []int{0}
	for i := range dims {
		next := make([]int, 0, len(out)*dims[i])
		for _, o := range out {
			for k := range dims[i] {
				next = append(next, o+k*at[i])
			}
		}
		out = next
	}
	return out
}

// permuteLabels returns a with its axes in the given order of labels.
func permuteLabels(a labelled, order []rune) labelled {
	if slices.Equal(a.labels, order) {
		return a
	}
	step := strides(a.Shape)
	dims, at := make([]int, len(order)), make([]int, len(order))
	for i, l := range order {
		j := slices.Index(a.labels, l)
		dims[i], at[i] = a.Shape[j], step[j]
	}
	y := a.NewLike(dims)
	sumStrided(y, a.Array, at, nil, nil)
	return labelled{y, order}
}

// contract multiplies a by b and sums over the labels of both that are not kept; every label of only one is.
func contract(a, b labelled, keep func(rune) bool) labelled {
	var batch, left, inner, right []rune
	for _, l := range a.labels {
		switch {
		case !b.has(l):
			left = append(left, l)
		case keep(l):
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range b.labels {
		if !a.has(l) {
			right = append(right, l)
		}
	}
	a = permuteLabels(a, slices.Concat(batch, left, inner))
	b = permuteLabels(b, slices.Concat(batch, inner, right))
	p := &matmulPlan{m: prod(a.Shape[len(batch):][:len(left)]), k: prod(a.Shape[len(batch)+len(left):]), n: prod(b.Shape[len(batch)+len(inner):])}
	for i := range prod(a.Shape[:len(batch)]) {
		p.a, p.b = append(p.a, i), append(p.b, i)
	}
	y := a.NewLike(slices.Concat(a.Shape[:len(batch)+len(left)], b.Shape[len(batch)+len(inner):]))
	switch {
	case y.F32 != nil:
		runMatMul(p, a.F32, b.F32, y.F32)
	case y.F64 != nil:
		runMatMul(p, a.F64, b.F64, y.F64)
	case y.I64 != nil:
		runMatMul(p, a.I64, b.I64, y.I64)
	}
	return labelled{y, slices.Concat(batch, left, right)}
}
