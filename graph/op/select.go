package op

import (
	"cmp"
	"slices"
	"strings"

	"gradtool/graph"
)

// selectDefs lists the operators that choose elements by value.
func selectDefs() []Def {
	attr := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	mask := func(v ...float64) Arg { return TV(graph.Bool, []int{len(v)}, v...).Constant() }
	return []Def{
		{Name: "TopK", Infer: inferTopK, Eval: evalTopK, Samples: []Sample{
			{In: []Arg{FApart(3, 5), I(2)}, Outs: 2},
			{Name: "smallest, axis 0", In: []Arg{FApart(5, 3), I(3)}, Attrs: []*graph.Attr{attr("largest", 0), attr("axis", 0)}, Outs: 2},
			{Name: "unsorted", In: []Arg{FApart(2, 5), I(4)}, Attrs: []*graph.Attr{attr("sorted", 0)}, Outs: 2},
			{Name: "values alone", In: []Arg{FApart(2, 4, 3), I(2)}, Attrs: []*graph.Attr{attr("axis", 1)}},
			{Name: "ties", In: []Arg{FV([]int{5}, 1, 3, 3, 0, 3), I(2)}, Outs: 2, NoGrad: "ties"},
			{Name: "run-time k", In: []Arg{FApart(2, 4), I(2).Variable()}, Outs: 2},
		}},
		{Name: "OneHot", Infer: inferOneHot, Eval: evalOneHot, Cost: free, Samples: []Sample{
			{In: []Arg{I(1, -1, 0, 9), IS(3), F(2)}},
			{Name: "axis 0", In: []Arg{TV(graph.Int64, []int{2, 2}, 1, 0, 3, -4), I(4), F(2)}, Attrs: []*graph.Attr{attr("axis", 0)}},
			{Name: "ints", In: []Arg{I(1, 0), IS(2), I(5, 7)}},
		}},
		{Name: "NonZero", Facts: DataDependent, Infer: inferNonZero, Eval: evalNonZero, Samples: []Sample{
			{In: []Arg{FV([]int{2, 3}, 0, 1, 0, -2, 0, 3)}},
			{Name: "scalar", In: []Arg{FV([]int{}, 2)}},
			{Name: "ints", In: []Arg{I(0, 4, 0, 1)}},
		}},
		{Name: "Unique", Facts: DataDependent, Infer: inferUnique, Eval: evalUnique, Samples: []Sample{
			{In: []Arg{FApart(2, 3)}, Outs: 4},
			{Name: "repeated", In: []Arg{FV([]int{6}, 2, 1, 1, 3, 4, 3)}, Outs: 4, NoGrad: "equal elements"},
			{Name: "unsorted", In: []Arg{FV([]int{6}, 2, 1, 1, 3, 4, 3)}, Attrs: []*graph.Attr{attr("sorted", 0)}, Outs: 4, NoGrad: "equal elements"},
			{Name: "axis", In: []Arg{FApart(2, 4)}, Attrs: []*graph.Attr{attr("axis", 1)}},
			{Name: "axis, repeated", In: []Arg{FV([]int{2, 4}, 1, 0, 2, 0, 1, 1, 1, 1)}, Attrs: []*graph.Attr{attr("axis", -1)}, Outs: 4, NoGrad: "equal elements"},
			{Name: "axis, unsorted", In: []Arg{FApart(3, 2)}, Attrs: []*graph.Attr{attr("axis", 0), attr("sorted", 0)}, Outs: 4},
		}},
		{Name: "Compress", Facts: DataDependent, Infer: inferCompress, Eval: evalCompress, Cost: free, Samples: []Sample{
			{In: []Arg{F(3, 2), mask(0, 1, 1, 0, 1)}},
			{Name: "axis", In: []Arg{F(3, 4), mask(1, 0, 1)}, Attrs: []*graph.Attr{attr("axis", 1)}},
			{Name: "run-time mask", In: []Arg{F(3, 2), mask(1, 0, 1).Variable()}, Attrs: []*graph.Attr{attr("axis", 0)}},
		}},
	}
}

func inferTopK(c *InferCtx) error {
	s := c.Shape(0)
	if s != nil {
		axis, err := c.Axis(c.Node.Int("axis", -1), len(s))
		if err != nil {
			return err
		}
		if len(s) == 0 {
			return c.Errorf("a scalar has no axis to choose from")
		}
		s = s.Clone()
		k := graph.Unknown()
		if d := c.Dims(1); len(d) == 1 {
			k = d[0]
		}
		if s[axis].Less(k) {
			return c.Errorf("the top %v of %v elements", k, s[axis])
		}
		s[axis] = k
	}
	c.Set(0, c.Elem(0), s)
	c.Set(1, graph.Int64, s)
	return nil
}

