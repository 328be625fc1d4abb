package op

import (
	"math"
	"slices"

	"gradtool/graph"
)

// Builder adds nodes to a graph and infers their types as it goes. Stages and rules build through it.
type Builder struct {
	G      *graph.Graph
	Info   *Info
	Before *graph.Node // nodes are put in front of this one; nil: at the end
	Role   string      // gradtool.role of added nodes, "" for none
	From   string      // gradtool.from of added nodes, "" for none
	Prefix string      // names of added nodes and values begin with it

	cluster, rule string // of added nodes, "" for none

	// Err is the first inference problem of an added node: a bug in the rule that added it.
	Err error

	scalars map[scalarKey]*graph.Value
	ints    map[string]*graph.Value
	shapes  map[*graph.Value]*graph.Value
}

type scalarKey struct {
	elem graph.DataType
	bits uint64
}

// NewBuilder returns a builder that appends to g.
func NewBuilder(g *graph.Graph, info *Info) *Builder {
	return &Builder{G: g, Info: info, scalars: map[scalarKey]*graph.Value{}, ints: map[string]*graph.Value{},
		shapes: map[*graph.Value]*graph.Value{}}
}

// For returns a builder for a subgraph or other graph of the same model that shares this one's settings but not its
// constants, which the other graph may not see.
func (b *Builder) For(g *graph.Graph) *Builder {
	nb := NewBuilder(g, b.Info)
	nb.Role, nb.From, nb.Prefix = b.Role, b.From, b.Prefix
	nb.cluster, nb.rule = b.cluster, b.rule
	return nb
}

// Node adds a node of the ai.onnx domain with nout results.
func (b *Builder) Node(op string, in []*graph.Value, nout int, attrs ...*graph.Attr) *graph.Node {
	return b.NodeIn("", op, in, nout, attrs...)
}

// NodeIn adds a node of any domain with nout results. Omitted operands at the end are dropped.
func (b *Builder) NodeIn(domain, op string, in []*graph.Value, nout int, attrs ...*graph.Attr) *graph.Node {
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	m := b.G.Model
	name := op
	if b.Prefix != "" {
		name = b.Prefix + "/" + op
	}
	outs := make([]string, nout)
	for i := range outs {
		outs[i] = m.Fresh(name)
	}
	n := b.G.NewNode(domain, op, in, outs, attrs...)
	n.Name = m.FreshNode(name)
	if b.Role != "" {
		n.Meta.Set(graph.MetaRole, b.Role)
	}
	if b.From != "" {
		n.Meta.Set(graph.MetaFrom, b.From)
	}
	b.Mark(n)
	b.Put(n)
	return n
}

// InClusterOf makes added nodes belong to the cluster that n belongs to, if any.
func (b *Builder) InClusterOf(n *graph.Node) {
	b.cluster, b.rule = n.Meta.Get(graph.MetaCluster), n.Meta.Get(graph.MetaRule)
}

// Mark marks n, a node made elsewhere, as one of the cluster that added nodes belong to.
func (b *Builder) Mark(n *graph.Node) {
	if b.cluster != "" {
		n.Meta.Set(graph.MetaCluster, b.cluster)
		n.Meta.Set(graph.MetaRule, b.rule)
	}
}

// Put adds a node made elsewhere, a copy for example.
func (b *Builder) Put(n *graph.Node) {
	b.G.InsertBefore(b.Before, n)
	if err := b.Info.Node(n); err != nil && b.Err == nil {
		b.Err = err
	}
}

// Op adds a node of the ai.onnx domain with one result and returns that.
func (b *Builder) Op(op string, in []*graph.Value, attrs ...*graph.Attr) *graph.Value {
	return b.Node(op, in, 1, attrs...).Out[0]
}

// Const returns a constant.
func (b *Builder) Const(t *graph.Tensor) *graph.Value {
	return b.Op("Constant", nil, graph.TensorAttr("value", t))
}

// Scalar returns the constant x as a scalar of the given element type.
func (b *Builder) Scalar(elem graph.DataType, x float64) *graph.Value {
	k := scalarKey{elem, math.Float64bits(x)}
	if v, ok := b.scalars[k]; ok {
		return v
	}
	a := NewArray(elem, nil, false)
	if a.I64 != nil {
		a.I64[0] = int64(x)
	} else {
		a.SetFloat(0, x)
	}
	v := b.constant(a.Tensor())
	b.scalars[k] = v
	return v
}

// Like returns the constant x as a scalar of v's element type.
func (b *Builder) Like(v *graph.Value, x float64) *graph.Value { return b.Scalar(v.Type.Elem, x) }

// Ints returns the constant int64 vector of the given elements.
func (b *Builder) Ints(v ...int64) *graph.Value {
	t := graph.Ints(nil, v...)
	raw, _ := t.Data.Bytes()
	if c, ok := b.ints[string(raw)]; ok {
		return c
	}
	c := b.constant(t)
	b.ints[string(raw)] = c
	return c
}

