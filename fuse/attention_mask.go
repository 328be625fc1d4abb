package fuse

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// maxTriangle bounds the elements of a constant that is compared with a triangle.
const maxTriangle = 1 << 22

// causal reports whether a mask lets each query see the keys up to its own place: it is a lower triangle.
func (a *attention) causal(m attentionMask) bool {
	v := m.add
	if v == nil {
		v = m.keep
	}
	s, r := v.Type.Shape, len(a.scores.Shape)
	if n := len(s); n < 2 || !s[n-1].Equal(a.scores.Shape[r-1]) || !s[n-2].Equal(a.scores.Shape[r-2]) {
		return false // it is repeated
	}
	if m.keep != nil {
		return a.triangle(m.keep, !m.negate)
	}
	return !m.negate && m.factor > 0 && a.penalty(m.add, m.factor)
}

// hides is the most that an element which hides a score may be.
const hides = -1e4

// penalty reports whether v is 0 on and below the diagonal of its last two axes and, multiplied by the factor, hides what is above.
func (a *attention) penalty(v *graph.Value, factor float64) bool {
	for range maxPeel {
		if c := a.constant(v); c != nil {
			return isTriangle(c, func(x float64, below bool) bool { return below && x == 0 || !below && x*factor <= hides })
		}
		n := v.Def
		switch {
		case n == nil || len(n.In) == 0 || n.In[0] == nil:
			return false
		case n.Is("Trilu"):
			x, ok := a.ones(n.In[0])
			k, ok2 := a.diagonal(n)
			return ok && ok2 && x*factor <= hides && n.Int("upper", 1) != 0 && k == 1
		case n.Is("Where") && len(n.In) == 3:
			x, ok := a.fill(n.In[1])
			y, ok2 := a.fill(n.In[2])
			return ok && ok2 && (x == 0 && y*factor <= hides && a.triangle(n.In[0], true) || y == 0 && x*factor <= hides && a.triangle(n.In[0], false))
		case !a.sameCorner(n):
			return false
		}
		v = n.In[0]
	}
	return false
}

// triangle reports whether v holds on and below the diagonal of its last two axes and nowhere else or, without lower, above it.
func (a *attention) triangle(v *graph.Value, lower bool) bool {
	for range maxPeel {
		if c := a.constant(v); c != nil {
			return isTriangle(c, func(x float64, below bool) bool { return (x != 0) == (below == lower) })
		}
		n := v.Def
		switch {
		case n == nil || len(n.In) == 0 || n.In[0] == nil:
			return false
		case n.Is("Trilu"):
			x, ok := a.ones(n.In[0])
			k, ok2 := a.diagonal(n)
			upper := n.Int("upper", 1) != 0
			return ok && ok2 && x != 0 && (lower && !upper && k == 0 || !lower && upper && k == 1)
		case n.Is("Not"), n.Is("Equal") && a.isZeroNumber(n.In[1]):
			lower = !lower
		case n.Is("GreaterOrEqual"), n.Is("LessOrEqual"), n.Is("Greater"), n.Is("Less"):
			return a.compares(n, lower)
		case n.Is("Cast"), a.sameCorner(n):
		default:
			return false
		}
		v = n.In[0]
	}
	return false
}

// diagonal returns the diagonal that a Trilu counts from.
func (a *attention) diagonal(n *graph.Node) (int64, bool) {
	if len(n.In) < 2 || n.In[1] == nil {
		return 0, true
	}
	c := a.known(n.In[1])
	if c == nil || c.I64 == nil || c.Len() != 1 {
		return 0, false
	}
	return c.I64[0], true
}

// isZeroNumber reports whether v is one 0 of any type.
func (a *attention) isZeroNumber(v *graph.Value) bool {
	if v == nil {
		return false
	}
	c := a.known(v)
	return c != nil && c.Len() == 1 && c.C128 == nil && c.Str == nil && c.Float(0) == 0
}

// compares reports whether n compares places of queries with those of keys so that each query has the keys up to its own or,
// without lower, the others.
func (a *attention) compares(n *graph.Node, lower bool) bool {
	rows, columns := a.places(n.In[0], true), a.places(n.In[1], false)
	op := n.Op
	if !rows || !columns {
		if !a.places(n.In[1], true) || !a.places(n.In[0], false) {
			return false
		}
		op = map[string]string{"GreaterOrEqual": "LessOrEqual", "LessOrEqual": "GreaterOrEqual", "Greater": "Less", "Less": "Greater"}[op]
	}
	return lower && op == "GreaterOrEqual" || !lower && op == "Less"
}