// evalTopK sorts each line, ties by position; NaN counts as the largest.
func evalTopK(c *EvalCtx) error {
	x, k := c.In[0], c.Ints(1)
	axis, err := c.axisOf(-1, x.Rank())
	if err != nil {
		return err
	}
	if x.Rank() == 0 || len(k) != 1 || k[0] < 0 || k[0] > int64(x.Shape[axis]) {
		return c.Errorf("the top %v of axis %d of %v", k, axis, x.Shape)
	}
	outer, n, inner := around(x.Shape, axis)
	count := int(k[0])
	shape := slices.Clone(x.Shape)
	shape[axis] = count
	y, at := x.NewLike(shape), c.New(graph.Int64, shape)
	sign := -1
	if c.Node.Int("largest", 1) == 0 {
		sign = 1
	}
	parallel(outer*inner, grainOf(8*n), func(lo, hi int) {
		order := make([]int, n)
		for line := lo; line < hi; line++ {
			o, i := line/inner, line%inner
			for j := range order {
				order[j] = j
			}
			base := o*n*inner + i
			slices.SortStableFunc(order, func(a, b int) int { return sign * x.compare(base+a*inner, base+b*inner) })
			for j, p := range order[:count] {
				to := (o*count+j)*inner + i
				y.copyFrom(to, x, base+p*inner)
				at.I64[to] = int64(p)
			}
		}
	})
	c.Set(0, y)
	c.Set(1, at)
	return nil
}

// compare orders elements i and j: numbers by value, NaN last, strings by bytes.
func (a *Array) compare(i, j int) int {
	switch {
	case a.Str != nil:
		return strings.Compare(a.Str[i], a.Str[j])
	case a.I64 != nil && a.Elem == graph.Uint64:
		return cmp.Compare(uint64(a.I64[i]), uint64(a.I64[j]))
	case a.I64 != nil:
		return cmp.Compare(a.I64[i], a.I64[j])
	case a.C128 != nil:
		if c := cmp.Compare(real(a.C128[i]), real(a.C128[j])); c != 0 {
			return c
		}
		return cmp.Compare(imag(a.C128[i]), imag(a.C128[j]))
	}
	x, y := a.Float(i), a.Float(j)
	switch { // NaN compares behind all numbers, and equal to itself
	case x != x && y != y:
		return 0
	case x != x:
		return 1
	case y != y:
		return -1
	}
	return cmp.Compare(x, y)
}

func inferOneHot(c *InferCtx) error {
	at := c.Shape(0)
	if at == nil {
		c.Set(0, c.Elem(2), nil)
		return nil
	}
	axis, err := c.Axis(c.Node.Int("axis", -1), len(at)+1)
	if err != nil {
		return err
	}
	depth := graph.Unknown()
	if d := c.Dims(1); len(d) == 1 {
		depth = d[0]
	} else if a := c.Const(1); a != nil && a.IsFloat() && a.Len() == 1 {
		depth = graph.Known(int64(a.Float(0)))
	}
	c.Set(0, c.Elem(2), slices.Insert(at.Clone(), axis, depth))
	return nil
}

func evalOneHot(c *EvalCtx) error {
	at, values := c.In[0], c.In[2]
	if c.In[1].Len() != 1 || values.Len() != 2 {
		return c.Errorf("depth %v and values %v, want one and two elements", c.In[1].Shape, values.Shape)
	}
	depth := int(c.In[1].Float(0))
	if depth < 0 || depth > 1<<40 {
		return c.Errorf("depth %d", depth)
	}
	axis, err := c.axisOf(-1, at.Rank()+1)
	if err != nil {
		return err
	}
	shape := slices.Insert(slices.Clone(at.Shape), axis, depth)
	y := values.NewLike(shape)
	copyView(y, dense(shape), values, view{step: make([]int, len(shape))}, shape)
	_, _, inner := around(shape, axis)
	for i := range at.Len() {
		k := int(at.Float(i))
		if k < 0 {
			k += depth
		}
		if k >= 0 && k < depth {
			y.copyFrom(i/inner*depth*inner+k*inner+i%inner, values, 1)
		}
	}
	c.Set(0, y)
	return nil
}

func inferNonZero(c *InferCtx) error {
	rows := graph.Unknown()
	if s := c.Shape(0); s != nil {
		rows = graph.Known(int64(len(s)))
	}
	count := graph.Unknown()
	if a := c.Const(0); a != nil {
		count = graph.Known(int64(len(nonZeros(a))))
	} else if all, ok := filled(c.Node.In[0]); ok {
		count = graph.Known(0)
		if all {
			count = c.Shape(0).Size()
		}
	}
	c.Set(0, graph.Int64, graph.Shape{rows, count})
	return nil
}

// filled reports whether v is filled with one constant, and whether that is not zero. Exporters write a range as
// the positions in a tensor of ones.
func filled(v *graph.Value) (nonZero, ok bool) {
	if v.Def == nil || !v.Def.Is("ConstantOfShape") {
		return false, false
	}
	attr := v.Def.Attr("value")
	if attr == nil || attr.T == nil {
		return false, true
	}
	a, err := FromTensor(attr.T, false)
	if err != nil || a.Len() != 1 {
		return false, false
	}
	return len(nonZeros(a)) == 1, true
}

