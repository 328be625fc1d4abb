package op

import (
	"fmt"

	"gradtool/graph"
)

// blockDefs lists the operators that move blocks, rows and triangles.
func blockDefs() []Def {
	block := func(mode string) []*graph.Attr {
		a := []*graph.Attr{graph.IntAttr("blocksize", 2)}
		if mode != "" {
			a = append(a, graph.StringAttr("mode", mode))
		}
		return a
	}
	lower := []*graph.Attr{graph.IntAttr("upper", 0)}
	return []Def{
		{Name: "DepthToSpace", Infer: inferDepthToSpace, Eval: evalDepthToSpace, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 8, 2, 3)}, Attrs: block("")},
			{Name: "CRD", In: []Arg{F(2, 8, 2, 3)}, Attrs: block("CRD")},
		}},
		{Name: "SpaceToDepth", Infer: inferSpaceToDepth, Eval: evalSpaceToDepth, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 3, 4, 6)}, Attrs: block("")},
		}},
		{Name: "ReverseSequence", Infer: sameAsFirst, Eval: evalReverseSequence, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(4, 3, 2), I(1, 4, 2)}},
			{Name: "batch first", In: []Arg{F(3, 4), I(4, 0, 3)}, Attrs: []*graph.Attr{graph.IntAttr("batch_axis", 0), graph.IntAttr("time_axis", 1)}},
		}},
		{Name: "Trilu", Infer: tracked(sameAsFirst, evalTrilu, 0), Eval: evalTrilu, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(3, 4)}},
			{Name: "upper, k", In: []Arg{F(2, 3, 3), IS(1)}},
			{Name: "lower", In: []Arg{F(4, 3)}, Attrs: lower},
			{Name: "lower, k", In: []Arg{F(3, 4), IS(-2)}, Attrs: lower},
			{Name: "far off", In: []Arg{F(3, 4), IS(9)}},
		}},
		{Name: "TensorScatter", Infer: inferTensorScatter, Eval: evalTensorScatter, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 3, 4, 2), F(2, 3, 2, 2), I(1, 2)}},
			{Name: "from the start", In: []Arg{F(2, 4, 3), F(2, 2, 3)}},
			{Name: "axis", In: []Arg{F(2, 4, 3), F(2, 2, 3), I(2, 0)}, Attrs: []*graph.Attr{graph.IntAttr("axis", 1)}},
			{Name: "circular", In: []Arg{F(2, 2, 4, 1), F(2, 2, 3, 1), I(3, 2)}, Attrs: []*graph.Attr{graph.StringAttr("mode", "circular")}},
		}},
	}
}

// blockSize returns the attribute blocksize of a node.
func blockSize(n *graph.Node) (int64, error) {
	b := n.Int("blocksize", 0)
	if b <= 0 || b > 1<<15 {
		return 0, fmt.Errorf("blocksize %d is not positive", b)
	}
	return b, nil
}

func inferDepthToSpace(c *InferCtx) error { return inferBlocks(c, true) }

func inferSpaceToDepth(c *InferCtx) error { return inferBlocks(c, false) }

func inferBlocks(c *InferCtx, toSpace bool) error {
	s := c.Shape(0)
	b, err := blockSize(c.Node)
	if err != nil {
		return err
	}
	if s == nil {
		c.Set(0, c.Elem(0), graph.UnknownShape(4))
		return nil
	}
	if len(s) != 4 {
		return c.Errorf("operand of rank %d, want 4", len(s))
	}
	area, side := graph.Known(b*b), graph.Known(b)
	divisible := func(d graph.Dim, by int64) bool { n, ok := d.Int(); return !ok || n%by == 0 }
	if toSpace {
		if !divisible(s[1], b*b) {
			return c.Errorf("%v channels are not a multiple of %d", s[1], b*b)
		}
		c.Set(0, c.Elem(0), graph.Shape{s[0], s[1].FloorDiv(area), s[2].Mul(side), s[3].Mul(side)})
		return nil
	}
	if !divisible(s[2], b) || !divisible(s[3], b) {
		return c.Errorf("%v by %v is not a multiple of %d", s[2], s[3], b)
	}
	c.Set(0, c.Elem(0), graph.Shape{s[0], s[1].Mul(area), s[2].FloorDiv(side), s[3].FloorDiv(side)})
	return nil
}

// evalDepthToSpace takes each run of blocksize^2 channels apart into blocks of pixels.
func evalDepthToSpace(c *EvalCtx) error {
	x := c.In[0]
	size, err := blockSize(c.Node)
	if err != nil {
		return err
	}
	b := int(size)
	if x.Rank() != 4 || x.Shape[1]%(b*b) != 0 {
		return c.Errorf("shape %v, want four axes and a multiple of %d channels", x.Shape, b*b)
	}
	n, ch, h, w := x.Shape[0], x.Shape[1]/(b*b), x.Shape[2], x.Shape[3]
	var y *Array
	switch mode := c.Node.Str("mode", "DCR"); mode {
	case "DCR":
		y = permuted(x.WithShape([]int{n, b, b, ch, h, w}), []int{0, 3, 4, 1, 5, 2})
	case "CRD":
		y = permuted(x.WithShape([]int{n, ch, b, b, h, w}), []int{0, 1, 4, 2, 5, 3})
	default:
		return c.Errorf("mode %q is not known", mode)
	}
	c.Set(0, y.WithShape([]int{n, ch, h * b, w * b}))
	return nil
}