// places reports whether v is 0, 1, 2, ... along the last axis but one or, without rows, along the last.
func (a *attention) places(v *graph.Value, rows bool) bool {
	s := v.Type.Shape
	if len(s) == 0 || rows && (len(s) < 2 || !isOne(s[len(s)-1])) || !rows && len(s) > 1 && !isOne(s[len(s)-2]) {
		return false
	}
	for range 6 {
		n := v.Def
		if n == nil || len(n.In) == 0 || n.In[0] == nil || len(v.Type.Shape) > 1 && !onesBut(v.Type.Shape) {
			return false
		}
		switch {
		case n.Is("Range"):
			return len(n.In) == 3 && a.isZeroNumber(n.In[0]) && a.isOneNumber(n.In[2])
		case n.Is("Unsqueeze"), n.Is("Reshape"), n.Is("Cast"):
			v = n.In[0]
		default:
			return false
		}
	}
	return false
}

func (a *attention) isOneNumber(v *graph.Value) bool {
	c := a.known(v)
	return c != nil && c.Len() == 1 && c.C128 == nil && c.Str == nil && c.Float(0) == 1
}

func isOne(d graph.Dim) bool { n, ok := d.Int(); return ok && n == 1 }

// onesBut reports whether at most one axis has other than one element.
func onesBut(s graph.Shape) bool {
	more := 0
	for _, d := range s {
		if !isOne(d) {
			more++
		}
	}
	return more <= 1
}

// sameCorner reports whether n hands on the upper left corner of its operand's last two axes, behind axes of one element.
func (a *attention) sameCorner(n *graph.Node) bool {
	switch {
	case n.Is("Identity"):
		return true
	case n.Is("Slice"):
		return a.fromStart(n)
	case n.Is("Unsqueeze"), n.Is("Reshape"), n.Is("Expand"):
		x, y := n.In[0].Type.Shape, n.Out[0].Type.Shape
		return len(x) > 1 && len(y) > 1 && x[len(x)-1].Equal(y[len(y)-1]) && x[len(x)-2].Equal(y[len(y)-2]) && onesBefore(x)
	}
	return false
}

// onesBefore reports whether all axes but the last two have one element.
func onesBefore(s graph.Shape) bool {
	return !slices.ContainsFunc(s[:len(s)-2], func(d graph.Dim) bool { n, ok := d.Int(); return !ok || n != 1 })
}

// constant returns the elements of a constant, up to the size of large masks.
func (a *attention) constant(v *graph.Value) *op.Array {
	if c := a.known(v); c != nil {
		return c
	}
	t := v.Init
	if t == nil && v.Def != nil && v.Def.Is("Constant") {
		if at := v.Def.Attr("value"); at != nil && at.Ref == "" {
			t = at.T
		}
	} else if t != nil && !v.IsConst() {
		return nil
	}
	if t == nil || t.Check() != nil || t.Len() > maxTriangle || t.Elem == graph.String {
		return nil
	}
	c, err := op.FromTensor(t, false)
	if err != nil {
		return nil
	}
	return c
}

// isTriangle reports whether c is a matrix, possibly behind axes of one element, whose elements all fit: those on and below the
// diagonal, and those above.
func isTriangle(c *op.Array, fits func(x float64, below bool) bool) bool {
	r := len(c.Shape)
	if r < 2 || c.C128 != nil || c.Str != nil || c.Len() == 0 {
		return false
	}
	rows, columns := c.Shape[r-2], c.Shape[r-1]
	if rows*columns != c.Len() {
		return false
	}
	for i := range c.Len() {
		if !fits(c.Float(i), i%columns <= i/columns) {
			return false
		}
	}
	return true
}

// fromStart reports whether a Slice takes elements from the first on, without leaving any out in between.
func (a *attention) fromStart(n *graph.Node) bool {
	if len(n.In) < 3 || n.In[1] == nil {
		return false
	}
	starts := a.known(n.In[1])
	if starts == nil || starts.I64 == nil || slices.ContainsFunc(starts.I64, func(x int64) bool { return x != 0 }) {
		return false
	}
	if len(n.In) < 5 || n.In[4] == nil {
		return true
	}
	steps := a.known(n.In[4])
	return steps != nil && steps.I64 != nil && !slices.ContainsFunc(steps.I64, func(x int64) bool { return x != 1 })
}

// ones returns the number that v repeats, also where its shape is not known before run time.
func (a *attention) ones(v *graph.Value) (float64, bool) {
	for range 6 {
		if v == nil {
			return 0, false
		}
		if c := a.constant(v); c != nil && c.Len() > 0 && c.C128 == nil && c.Str == nil {
			for i := range c.Len() {
				if c.Float(i) != c.Float(0) {
					return 0, false
				}
			}
			return c.Float(0), true
		}
		n := v.Def
		switch {
		case n == nil:
			return 0, false
		case n.Is("ConstantOfShape"):
			at := n.Attr("value")
			if at == nil {
				return 0, true
			}
			if at.T == nil || at.Ref != "" || at.T.Len() != 1 {
				return 0, false
			}
			c, err := op.FromTensor(at.T, false)
			if err != nil {
				return 0, false
			}
			return c.Float(0), true
		case n.Is("Expand"), n.Is("Cast"), n.Is("Reshape"):
			v = n.Operand(0)
		default:
			return 0, false
		}
	}
	return 0, false
}