// nonZeros returns the positions of the elements that are not zero (NaN is not), false or empty.
func nonZeros(x *Array) []int {
	var pos []int
	for i := range x.Len() {
		zero := x.Str != nil && x.Str[i] == "" || x.C128 != nil && x.C128[i] == 0 || x.Str == nil && x.C128 == nil && x.Float(i) == 0
		if !zero {
			pos = append(pos, i)
		}
	}
	return pos
}

// evalNonZero returns coordinates, one axis a row. A scalar has no axes, hence no rows.
func evalNonZero(c *EvalCtx) error {
	x := c.In[0]
	pos := nonZeros(x)
	y := c.New(graph.Int64, []int{x.Rank(), len(pos)})
	for a, step := range strides(x.Shape) {
		for i, p := range pos {
			y.I64[a*len(pos)+i] = int64(p / step % x.Shape[a])
		}
	}
	c.Set(0, y)
	return nil
}

func inferCompress(c *InferCtx) error {
	s := c.Shape(0)
	count := graph.Unknown()
	if a := c.Const(1); a != nil {
		count = graph.Known(int64(len(nonZeros(a))))
	}
	if !c.Node.HasAttr("axis") {
		c.Set(0, c.Elem(0), graph.Shape{count})
		return nil
	}
	if s != nil {
		axis, err := c.Axis(c.Node.Int("axis", 0), len(s))
		if err != nil {
			return err
		}
		s = s.Clone()
		s[axis] = count
	}
	c.Set(0, c.Elem(0), s)
	return nil
}

func evalCompress(c *EvalCtx) error {
	x := c.In[0]
	axis := 0
	if c.Node.HasAttr("axis") {
		var err error
		if axis, err = c.axisOf(0, x.Rank()); err != nil {
			return err
		}
	} else {
		x = x.WithShape([]int{x.Len()})
	}
	pos := nonZeros(c.In[1])
	outer, n, inner := around(x.Shape, axis)
	if len(pos) > 0 && pos[len(pos)-1] >= n {
		return c.Errorf("the condition selects position %d of %d", pos[len(pos)-1], n)
	}
	shape := slices.Clone(x.Shape)
	shape[axis] = len(pos)
	y := x.NewLike(shape)
	for o := range outer {
		for i, p := range pos {
			y.copyRun((o*len(pos)+i)*inner, x, (o*n+p)*inner, inner)
		}
	}
	c.Set(0, y)
	return nil
}

func inferUnique(c *InferCtx) error {
	count := graph.Shape{graph.Unknown()}
	y, inverse := count, graph.Shape{c.Shape(0).Size()}
	if c.Node.HasAttr("axis") {
		s := c.Shape(0)
		inverse = count
		if s != nil {
			axis, err := c.Axis(c.Node.Int("axis", 0), len(s))
			if err != nil {
				return err
			}
			inverse = graph.Shape{s[axis]}
			s = s.Clone()
			s[axis] = graph.Unknown()
		}
		y = s
	}
	c.Set(0, c.Elem(0), y)
	c.Set(1, graph.Int64, count)
	c.Set(2, graph.Int64, inverse)
	c.Set(3, graph.Int64, count)
	return nil
}

// evalUnique compares elements, or the slices along axis element by element. NaN counts as one value, behind all others.
func evalUnique(c *EvalCtx) error {
	x := c.In[0]
	axis := 0
	flat := !c.Node.HasAttr("axis")
	if flat {
		x = x.WithShape([]int{x.Len()})
	} else {
		var err error
		if axis, err = c.axisOf(0, x.Rank()); err != nil {
			return err
		}
	}
	outer, n, inner := around(x.Shape, axis)
	compare := func(a, b int) int {
		for o := range outer {
			for i := range inner {
				if d := x.compare((o*n+a)*inner+i, (o*n+b)*inner+i); d != 0 {
					return d
				}
			}
		}
		return 0
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	type class struct{ first, count int }
	var classes []class
	of := make([]int, n)
	for i, p := range order {
		if i == 0 || compare(order[i-1], p) != 0 {
			classes = append(classes, class{first: p})
		}
		of[p] = len(classes) - 1
		classes[of[p]].count++
	}
	rank := make([]int, len(classes)) // class to place in the result
	places := make([]int, len(classes))
	for i := range places {
		places[i] = i
	}
	if c.Node.Int("sorted", 1) == 0 {
		slices.SortFunc(places, func(a, b int) int { return classes[a].first - classes[b].first })
	}
	shape := slices.Clone(x.Shape)
	shape[axis] = len(classes)
	y := x.NewLike(shape)
	first, count, inverse := c.New(graph.Int64, []int{len(classes)}), c.New(graph.Int64, []int{len(classes)}), c.New(graph.Int64, []int{n})
	for i, k := range places {
		rank[k] = i
		first.I64[i], count.I64[i] = int64(classes[k].first), int64(classes[k].count)
		for o := range outer {
			y.copyRun((o*len(classes)+i)*inner, x, (o*n+classes[k].first)*inner, inner)
		}
	}
	for p, k := range of {
		inverse.I64[p] = int64(rank[k])
	}
	for i, a := range []*Array{y, first, inverse, count} {
		c.Set(i, a)
	}
	return nil
}
