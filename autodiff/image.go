package autodiff

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

func imageRules() []Rule {
	return []Rule{
		{Name: "Resize", Kind: HasVJP, VJP: resizeVJP, Check: checkResize, Stop: []int{1, 2}},
		{Name: "GridSample", Kind: Decomposed, Check: checkKnownRank},
		{Name: "AffineGrid", Kind: Decomposed, Check: checkKnownSizes},
	}
}

func checkKnownRank(n *graph.Node) error {
	if n.In[0].Type.Shape == nil {
		return fmt.Errorf("the rank of %q is not known", n.In[0].Name)
	}
	return nil
}

func checkKnownSizes(n *graph.Node) error {
	if s := n.In[1].Type.Shape; len(s) == 1 {
		if _, ok := s[0].Int(); ok {
			return nil
		}
	}
	return fmt.Errorf("the number of elements of %q is not known", n.In[1].Name)
}

func checkResize(n *graph.Node) error {
	if err := checkKnownRank(n); err != nil {
		return err
	}
	if n.Str("keep_aspect_ratio_policy", "stretch") != "stretch" && n.Operand(3) != nil {
		if _, ok := n.In[0].Type.Shape.Ints(); !ok || readsInput(n.Operand(3)) {
			return errors.New("keep_aspect_ratio_policy needs known sizes")
		}
	}
	return nil
}

// readsInput reports whether v, of integers, depends on what an input of a graph holds; its shape may be known.
func readsInput(v *graph.Value) bool {
	if v.Def == nil {
		return v.Init == nil
	}
	if v.Def.Is("Shape") || v.Def.Is("Size") {
		return false
	}
	return slices.ContainsFunc(v.Def.In, func(in *graph.Value) bool { return in != nil && readsInput(in) })
}

// resizeVJP: Resize is linear and acts on each axis by itself, y = x R_1 R_2 ..., where R_a[in,out] resizes
// axis a. So x̄ = ȳ ... R_2ᵀ R_1ᵀ, and R_a is what the same Resize makes of the identity matrix, in
// whatever mode, at whatever sizes run time brings. Where R_a repeats each sample a whole number of times,
// its transpose is a sum over the repetitions.
func resizeVJP(c *Ctx) []*graph.Value {
	g := c.Ct(0)
	rank := len(c.Y(0).Type.Shape)
	for i, a := range op.ResizeAxes(c.Node, rank) {
		if c.keepsAxis(i, a) {
			continue
		}
		if k := c.repeats(i, a); k > 0 {
			g = c.sumRepeats(g, a, k)
			continue
		}
		g = c.contract(g, c.resizeMatrix(i, a), a)
	}
	return one(g)
}

// keepsAxis reports whether the axis a, the i-th that the node resizes, certainly stays as it is.
func (c *Ctx) keepsAxis(i, a int) bool {
	if c.Node.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
		return false
	}
	if v := c.X(2); v != nil {
		if s := c.Info.Const(v); s != nil && s.Len() > 0 {
			return s.Float(i) == 1
		}
	}
	return c.X(0).Type.Shape[a].Equal(c.Y(0).Type.Shape[a]) && c.X(3) != nil
}

// repeats returns k if nearest sampling gives each sample of axis a k times in a row, else 0.
func (c *Ctx) repeats(i, a int) int64 {
	n := c.Node
	if n.Str("mode", "nearest") != "nearest" || c.X(2) == nil {
		return 0
	}
	s := c.Info.Const(c.X(2))
	if s == nil || s.Len() <= i {
		return 0
	}
	k := int64(s.Float(i))
	coord, round := n.Str("coordinate_transformation_mode", "half_pixel"), n.Str("nearest_mode", "round_prefer_floor")
	regular := coord == "asymmetric" && round == "floor" || coord == "half_pixel" && (round == "round_prefer_floor" || round == "round_prefer_ceil")
	if float64(k) != s.Float(i) || !regular {
		return 0
	}
	return k
}

// sumRepeats adds up each k neighbours along axis a.
func (c *Ctx) sumRepeats(g *graph.Value, a int, k int64) *graph.Value {
	rank := len(c.Y(0).Type.Shape)
	var shape []*graph.Value
	for i := range rank {
		if i == a {
			shape = append(shape, c.DimOf(c.X(0), i), c.Ints(k))
		} else {
			shape = append(shape, c.DimOf(g, i))
		}
	}
	return c.ReduceSum(c.Reshape(g, c.Concat(0, shape...)), false, int64(a+1))
}

// resizeMatrix returns R[in,out] of axis a, the i-th that the node resizes.
func (c *Ctx) resizeMatrix(i, a int) *graph.Value {
	n, x := c.Node, c.X(0)
	if n.Str("keep_aspect_ratio_policy", "stretch") != "stretch" && c.X(3) != nil {
		return c.Const(op.ResizeMatrix(n, x.Type, c.Info, i))
	}
	in := c.DimOf(x, a)
	eye := c.Unary("EyeLike", c.Full(c.Concat(0, in, in), x.Type.Elem, 0))
	eye = c.Reshape(eye, c.Concat(0, c.Ints(1, 1), in, in))
	attrs := []*graph.Attr{}
	for _, at := range n.Attrs {
		if at.Name != "axes" && at.Name != "keep_aspect_ratio_policy" && at.Name != "extrapolation_value" {
			attrs = append(attrs, at)
		}
	}
	pick := func(v *graph.Value, i int) *graph.Value { return c.Gather(v, c.Ints(int64(i)), 0) }
	var roi, scales, sizes *graph.Value
	if v := c.X(1); v != nil && n.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
		axes := len(op.ResizeAxes(n, len(c.Y(0).Type.Shape)))
		zeros, ones := c.Cast(c.Ints(0, 0, 0), v.Type.Elem), c.Cast(c.Ints(1, 1, 1), v.Type.Elem)
		roi = c.Concat(0, zeros, pick(v, i), ones, pick(v, i+axes))
	}
	if v := c.X(3); v != nil {
		sizes = c.Concat(0, c.Ints(1, 1), in, pick(v, i))
	} else {
		scales = c.Concat(0, c.Cast(c.Ints(1, 1, 1), graph.Float), pick(c.X(2), i))
	}
	r := c.Op("Resize", []*graph.Value{eye, roi, scales, sizes}, attrs...)
	return c.Squeeze(r, 0, 1)
}

// contract returns the sum over axis a of g times r[in,out], whose second axis that is.
func (c *Ctx) contract(g, r *graph.Value, a int) *graph.Value {
	rank := len(g.Type.Shape)
	switch a {
	case rank - 1:
		return c.MatMul(g, c.Transpose(r, 1, 0))
	case rank - 2:
		return c.MatMul(r, g)
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[a], perm[rank-1] = perm[rank-1], perm[a]
	return c.Transpose(c.MatMul(c.Transpose(g, perm...), c.Transpose(r, 1, 0)), perm...)
}
