package fuse

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// attention is softmax(cap tanh(scale q k^T / cap) + masks) v as a graph spells it: in whatever order scores are scaled and
// masked, on whichever side the scale stands, with the heads of keys and values repeated or not.
type attention struct {
	q, v, kt *graph.Value // kt is k^T: its last two axes are those of k exchanged
	masks    []attentionMask
	scale    float64
	softcap  float64     // 0: none
	wide     bool        // the softmax is computed in float32, of scores in a narrower type
	group    int64       // heads of q to one of k and v
	flat     graph.Shape // of the scores as they are masked, if the products are of matrices of all batches and heads in a row
	k        *graph.Value
	scores   graph.Type  // of the scores where they are masked
	guard    *graph.Node // computes where probabilities are set to 0
	inner    []*graph.Value
	known    func(*graph.Value) *op.Array
}

// attentionMask is added to scores, as it is or 0 where keep holds and fill elsewhere.
type attentionMask struct {
	add    *graph.Value
	factor float64 // that add is multiplied with
	keep   *graph.Value
	fill   float64
	negate bool // keep holds where scores are not kept; add is subtracted
}

var (
	errScores     = errors.New("the scores are no product, scaled and masked")
	errPositive   = errors.New("the scale is no positive number")
	errBatches    = errors.New("q, k and v are not known to be as many")
	errEmpty      = errors.New("there is nothing to compute")
	errMaskShape  = errors.New("a mask is not known to have an element, or the same one, for each score")
	errFill       = errors.New("masked scores are finite, and a row of them alone would be uniform")
	errMaskedSoft = errors.New("scores are masked before they are limited, the operator does it behind")
	errGuard      = errors.New("probabilities are set to 0 elsewhere than in rows that are masked")
	errPrecision  = errors.New("scores are cast to another type where they are scaled or masked")
)

// maxPeel bounds the nodes between the softmax and the product of scores.
const maxPeel = 24

// parseAttention reads the product root as the second one of an attention. The error is rewrite.ErrUnlike where it is none, else it
// says why it is not one that the standard's operator computes.
func parseAttention(root *graph.Node, known func(*graph.Value) *op.Array) (*attention, error) {
	if len(root.In) != 2 || root.In[0] == nil || root.In[1] == nil || root.Opset() < 13 {
		return nil, rewrite.ErrUnlike
	}
	a := &attention{v: root.In[1], scale: 1, group: 1, known: known}
	p := root.In[0]
	rank := len(p.Type.Shape)
	if rank != 3 && rank != 4 {
		return nil, rewrite.ErrUnlike
	}
	soft, err := a.softmax(p)
	if err != nil {
		return nil, err
	}
	if err := a.peel(soft.In[0]); err != nil {
		return nil, err
	}
	if !a.guards(soft) {
		return nil, errGuard
	}
	if err := a.checkReaders(root); err != nil {
		return nil, err
	}
	if !(a.scale > 0) || math.IsInf(a.scale, 0) {
		return nil, errPositive
	}
	a.keys()
	return a, a.check(rank)
}

// softmax finds the softmax that p is, apart from casts and a guard of rows in which nothing is left.
func (a *attention) softmax(p *graph.Value) (*graph.Node, error) {
	for range 4 {
		n := p.Def
		if n == nil {
			return nil, rewrite.ErrUnlike
		}
		a.inner = append(a.inner, p)
		switch {
		case n.Is("Softmax"):
			if axis := n.Int("axis", -1); axis != -1 && axis != int64(len(p.Type.Shape)-1) {
				return nil, rewrite.ErrUnlike
			}
			return n, nil
		case n.Is("Reshape") && a.flat == nil && flattens(n.In[0], p):
			p = n.In[0]
			a.flat = p.Type.Shape
		case n.Is("Cast") && n.In[0] != nil && n.In[0].Type.Elem == graph.Float && p.Type.Elem.Bits() == 16:
			a.wide = true
			p = n.In[0]
		case n.Is("Where") && len(n.In) == 3 && a.isZero(n.In[1]) && n.In[0] != nil && n.In[2] != nil && n.In[0].Def != nil && a.guard == nil:
			a.guard, p = n.In[0].Def, n.In[2]
		default:
			return nil, rewrite.ErrUnlike
		}
	}
	return nil, rewrite.ErrUnlike
}