// constant adds a shared constant, named after nobody in particular. Constants stand where they are first
// needed; with Before set they are in front of that node, hence before all that is added later.
func (b *Builder) constant(t *graph.Tensor) *graph.Value {
	saved := b.Prefix
	b.Prefix = "const"
	defer func() { b.Prefix = saved }()
	return b.Const(t)
}

// IntScalar returns the constant int64 scalar x.
func (b *Builder) IntScalar(x int64) *graph.Value { return b.Scalar(graph.Int64, float64(x)) }

// Binary and unary operators.

// Add returns x + y.
func (b *Builder) Add(x, y *graph.Value) *graph.Value { return b.Op("Add", vals(x, y)) }

// Sub returns x - y.
func (b *Builder) Sub(x, y *graph.Value) *graph.Value { return b.Op("Sub", vals(x, y)) }

// Mul returns x * y.
func (b *Builder) Mul(x, y *graph.Value) *graph.Value { return b.Op("Mul", vals(x, y)) }

// Div returns x / y.
func (b *Builder) Div(x, y *graph.Value) *graph.Value { return b.Op("Div", vals(x, y)) }

// Neg returns -x.
func (b *Builder) Neg(x *graph.Value) *graph.Value { return b.Op("Neg", vals(x)) }

// Where returns x where c holds, else y.
func (b *Builder) Where(c, x, y *graph.Value) *graph.Value { return b.Op("Where", vals(c, x, y)) }

// Unary applies an operator with one operand and one result.
func (b *Builder) Unary(op string, x *graph.Value, attrs ...*graph.Attr) *graph.Value {
	return b.Op(op, vals(x), attrs...)
}

// Binary applies an operator with two operands and one result.
func (b *Builder) Binary(op string, x, y *graph.Value, attrs ...*graph.Attr) *graph.Value {
	return b.Op(op, vals(x, y), attrs...)
}

// AddScalar returns x + s.
func (b *Builder) AddScalar(x *graph.Value, s float64) *graph.Value { return b.Add(x, b.Like(x, s)) }

// MulScalar returns x * s; s = 1 returns x.
func (b *Builder) MulScalar(x *graph.Value, s float64) *graph.Value {
	if s == 1 {
		return x
	}
	return b.Mul(x, b.Like(x, s))
}

// MatMul returns x @ y.
func (b *Builder) MatMul(x, y *graph.Value) *graph.Value { return b.Op("MatMul", vals(x, y)) }

// Cast returns x converted to elem, x itself if it has that element type.
func (b *Builder) Cast(x *graph.Value, elem graph.DataType) *graph.Value {
	if x.Type.Elem == elem {
		return x
	}
	return b.Op("Cast", vals(x), graph.IntAttr("to", int64(elem)))
}

// Shapes and layout.

// Shape returns the shape of x as an int64 vector: a constant where it is known.
func (b *Builder) Shape(x *graph.Value) *graph.Value {
	if s, ok := x.Type.Shape.Ints(); ok {
		return b.Ints(s...)
	}
	if v, ok := b.shapes[x]; ok {
		return v
	}
	v := b.Op("Shape", vals(x))
	b.shapes[x] = v
	return v
}

// DimOf returns dimension axis of x as an int64 vector of one element.
func (b *Builder) DimOf(x *graph.Value, axis int) *graph.Value {
	if x.Type.Shape != nil {
		a := axis
		if a < 0 {
			a += len(x.Type.Shape)
		}
		if n, ok := x.Type.Shape[a].Int(); ok {
			return b.Ints(n)
		}
	}
	attrs := []*graph.Attr{graph.IntAttr("start", int64(axis))}
	if axis != -1 {
		attrs = append(attrs, graph.IntAttr("end", int64(axis+1)))
	}
	return b.Op("Shape", vals(x), attrs...)
}

// Reshape returns x in the given shape, an int64 vector; x itself if it provably has it.
func (b *Builder) Reshape(x, shape *graph.Value) *graph.Value {
	if d := b.Info.Dims(shape); d != nil && x.Type.Shape.Equal(graph.Shape(d)) {
		return x
	}
	return b.Op("Reshape", vals(x, shape), graph.IntAttr("allowzero", 1))
}

// ReshapeTo returns x in a shape given as numbers, where 0 copies an axis and -1 may stand once for what is left.
func (b *Builder) ReshapeTo(x *graph.Value, dims ...int64) *graph.Value {
	return b.Op("Reshape", vals(x, b.Ints(settled(x.Type.Shape, dims)...)))
}

// settled returns dims with the number in place of -1, if it is known from the axes of s that are not copied: of an
// empty batch, -1 leaves open what is meant.
func settled(s graph.Shape, dims []int64) []int64 {
	open := slices.Index(dims, -1)
	if s == nil || open < 0 {
		return dims
	}
	left, want := graph.Known(1), int64(1)
	for i, d := range s {
		if i >= len(dims) || dims[i] != 0 {
			left = left.Mul(d)
		}
	}
	for _, d := range dims {
		if d > 0 {
			want *= d
		}
	}
	n, ok := left.Int()
	if !ok || n == 0 || n%want != 0 {
		return dims
	}
	dims = slices.Clone(dims)
	dims[open] = n / want
	return dims
}

