package legal

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// convOps holds the convolutions. All are contractions whose operands are read in place: windows are accesses with two
// dimensions on one axis.
func convOps() map[string]lowering {
	return map[string]lowering{"Conv": lowerConv, "ConvTranspose": lowerConvTranspose}
}

// space numbers the dimensions of a convolution.
type space struct {
	dims []int
	kind []Kind
}

func (s *space) add(n int, k Kind) int {
	s.dims, s.kind = append(s.dims, n), append(s.kind, k)
	return len(s.dims) - 1
}

func (s *space) list(n []int, k Kind) []int {
	var out []int
	for _, d := range n {
		out = append(out, s.add(d, k))
	}
	return out
}

// at returns a coordinate: pairs of dimension and coefficient, then the offset.
func (s *space) at(off int, terms ...int) []int {
	c := make([]int, len(s.dims)+1)
	for i := 0; i < len(terms); i += 2 {
		c[terms[i]] += terms[i+1]
	}
	c[len(s.dims)] = off
	return c
}

func lowerConv(l *lowerer, n *graph.Node) error {
	x, w := l.materialize(l.raw(0)), l.materialize(l.raw(1))
	groups := int(n.Int("group", 1))
	g, err := op.WindowGeometry(n, x.shape[2:], w.shape[2:])
	if err != nil {
		return err
	}
	outPer, inPer := w.shape[0]/groups, w.shape[1]
	images := x.shape[0]
	x, xCut := l.grouped(x, 1, groups)
	w, wCut := l.grouped(w, 0, groups)
	s := &space{}
	grp := s.add(groups, Batch)
	oc := s.add(outPer, M)
	img := s.add(images, N)
	out := s.list(g.Out, N)
	ic := s.add(inPer, K)
	tap := s.list(g.Kernel, K)

	channel := func(cut bool, per, inner int) [][]int {
		if cut {
			return [][]int{s.at(0, grp, 1), s.at(0, inner, 1)}
		}
		return [][]int{s.at(0, grp, per, inner, 1)}
	}
	xc := append([][]int{s.at(0, img, 1)}, channel(xCut, inPer, ic)...)
	wc := append(channel(wCut, outPer, oc), s.at(0, ic, 1))
	yc := [][]int{s.at(0, img, 1), s.at(0, grp, outPer, oc, 1)}
	for i := range g.Out {
		xc = append(xc, s.at(-g.Begin[i], out[i], g.Stride[i], tap[i], g.Dilation[i]))
		wc = append(wc, s.at(0, tap[i], 1))
		yc = append(yc, s.at(0, out[i], 1))
	}
	y := l.result(0)
	bias, _ := l.in(2)
	l.window(s, w.access(wc), x.access(xc), y, y.access(yc), bias, s.at(0, grp, outPer, oc, 1))
	return nil
}

// window makes the kernel of one convolution: sums of a times b in c, plus a bias at the given coordinate if there is one.
// Products in which a group has few rows are left to the vector unit.
func (l *lowerer) window(s *space, a, b *Access, y val, c *Access, bias val, biasAt []int) {
	rows, per := 1, 1
	for i, k := range s.kind {
		switch k {
		case M:
			rows *= s.dims[i]
		case Batch:
			per *= s.dims[i]
		}
	}
	withBias := bias.buf != nil || bias.imm != nil
	if per > 1 && rows < 4 {
		e := l.nest(s.dims)
		e.loads = append(e.loads, a.tidy(s.dims), b.tidy(s.dims))
		var over []int
		for i, k := range s.kind {
			if k == K {
				over = append(over, i)
			}
		}
		sum := e.reduceOver(Sum, e.do(Mul, 0, 1), over)
		if withBias {
			sum = e.do(Add, sum, e.loadAt(bias, [][]int{biasAt}, 0))
		}
		e.k.Out = append(e.k.Out, Store{To: c.tidy(s.dims), Value: int(e.wrap(sum, y.elem))})
		e.done()
		return
	}
	k := &Contract{Dims: s.dims, Kind: s.kind, A: a.tidy(s.dims), B: b.tidy(s.dims)}
	if !withBias {
		k.C = c.tidy(s.dims)
		l.add(k)
		return
	}
	outer := slices.Clone(s.dims)
	for i, kd := range s.kind {
		if kd == K {
			outer[i] = 1
		}
	}
	e := l.nest(outer)
	e.loads = append(e.loads, nil)
	sum := e.do(Add, 0, e.loadAt(bias, [][]int{biasAt}, 0))
	e.k.Out = append(e.k.Out, Store{To: c.tidy(s.dims), Value: int(e.wrap(sum, y.elem))})
	k.Post = e.finish()
	l.add(k)
}