// emit builds the operator. Masks are summed up and, where they are the same for several queries, repeated for each: runtimes
// take no narrower ones. A mask that is a triangle, if queries are as many as keys, is the operator's own.
func (a *attention) emit(b *op.Builder) *graph.Value {
	scores := a.scores.Shape
	r := len(scores)
	attrs := []*graph.Attr{graph.FloatAttr("scale", float32(a.scale))}
	masks := a.masks
	if len(masks) == 1 && scores[r-1].Equal(scores[r-2]) && !scores[r-1].IsUnknown() && a.causal(masks[0]) {
		masks = nil
		attrs = append(attrs, graph.IntAttr("is_causal", 1))
	}
	k := a.k
	if k == nil {
		k = a.turned(b)
	}
	in := []*graph.Value{a.q, k, a.v}
	if a.flat != nil {
		heads, _ := a.flat[1].Int()
		for i, x := range in {
			in[i] = b.Reshape(x, joined(b, b.Ints(-1, heads), b.DimOf(x, 1), b.DimOf(x, 2)))
		}
	}
	if mask := a.mask(b, masks); mask != nil {
		in = append(in, mask)
	}
	if a.softcap > 0 {
		attrs = append(attrs, graph.FloatAttr("softcap", float32(a.softcap)))
	}
	if a.wide {
		attrs = append(attrs, graph.IntAttr("softmax_precision", int64(graph.Float)))
	}
	if r == 3 {
		attrs = append(attrs, graph.IntAttr("q_num_heads", 1), graph.IntAttr("kv_num_heads", 1))
	}
	y := b.Op("Attention", in, attrs...)
	if a.flat != nil {
		y = b.Reshape(y, joined(b, b.Ints(-1), b.DimOf(a.q, 1), b.DimOf(a.v, 2)))
	}
	return y
}

// turned returns k, of which kt is the transpose.
func (a *attention) turned(b *op.Builder) *graph.Value {
	r := len(a.kt.Type.Shape)
	perm := make([]int64, r)
	for i := range perm {
		perm[i] = int64(i)
	}
	x := a.kt
	if n := a.kt.Def; n != nil && n.Is("Transpose") && len(n.Ints("perm")) == r {
		perm, x = slices.Clone(n.Ints("perm")), n.In[0]
	}
	perm[r-1], perm[r-2] = perm[r-2], perm[r-1]
	return b.Transpose(x, perm...)
}

// mask returns the masks as one, in the form that the operator takes, nil without any.
func (a *attention) mask(b *op.Builder, masks []attentionMask) *graph.Value {
	var sum *graph.Value
	elem := a.q.Type.Elem
	for _, m := range slices.Backward(masks) { // the first that scores meet first
		if m.keep != nil {
			kept, fill := sum, b.Scalar(elem, m.fill)
			if kept == nil {
				kept = b.Scalar(elem, 0)
			}
			if m.negate {
				kept, fill = fill, kept
			}
			sum = b.Where(m.keep, kept, fill)
			continue
		}
		v := b.MulScalar(b.Cast(m.add, elem), m.factor)
		if m.negate {
			v = b.Neg(v)
		}
		if sum == nil {
			sum = v
		} else {
			sum = b.Add(sum, v)
		}
	}
	if sum == nil {
		return nil
	}
	r, s := len(a.scores.Shape), sum.Type.Shape
	if n := len(s); n < 2 || !s[n-2].Equal(a.scores.Shape[r-2]) || !s[n-1].Equal(a.scores.Shape[r-1]) {
		sum = a.widened(b, sum)
	}
	if n := len(sum.Type.Shape); r == 3 && n == 3 {
		return b.Unsqueeze(sum, 1) // each batch has one head
	} else if n == 3 {
		return b.Unsqueeze(sum, 0)
	}
	return sum
}

// widened returns the mask with an element for each pair of query and key.
func (a *attention) widened(b *op.Builder, mask *graph.Value) *graph.Value {
	r := len(a.q.Type.Shape)
	rows, columns := b.DimOf(a.q, r-2), b.DimOf(a.kt, r-1)
	if n := len(mask.Type.Shape); n > 0 && mask.Type.Shape[n-1].Equal(a.kt.Type.Shape[r-1]) {
		columns = b.Ints(1)
	}
	return b.Expand(mask, joined(b, rows, columns))
}

// joined returns vectors of integers as one, a constant where their elements are known.
func joined(b *op.Builder, parts ...*graph.Value) *graph.Value {
	var all []int64
	for _, p := range parts {
		d := b.Info.Dims(p)
		if d == nil {
			return b.Concat(0, parts...)
		}
		for _, x := range d {
			n, ok := x.Int()
			if !ok {
				return b.Concat(0, parts...)
			}
			all = append(all, n)
		}
	}
	return b.Ints(all...)
}