// flattens reports whether y is x, of four axes, with the first two as one.
func flattens(x, y *graph.Value) bool {
	if x == nil || len(x.Type.Shape) != 4 || len(y.Type.Shape) != 3 {
		return false
	}
	s, t := x.Type.Shape, y.Type.Shape
	heads, ok := s[1].Int()
	return ok && heads > 0 && s[2].Equal(t[1]) && s[3].Equal(t[2])
}

// guards reports whether the condition under which probabilities are set to 0 holds in rows in which nothing is left: where the
// softmax is not a number, or the largest element of the mask is -inf.
func (a *attention) guards(soft *graph.Node) bool {
	n := a.guard
	switch {
	case n == nil:
		return true
	case n.Is("IsNaN") && n.In[0] == soft.Out[0]:
		a.inner = append(a.inner, n.Out[0])
		return true
	case n.Is("Equal") && len(n.In) == 2:
		x, most := n.In[0], n.In[1]
		k, ok := a.number(most)
		if !ok {
			x = most
			k, ok = a.number(n.In[0])
		}
		if !ok || !math.IsInf(k, -1) || x == nil || x.Def == nil || !x.Def.Is("ReduceMax") || len(a.masks) != 1 || a.masks[0].add != x.Def.In[0] {
			return false
		}
		m := a.masks[0]
		axes := x.Def.Operand(1)
		if m.negate || m.factor != 1 || axes == nil || x.Def.Int("keepdims", 1) == 0 {
			return false
		}
		c := a.known(axes)
		return c != nil && c.I64 != nil && c.Len() == 1 && (c.I64[0] == -1 || c.I64[0] == int64(len(m.add.Type.Shape)-1))
	}
	return false
}

// number returns the one element of a constant.
func (a *attention) number(v *graph.Value) (float64, bool) {
	if v == nil {
		return 0, false
	}
	c := a.known(v)
	if c == nil || !c.IsFloat() || c.Len() != 1 {
		return 0, false
	}
	return c.Float(0), true
}

func (a *attention) isZero(v *graph.Value) bool {
	x, ok := a.number(v)
	return ok && x == 0
}

// peel takes scales, masks and a limit off the scores s, down to their product.
func (a *attention) peel(s *graph.Value) error {
	a.scores = s.Type
	outer := 1.0 // what is multiplied behind the place
	limited := 0 // masks behind the limit
	flat := a.flat == nil
	for range maxPeel {
		n := s.Def
		if n == nil {
			return errScores
		}
		a.inner = append(a.inner, s)
		switch {
		case n.Is("MatMul") && flat:
			a.q, a.kt = n.In[0], n.In[1]
			a.scale *= outer
			a.sides()
			return nil
		case n.Is("Reshape") && !flat && flattens(s, n.In[0]):
			s, flat = n.In[0], true
		case n.Is("Cast"):
			if n.In[0] == nil || !a.wide || s.Type.Elem != graph.Float || n.In[0].Type.Elem.Bits() != 16 {
				return errPrecision
			}
			s = n.In[0]
		case n.Is("Mul") && a.softcapped(n, &s):
			if outer != 1 {
				return errScores
			}
		case n.Is("Mul") || n.Is("Div"):
			x, c := n.In[0], n.In[1]
			k, ok := a.number(c)
			if !ok && n.Is("Mul") {
				x, c = c, x
				k, ok = a.number(c)
			}
			if !ok {
				return errScores
			}
			if n.Is("Div") {
				k = 1 / k
			}
			outer *= k
			s = x
		case a.flat != nil && flat && (n.Is("Add") || n.Is("Sub") || n.Is("Where")):
			return errScores
		case n.Is("Add") || n.Is("Sub"):
			x, mask := n.In[0], n.In[1]
			if n.Is("Add") && a.leads(mask, maxPeel) && !a.leads(x, maxPeel) {
				x, mask = mask, x
			}
			if k, ok := a.ones(mask); !ok || k != 0 { // no mask at all
				a.masks = append(a.masks, attentionMask{add: mask, factor: outer, negate: n.Is("Sub")})
			}
			s = x
		case n.Is("Where"):
			m := attentionMask{keep: n.In[0]}
			x, fill := n.In[1], n.In[2]
			if k, ok := a.fill(x); ok {
				m.negate, m.fill, x = true, k*outer, fill
			} else if k, ok := a.fill(fill); ok {
				m.fill = k * outer
			} else {
				return errScores
			}
			if outer <= 0 {
				return errPositive
			}
			if math.Abs(m.fill) > math.MaxFloat32 && !math.IsInf(m.fill/outer, 0) {
				return errFill
			}
			a.masks = append(a.masks, m)
			s = x
		default:
			return errScores
		}
		if s == nil {
			return errScores
		}
		if a.flat != nil && flat && len(s.Type.Shape) != 3 {
			return errScores
		}
		if a.softcap != 0 && len(a.masks) > limited {
			return errMaskedSoft
		}
		if a.softcap == 0 {
			limited = len(a.masks)
		}
	}
	return errScores
}