// ReshapeLike returns x in y's shape.
func (b *Builder) ReshapeLike(x, y *graph.Value) *graph.Value {
	if x.Type.Shape.Equal(y.Type.Shape) {
		return x
	}
	return b.Reshape(x, b.Shape(y))
}

// Expand returns x broadcast to the given shape, an int64 vector; x itself if it provably has it.
func (b *Builder) Expand(x, shape *graph.Value) *graph.Value {
	if d := b.Info.Dims(shape); d != nil && x.Type.Shape.Equal(graph.Shape(d)) {
		return x
	}
	return b.Op("Expand", vals(x, shape))
}

// ExpandLike returns x broadcast to y's shape.
func (b *Builder) ExpandLike(x, y *graph.Value) *graph.Value {
	if x.Type.Shape.Equal(y.Type.Shape) {
		return x
	}
	return b.Expand(x, b.Shape(y))
}

// Full returns a tensor of the given shape (an int64 vector) and element type filled with x.
func (b *Builder) Full(shape *graph.Value, elem graph.DataType, x float64) *graph.Value {
	a := NewArray(elem, []int{1}, false)
	if a.I64 != nil {
		a.I64[0] = int64(x)
	} else {
		a.SetFloat(0, x)
	}
	return b.Op("ConstantOfShape", vals(shape), graph.TensorAttr("value", a.Tensor()))
}

// FullLike returns a tensor of v's shape and element type filled with x.
func (b *Builder) FullLike(v *graph.Value, x float64) *graph.Value {
	return b.Full(b.Shape(v), v.Type.Elem, x)
}

// Transpose returns x with its axes permuted; x itself for the identity.
func (b *Builder) Transpose(x *graph.Value, perm ...int64) *graph.Value {
	same := true
	for i, p := range perm {
		same = same && int64(i) == p
	}
	if same {
		return x
	}
	return b.Op("Transpose", vals(x), graph.IntsAttr("perm", perm...))
}

// SwapLast returns x, of known rank of at least 2, with its last two axes exchanged.
func (b *Builder) SwapLast(x *graph.Value) *graph.Value {
	r := len(x.Type.Shape)
	perm := make([]int64, r)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[r-1], perm[r-2] = perm[r-2], perm[r-1]
	return b.Transpose(x, perm...)
}

// Unsqueeze returns x with axes of size 1 inserted.
func (b *Builder) Unsqueeze(x *graph.Value, axes ...int64) *graph.Value {
	if len(axes) == 0 {
		return x
	}
	return b.Op("Unsqueeze", vals(x, b.Ints(axes...)))
}

// Squeeze returns x with the given axes of size 1 removed.
func (b *Builder) Squeeze(x *graph.Value, axes ...int64) *graph.Value {
	if len(axes) == 0 {
		return x
	}
	return b.Op("Squeeze", vals(x, b.Ints(axes...)))
}

// Concat joins values along axis; a single one is returned as it is.
func (b *Builder) Concat(axis int64, in ...*graph.Value) *graph.Value {
	if len(in) == 1 {
		return in[0]
	}
	return b.Op("Concat", in, graph.IntAttr("axis", axis))
}

// Gather returns the slices of x along axis that the integers in index name.
func (b *Builder) Gather(x, index *graph.Value, axis int64) *graph.Value {
	return b.Op("Gather", vals(x, index), graph.IntAttr("axis", axis))
}

// Slice returns x[start:end:step] along axis, all int64 vectors of one element; step may be nil.
func (b *Builder) Slice(x, start, end, axis, step *graph.Value) *graph.Value {
	return b.Op("Slice", vals(x, start, end, axis, step))
}

// ReduceSum returns the sum over the given axes. No axes means x itself.
func (b *Builder) ReduceSum(x *graph.Value, keep bool, axes ...int64) *graph.Value {
	return b.reduce("ReduceSum", x, keep, axes)
}

// ReduceMean returns the mean over the given axes. No axes means x itself.
func (b *Builder) ReduceMean(x *graph.Value, keep bool, axes ...int64) *graph.Value {
	return b.reduce("ReduceMean", x, keep, axes)
}

func (b *Builder) reduce(op string, x *graph.Value, keep bool, axes []int64) *graph.Value {
	if len(axes) == 0 {
		return x
	}
	k := int64(0)
	if keep {
		k = 1
	}
	return b.Op(op, vals(x, b.Ints(axes...)), graph.IntAttr("keepdims", k))
}

// ReduceAll returns the sum of all elements as a scalar.
func (b *Builder) ReduceAll(x *graph.Value) *graph.Value {
	return b.Op("ReduceSum", vals(x), graph.IntAttr("keepdims", 0))
}

func vals(v ...*graph.Value) []*graph.Value { return v }
