package fuse

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/rewrite"
)

// keys finds k and, where its heads and those of v are copies, the heads they are copies of.
func (a *attention) keys() {
	n := a.kt.Def
	rank := len(a.kt.Type.Shape)
	if n == nil || !n.Is("Transpose") || len(n.Ints("perm")) != rank || rank != 4 {
		return
	}
	if p := n.Ints("perm"); p[0] == 0 && p[1] == 1 && p[2] == 3 && p[3] == 2 {
		k, g := repeated(n.In[0])
		v, h := repeated(a.v)
		if g > 1 && g == h {
			a.k, a.v, a.group = k, v, g
		}
	}
}

// repeated returns the heads that those of v are, each several times in a row, and how many times: v is [batch, heads*times, ...],
// written as a Reshape of an Expand, Tile or Concat of [batch, heads, 1, ...].
func repeated(v *graph.Value) (*graph.Value, int64) {
	n := v.Def
	if n == nil || !n.Is("Reshape") || n.In[0] == nil || n.In[0].Def == nil || len(v.Type.Shape) != 4 {
		return v, 1
	}
	wide := n.In[0]
	w := wide.Def
	switch {
	case w.Is("Expand"), w.Is("Tile"):
	case w.Is("Concat"):
		if axis := w.Int("axis", 0); axis != 2 && axis != -3 || slices.ContainsFunc(w.In, func(x *graph.Value) bool { return x != w.In[0] }) {
			return v, 1
		}
	default:
		return v, 1
	}
	one := w.In[0]
	if one == nil || one.Def == nil || !one.Def.Is("Unsqueeze") && !one.Def.Is("Reshape") || one.Def.In[0] == nil {
		return v, 1
	}
	x := one.Def.In[0]
	s, o, t, r := x.Type.Shape, one.Type.Shape, wide.Type.Shape, v.Type.Shape
	if len(s) != 4 || len(o) != 5 || len(t) != 5 {
		return v, 1
	}
	times, ok := t[2].Int()
	single, ok2 := o[2].Int()
	heads, ok3 := s[1].Int()
	all, ok4 := r[1].Int()
	if !ok || !ok2 || !ok3 || !ok4 || single != 1 || times < 2 || heads*times != all {
		return v, 1
	}
	for _, p := range [][2]graph.Dim{{s[0], o[0]}, {s[1], o[1]}, {s[2], o[3]}, {s[3], o[4]}, {o[0], t[0]}, {o[1], t[1]}, {o[3], t[3]}, {o[4], t[4]},
		{t[0], r[0]}, {t[3], r[2]}, {t[4], r[3]}} {
		if !p[0].Equal(p[1]) {
			return v, 1
		}
	}
	return x, times
}

// check checks shapes and types: q, k and v are as many, and masks fit the scores.
func (a *attention) check(rank int) error {
	q, kt, v := a.q.Type, a.kt.Type, a.v.Type
	if len(q.Shape) != rank || len(kt.Shape) != rank || len(v.Shape) != rank || !q.Elem.IsDifferentiable() || q.Elem == graph.Double || kt.Elem != q.Elem || v.Elem != q.Elem {
		return rewrite.ErrUnlike
	}
	for i := range rank - 2 {
		same := q.Shape[i].Equal(kt.Shape[i]) && (a.group > 1 && i == 1 || q.Shape[i].Equal(v.Shape[i]))
		if !same && !(i == 1 && a.shared(q.Shape, kt.Shape, v.Shape)) {
			return errBatches
		}
	}
	for _, t := range []graph.Type{q, kt, v} {
		if slices.ContainsFunc(t.Shape, func(d graph.Dim) bool { n, ok := d.Int(); return ok && n == 0 }) {
			return errEmpty
		}
	}
	scores := graph.Shape{}
	if a.flat != nil {
		scores = append(scores, a.flat[:2]...)
	} else {
		scores = append(scores, q.Shape[:rank-2]...)
	}
	scores = append(scores, q.Shape[rank-2])
	scores = append(scores, kt.Shape[rank-1])
	a.scores.Shape = scores
	for _, m := range a.masks {
		if err := a.checkMask(m, scores); err != nil {
			return err
		}
	}
	return nil
}

// shared reports whether all heads of q read the one head of k and v.
func (a *attention) shared(q, kt, v graph.Shape) bool {
	if _, ok := q[1].Int(); !ok || a.group > 1 {
		return false
	}
	k, ok := kt[1].Int()
	h, ok2 := v[1].Int()
	return ok && ok2 && k == 1 && h == 1
}

// checkMask checks that m has an element for each score, or the same for several, and that it masks as the operator does.
func (a *attention) checkMask(m attentionMask, scores graph.Shape) error {
	v := m.add
	if v == nil {
		v = m.keep
	} else if v.Type.Elem != a.scores.Elem && v.Type.Elem != a.q.Type.Elem {
		return rewrite.ErrUnlike
	}
	s := v.Type.Shape
	if s == nil || len(s) > len(scores) {
		return errMaskShape
	}
	for i, d := range s {
		if k, ok := d.Int(); !(ok && k == 1) && !d.Equal(scores[len(scores)-len(s)+i]) {
			return errMaskShape
		}
	}
	// Added to a score, what is below the least sum of floats gives itself, as choosing it does. A fill above that is as good
	// where each row keeps a score, which no other mask takes.
	if m.keep != nil && !(m.fill <= -1e30) && !(m.fill <= hides && len(a.masks) == 1 && a.causal(m)) {
		return errFill
	}
	return nil
}