// fill returns the number that v repeats.
func (a *attention) fill(v *graph.Value) (float64, bool) {
	for v != nil && v.Def != nil && (v.Def.Is("Expand") || v.Def.Is("Cast")) {
		v = v.Def.Operand(0)
	}
	if v == nil {
		return 0, false
	}
	c := a.known(v)
	if c == nil || !c.IsFloat() || c.Len() == 0 {
		return 0, false
	}
	for i := range c.Len() {
		if c.Float(i) != c.Float(0) {
			return 0, false
		}
	}
	return c.Float(0), true
}

// leads reports whether v is computed from a product the way that scores are.
func (a *attention) leads(v *graph.Value, depth int) bool {
	if v == nil || v.Def == nil || depth == 0 {
		return false
	}
	n := v.Def
	switch {
	case n.Is("MatMul"):
		return true
	case n.Is("Mul"), n.Is("Div"), n.Is("Add"), n.Is("Sub"), n.Is("Where"), n.Is("Cast"), n.Is("Tanh"), n.Is("Reshape") && a.flat != nil:
		return slices.ContainsFunc(n.In, func(x *graph.Value) bool { return a.leads(x, depth-1) })
	}
	return false
}

// softcapped reports whether n limits scores, as c tanh(x / c), and makes *s the x.
func (a *attention) softcapped(n *graph.Node, s **graph.Value) bool {
	for i, t := range n.In {
		c, ok := a.number(n.In[1-i])
		if !ok || !(c > 0) || t == nil || t.Def == nil || !t.Def.Is("Tanh") || a.softcap != 0 {
			continue
		}
		x := t.Def.In[0]
		d := x.Def
		if d == nil || !d.Is("Div") && !d.Is("Mul") {
			continue
		}
		y, k := d.In[0], 0.0
		if k, ok = a.number(d.In[1]); !ok && d.Is("Mul") {
			y = d.In[1]
			k, ok = a.number(d.In[0])
		}
		if d.Is("Mul") {
			k = 1 / k
		}
		if !ok || math.Abs(k-c) > 1e-6*c {
			continue
		}
		a.softcap = c
		a.inner = append(a.inner, t, x)
		*s = y
		return true
	}
	return false
}

// sides takes scales off the factors of the product of scores.
func (a *attention) sides() {
	for _, side := range []**graph.Value{&a.q, &a.kt} {
		for range 4 {
			v := *side
			if v == nil || v.Def == nil || v.NumUses() > 1 || !v.Def.Is("Mul") && !v.Def.Is("Div") {
				break
			}
			x := v.Def.In[0]
			k, ok := a.number(v.Def.In[1])
			if !ok && v.Def.Is("Mul") {
				x = v.Def.In[1]
				k, ok = a.number(v.Def.In[0])
			}
			if !ok || k == 0 || len(x.Type.Shape) != len(v.Type.Shape) {
				break
			}
			if v.Def.Is("Div") {
				k = 1 / k
			}
			a.scale *= k
			*side = x
		}
	}
}

// checkReaders checks that nobody but the attention reads what is between its products.
func (a *attention) checkReaders(root *graph.Node) error {
	inside := func(n *graph.Node) bool {
		return n == root || n != nil && slices.ContainsFunc(a.inner, func(v *graph.Value) bool { return v.Def == n })
	}
	for _, v := range a.inner {
		for _, u := range v.Uses() {
			switch {
			case u.Node == nil:
				return fmt.Errorf("inner value %q is a graph output", v.Name)
			case !inside(u.Node):
				return fmt.Errorf("inner value %q is read elsewhere", v.Name)
			}
		}
	}
	return nil
}