// evalSpaceToDepth is the inverse of evalDepthToSpace in mode DCR.
func evalSpaceToDepth(c *EvalCtx) error {
	x := c.In[0]
	size, err := blockSize(c.Node)
	if err != nil {
		return err
	}
	b := int(size)
	if x.Rank() != 4 || x.Shape[2]%b != 0 || x.Shape[3]%b != 0 {
		return c.Errorf("shape %v, want four axes, the last two multiples of %d", x.Shape, b)
	}
	n, ch, h, w := x.Shape[0], x.Shape[1], x.Shape[2]/b, x.Shape[3]/b
	y := permuted(x.WithShape([]int{n, ch, h, b, w, b}), []int{0, 3, 5, 1, 2, 4})
	c.Set(0, y.WithShape([]int{n, ch * b * b, h, w}))
	return nil
}

func evalReverseSequence(c *EvalCtx) error {
	x, lens := c.In[0], c.Ints(1)
	batch, time := c.Node.Int("batch_axis", 1), c.Node.Int("time_axis", 0)
	if x.Rank() < 2 || batch+time != 1 || batch*time != 0 {
		return c.Errorf("batch axis %d and time axis %d of a tensor of rank %d", batch, time, x.Rank())
	}
	if len(lens) != x.Shape[batch] {
		return c.Errorf("%d lengths for a batch of %d", len(lens), x.Shape[batch])
	}
	y := x.NewLike(x.Shape)
	step, inner := strides(x.Shape), prod(x.Shape[2:])
	for b, n := range lens {
		if n < 0 || n > int64(x.Shape[time]) {
			return c.Errorf("length %d of a sequence of %d", n, x.Shape[time])
		}
		for t := range x.Shape[time] {
			from := t
			if t < int(n) {
				from = int(n) - 1 - t
			}
			y.copyRun(b*step[batch]+t*step[time], x, b*step[batch]+from*step[time], inner)
		}
	}
	c.Set(0, y)
	return nil
}

func evalTrilu(c *EvalCtx) error {
	x := c.In[0]
	if x.Rank() < 2 {
		return c.Errorf("operand of rank %d, want at least 2", x.Rank())
	}
	k := 0
	if at := c.Ints(1); len(at) == 1 {
		k = int(max(-1<<40, min(at[0], 1<<40)))
	}
	upper := c.Node.Int("upper", 1) != 0
	y := x.NewLike(x.Shape)
	rows, cols := x.Shape[x.Rank()-2], x.Shape[x.Rank()-1]
	for r := range prod(x.Shape[:x.Rank()-1]) {
		edge := r%rows + k // the column on the diagonal
		lo, hi := max(0, edge), cols
		if !upper {
			lo, hi = 0, min(edge+1, cols)
		}
		if lo < hi {
			y.copyRun(r*cols+lo, x, r*cols+lo, hi-lo)
		}
	}
	c.Set(0, y)
	return nil
}

func inferTensorScatter(c *InferCtx) error {
	if s, u := c.Shape(0), c.Shape(1); s != nil && u != nil && len(s) != len(u) {
		return c.Errorf("cache of rank %d and update of rank %d", len(s), len(u))
	}
	return sameAsFirst(c)
}

func evalTensorScatter(c *EvalCtx) error {
	past, update, at := c.In[0], c.In[1], c.Ints(2)
	axis, err := c.axisOf(-2, past.Rank())
	if err != nil {
		return err
	}
	if axis == 0 || update.Rank() != past.Rank() {
		return c.Errorf("cache %v and update %v along axis %d", past.Shape, update.Shape, axis)
	}
	outer, n, inner := around(past.Shape, axis)
	count := update.Shape[axis]
	if outer*count*inner != update.Len() || count > n {
		return c.Errorf("update %v does not fit into cache %v", update.Shape, past.Shape)
	}
	if at != nil && len(at) != past.Shape[0] {
		return c.Errorf("%d write indices for a batch of %d", len(at), past.Shape[0])
	}
	circular := c.Node.Str("mode", "linear") == "circular"
	y := past.Clone()
	for o := range outer {
		first := 0
		if at != nil {
			first = int(at[o/(outer/past.Shape[0])])
		}
		for k := range count {
			p := first + k
			if circular {
				p = (p%n + n) % n
			}
			if p < 0 || p >= n {
				return c.Errorf("write index %d is outside a cache of %d", p, n)
			}
			y.copyRun((o*n+p)*inner, update, (o*count+k)*inner, inner)
		}
	}
	c.Set(0, y)
	return nil
}