// lowerConvTranspose lowers the transpose of a convolution: result position p takes operand position o through tap t where
// p = o*stride + t*dilation - begin. Positions are sorted by their remainder: along an axis, those p with p + begin = r
// mod stride take the taps t = t0 + j*step, and o goes down as j goes up. So each class of positions is a convolution with
// stride 1, and no product with zero is computed.
func lowerConvTranspose(l *lowerer, n *graph.Node) error {
	x, w := l.materialize(l.arg(0)), l.materialize(l.arg(1))
	groups := int(n.Int("group", 1))
	g, err := op.TransposeGeometry(n, x.shape[2:], w.shape[2:])
	if err != nil {
		return err
	}
	y := l.result(0)
	bias, withBias := l.in(2)
	if !withBias {
		bias = val{}
	}
	classes := make([][]phase, len(g.In))
	for i := range g.In {
		for r := range min(g.Stride[i], g.In[i]) {
			classes[i] = append(classes[i], phaseOf(g, i, r))
		}
	}
	pick := make([]phase, len(classes))
	var each func(i int)
	each = func(i int) {
		if i == len(classes) {
			l.transposed(n, g, pick, groups, x, w, y, bias)
			return
		}
		for _, p := range classes[i] {
			pick[i] = p
			each(i + 1)
		}
	}
	each(0)
	return nil
}

// grouped returns a view of which no axis has parts: where those of an axis are groups and what is in them, it is cut into two axes, and else a
// copy if need be. It reports whether the axis is cut.
func (l *lowerer) grouped(v val, axis, groups int) (val, bool) {
	if v.parts == nil {
		return v, false
	}
	shape := slices.Concat(v.shape[:axis], []int{groups, v.shape[axis] / groups}, v.shape[axis+1:])
	if w, ok := v.reshaped(shape); ok && w.parts == nil {
		return w, true
	}
	return l.plain(v), false
}

// phase is a class of result positions along an axis: first, first+stride, ...; count of them.
type phase struct {
	first, count    int
	tap, step, taps int // taps tap, tap+step, ...
	at, down        int // operand position of the first result through the first tap, and how far it goes down by tap
}

// phaseOf returns the class of the positions r, r+stride, ... of an axis.
func phaseOf(g *op.Geometry, axis, r int) phase {
	s, d := g.Stride[axis], g.Dilation[axis]
	p := phase{first: r, count: (g.In[axis] - r + s - 1) / s, step: s / gcd(s, d), down: d / gcd(s, d)}
	for t := range min(p.step, g.Kernel[axis]) {
		if off := r + g.Begin[axis] - t*d; off%s == 0 {
			p.tap, p.at = t, off/s
			p.taps = (g.Kernel[axis] - t + p.step - 1) / p.step
			break
		}
	}
	return p
}

// transposed makes the kernel of one class of positions.
func (l *lowerer) transposed(n *graph.Node, g *op.Geometry, ph []phase, groups int, x, w, y, bias val) {
	outPer, inPer := w.shape[1], w.shape[0]/groups
	s := &space{}
	grp := s.add(groups, Batch)
	oc := s.add(outPer, M)
	img := s.add(x.shape[0], N)
	var at, tap []int
	for _, p := range ph {
		at = append(at, s.add(p.count, N))
	}
	ic := s.add(inPer, K)
	empty := false
	for _, p := range ph {
		tap = append(tap, s.add(max(p.taps, 1), K))
		empty = empty || p.taps == 0
	}
	xc := [][]int{s.at(0, img, 1), s.at(0, grp, inPer, ic, 1)}
	wc := [][]int{s.at(0, grp, inPer, ic, 1), s.at(0, oc, 1)}
	yc := [][]int{s.at(0, img, 1), s.at(0, grp, outPer, oc, 1)}
	for i, p := range ph {
		xc = append(xc, s.at(p.at, at[i], 1, tap[i], -p.down))
		wc = append(wc, s.at(p.tap, tap[i], p.step))
		yc = append(yc, s.at(p.first, at[i], g.Stride[i]))
	}
	biasAt := s.at(0, grp, outPer, oc, 1)
	if !empty {
		l.window(s, w.access(wc), x.access(xc), y, y.access(yc), bias, biasAt)
		return
	}
	// No tap reaches these positions.
	dims := slices.Clone(s.dims)
	for i, k := range s.kind {
		if k == K {
			dims[i] = 1
		}
	}
	b := l.nest(dims)
	v := b.konst(graph.Float, 0)
	if bias.buf != nil || bias.imm != nil {
		v = b.loadAt(bias, [][]int{biasAt}, 0)
	}
	b.k.Out = append(b.k.Out, Store{To: y.access(yc).tidy(dims), Value: int(v)})
	b.done()
}
