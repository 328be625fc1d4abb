package legal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// lowerer makes a program of a graph.
type lowerer struct {
	p    *Program
	info *op.Info
	left map[*graph.Node]error // why expansions do not cover nodes
	node *graph.Node           // the one being lowered
	vals map[*graph.Value]val
	lost map[*graph.Value]bool // inputs that have no place in a program, and what depends on them: not reported again
}

// lowering makes kernels of a node.
type lowering func(l *lowerer, n *graph.Node) error

// Lower makes a program of m, whose graph must be sorted, in canonical form and free of calls of model-local functions.
// Decompositions are applied to m itself. Shapes that are not numbers are an error, which names them. Operators without
// lowering are listed in the program's Fallbacks.
func Lower(m *graph.Model) (*Program, error) {
	unbar(m)
	nothing(m.Graph)
	info, err := op.Infer(m)
	if err != nil {
		return nil, err
	}
	left, err := decompose(m, info)
	if err != nil {
		return nil, err
	}
	l := &lowerer{p: &Program{Name: m.Graph.Name}, info: info, left: left, vals: map[*graph.Value]val{}, lost: map[*graph.Value]bool{}}
	if err := l.static(m.Graph); err != nil {
		return nil, err
	}
	for _, v := range m.Graph.Inputs {
		l.input(v)
	}
	for _, n := range m.Graph.Nodes {
		l.lower(n)
	}
	if len(l.p.Fallbacks) > 0 {
		return l.p, nil
	}
	for _, v := range m.Graph.Outputs {
		if err := l.output(v); err != nil {
			return nil, err
		}
	}
	l.p.dropDead()
	return l.p, nil
}

// maxElements bounds what a value has, far beyond every machine, so that sizes and strides stay numbers.
const maxElements = 1 << 48

// static returns an error that names values whose shapes are not numbers, or too large ones.
func (l *lowerer) static(g *graph.Graph) error {
	for v := range g.Values() {
		n := 1.0
		for _, d := range v.Type.Shape {
			x, ok := d.Int()
			if n *= float64(x); !ok {
				n = 0
			}
		}
		if n > maxElements {
			return fmt.Errorf("value %q has type %s, which is more than a program can hold", v.Name, v.Type)
		}
	}
	for _, v := range g.Inputs {
		if v.IsConst() || !v.Type.IsTensor() {
			continue
		}
		if _, ok := v.Type.Shape.Ints(); !ok {
			return fmt.Errorf("input %q has type %s: give every dimension a size", v.Name, v.Type)
		}
	}
	return nil
}

// errFallback says that a node has no lowering.
type errFallback struct{ reason string }

func (e *errFallback) Error() string { return e.reason }

func unsupported(format string, args ...any) error { return &errFallback{fmt.Sprintf(format, args...)} }

// lower makes kernels of n, or notes why not.
func (l *lowerer) lower(n *graph.Node) {
	l.node = n
	if l.evaluated(n) {
		return
	}
	if slices.ContainsFunc(n.In, func(v *graph.Value) bool { return l.lost[v] }) {
		for _, y := range n.Out {
			l.lost[y] = true
		}
		return
	}
	err := l.check(n)
	if err == nil && l.empty(n) {
		return
	}
	if err == nil {
		f := table()[op.KeyOf(n)]
		switch {
		case l.left[n] != nil:
			err = l.left[n]
		case len(n.In) > 0 && n.In[0] != nil && n.Op != "Concat" && prod(l.shapeOf(n.In[0])) == 0:
			err = unsupported("value %q has no elements", n.In[0].Name)
		case f == nil && op.Of(n).Has(op.Random):
			err = unsupported("random numbers")
		case f == nil:
			err = unsupported("no lowering")
		default:
			mark := len(l.p.Kernels)
			if err = f(l, n); err != nil {
				l.p.Kernels = l.p.Kernels[:mark]
			}
		}
	}
	if err == nil {
		return
	}
	l.p.Fallbacks = append(l.p.Fallbacks, Fallback{n.Label(), op.KeyOf(n).String(), err.Error()})
	for _, y := range n.Out { // so that what reads them is not reported as well
		if y == nil {
			continue
		}
		if s, ok := y.Type.Shape.Ints(); ok && device(y.Type.Elem) != graph.Undefined {
			l.vals[y] = l.temp(y.Name, y.Type.Elem, ints(s))
		}
	}
}

// evaluated notes results that inference knows.
func (l *lowerer) evaluated(n *graph.Node) bool {
	all := len(n.Out) > 0
	for _, y := range n.Out {
		if y == nil {
			continue
		}
		a := l.info.Const(y)
		if a == nil || device(a.Elem) == graph.Undefined {
			return false
		}
		if a.Len() == 0 {
			l.vals[y] = splat(a.Elem, a.Shape, 0)
			continue
		}
		v, ok := l.constant(y.Name, a)
		if !ok {
			return false
		}
		l.vals[y] = v
	}
	return all
}

// check returns why n cannot be lowered whatever its operator: types and shapes that programs have not.
func (l *lowerer) check(n *graph.Node) error {
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v == nil {
				continue
			}
			if !v.Type.IsTensor() {
				return unsupported("value %q is no tensor: %s", v.Name, v.Type)
			}
			if device(v.Type.Elem) == graph.Undefined {
				return unsupported("value %q has elements of type %s", v.Name, v.Type.Elem)
			}
			if _, ok := v.Type.Shape.Ints(); !ok {
				return unsupported("value %q has shape %s, which depends on values", v.Name, v.Type.Shape)
			}
		}
	}
	return nil
}

// nothing puts constants in the place of inputs without elements, whose value is known.
func nothing(g *graph.Graph) {
	for _, v := range g.Inputs {
		if s, ok := v.Type.Shape.Ints(); ok && v.Init == nil && v.Type.IsTensor() && prod(ints(s)) == 0 && device(v.Type.Elem) != graph.Undefined && !v.IsOutput() {
			v.ReplaceUses(g.AddInit(g.Model.Fresh(v.Name), op.NewArray(v.Type.Elem, ints(s), false).Tensor()))
		}
	}
}

// empty notes results without elements, if all of n's are, and reports whether there is nothing to compute.
func (l *lowerer) empty(n *graph.Node) bool {
	for _, y := range n.Out {
		if y != nil && prod(l.shapeOf(y)) > 0 {
			return false
		}
	}
	for _, y := range n.Out {
		if y != nil {
			l.vals[y] = splat(y.Type.Elem, l.shapeOf(y), 0)
		}
	}
	return true
}

func ints(s []int64) []int {
	out := make([]int, len(s))
	for i, x := range s {
		out[i] = int(x)
	}
	return out
}

// add puts a kernel at the end of the program.
func (l *lowerer) add(k Kernel) {
	o := k.Origin()
	o.Node = l.node.Name
	if o.Node == "" {
		o.Node = l.node.Label()
	}
	o.Op = op.KeyOf(l.node).String()
	o.Role = l.node.Meta.Get(graph.MetaRole)
	o.Ops = o.Op
	if id, rule := l.node.Meta.Get(graph.MetaCluster), l.node.Meta.Get(graph.MetaRule); id != "" {
		o.Clusters = strings.TrimSuffix(id+"/"+rule, "/")
	}
	stamp(k, o.Clusters)
	l.p.Kernels = append(l.p.Kernels, k)
}

// buffer adds a buffer to the program.
func (l *lowerer) buffer(name string, elem graph.DataType, n int, role Role) *Buffer {
	b := &Buffer{ID: len(l.p.Buffers), Name: name, Elem: elem, Len: n, Role: role}
	l.p.Buffers = append(l.p.Buffers, b)
	return b
}

// temp makes room for a value.
func (l *lowerer) temp(name string, elem graph.DataType, shape []int) val {
	return val{elem: elem, shape: slices.Clone(shape), stride: rowMajor(shape), buf: l.buffer(name, device(elem), max(prod(shape), 1), Temp)}
}

// result makes room for result i of the node and notes it.
func (l *lowerer) result(i int) val {
	y := l.node.Out[i]
	s, _ := y.Type.Shape.Ints()
	v := l.temp(y.Name, y.Type.Elem, ints(s))
	l.vals[y] = v
	return v
}

// alias notes that result i of the node is a view, converted to the shape of the result.
func (l *lowerer) alias(i int, v val) error {
	y := l.node.Out[i]
	s, _ := y.Type.Shape.Ints()
	w, err := l.reshape(v, ints(s))
	if err != nil {
		return err
	}
	w.elem = y.Type.Elem
	l.vals[y] = w
	return nil
}

// in returns operand i of the node being lowered, and false where it is omitted.
func (l *lowerer) in(i int) (val, bool) {
	x := l.node.Operand(i)
	if x == nil {
		return val{}, false
	}
	return l.plain(l.value(x)), true
}

// arg returns operand i, which is there, as a view without parts.
func (l *lowerer) arg(i int) val { return l.plain(l.value(l.node.In[i])) }

// raw returns operand i, which is there.
func (l *lowerer) raw(i int) val { return l.value(l.node.In[i]) }

// plain returns v as a view without parts, a copy if need be.
func (l *lowerer) plain(v val) val {
	if v.parts != nil {
		return l.copyOf("copy", v)
	}
	return v
}

func (l *lowerer) value(x *graph.Value) val {
	if v, ok := l.vals[x]; ok {
		return v
	}
	if x.Init == nil {
		panic("legal: value " + x.Name + " is read before it is made")
	}
	if s := ints(x.Init.Dims); prod(s) == 0 {
		l.vals[x] = splat(x.Init.Elem, s, 0)
		return l.vals[x]
	}
	if a := l.info.Const(x); a != nil {
		if v, ok := l.constant(x.Name, a); ok {
			l.vals[x] = v
			return v
		}
	}
	v := l.tensor(x.Name, x.Init)
	l.vals[x] = v
	return v
}

// tensor makes a constant buffer of t.
func (l *lowerer) tensor(name string, t *graph.Tensor) val {
	v := l.temp(name, t.Elem, ints(t.Dims))
	v.buf.Role, v.buf.Data = Const, t
	return v
}

// huge bounds the integers that mean "to the end" in slices and such; they become the greatest or least of 32 bits.
const huge = 1 << 62

// constant returns a known array: a number where all elements are equal. It fails if an integer does not fit in 32 bits.
func (l *lowerer) constant(name string, a *op.Array) (val, bool) {
	n := a.Len()
	same := n > 0
	if a.I64 != nil && slices.ContainsFunc(a.I64, func(x int64) bool { return x >= huge || x <= -huge }) {
		a = a.Clone()
		for i, x := range a.I64 {
			if x >= huge || x <= -huge {
				a.I64[i] = min(max(x, math.MinInt32), math.MaxInt32)
			}
		}
	}
	for i := range n {
		x := a.Float(i)
		if !a.IsFloat() && (x < math.MinInt32 || x > math.MaxUint32) {
			return val{}, false
		}
		same = same && math.Float64bits(x) == math.Float64bits(a.Float(0))
	}
	if same {
		x := a.Float(0)
		return val{elem: a.Elem, shape: slices.Clone(a.Shape), stride: make([]int, len(a.Shape)), imm: &x}, true
	}
	return l.tensor(name, a.Tensor()), true
}

// splat returns a view all of whose elements are x.
func splat(elem graph.DataType, shape []int, x float64) val {
	return val{elem: elem, shape: slices.Clone(shape), stride: make([]int, len(shape)), imm: &x}
}

// input binds a graph input, or notes why it has no place in a program.
func (l *lowerer) input(v *graph.Value) {
	if v.IsConst() {
		return
	}
	reason := ""
	s, _ := v.Type.Shape.Ints()
	switch {
	case !v.Type.IsTensor() || device(v.Type.Elem) == graph.Undefined:
		reason = fmt.Sprintf("it has type %s, which no kernel computes with", v.Type)
	}
	if reason != "" {
		l.lost[v] = true
		l.p.Fallbacks = append(l.p.Fallbacks, Fallback{v.Name, "input", reason})
		return
	}
	w := l.temp(v.Name, v.Type.Elem, ints(s))
	w.buf.Role, w.buf.Stored = Input, narrow(v.Type.Elem)
	w.buf.Len = prod(w.shape)
	l.vals[v] = w
	l.p.Inputs = append(l.p.Inputs, Binding{v.Name, v.Type.Elem, w.shape, w.buf})
}

// output binds a graph output: the buffer of its value, or a copy where that belongs to something else.
func (l *lowerer) output(y *graph.Value) error {
	v, ok := l.vals[y]
	if !ok && y.Init == nil {
		return errors.New("output " + y.Name + " is never made")
	}
	if !ok {
		v = l.value(y)
	}
	if prod(v.shape) == 0 {
		b := l.buffer(y.Name, device(y.Type.Elem), 0, Output)
		b.Stored = narrow(y.Type.Elem)
		l.p.Outputs = append(l.p.Outputs, Binding{y.Name, y.Type.Elem, v.shape, b})
		return nil
	}
	if !v.whole() || v.buf.Role != Temp || narrow(y.Type.Elem) != graph.Undefined {
		l.node = &graph.Node{Op: "Identity", Name: y.Name, Graph: y.Graph}
		v = l.copyOf(y.Name, v)
	}
	v.buf.Role, v.buf.Stored = Output, narrow(y.Type.Elem)
	l.p.Outputs = append(l.p.Outputs, Binding{y.Name, y.Type.Elem, v.shape, v.buf})
	return nil
}

// narrow returns the 16-bit type that inputs and outputs of type t have in memory, Undefined if they have none.
func narrow(t graph.DataType) graph.DataType {
	if t == graph.Float16 || t == graph.BFloat16 {
		return t
	}
	return graph.Undefined
}

// copyOf copies v to a buffer of its own.
func (l *lowerer) copyOf(name string, v val) val {
	w := l.temp(name, v.elem, v.shape)
	if v.parts != nil {
		r := &refined{}
		for axis, parts := range v.parts {
			for _, p := range parts {
				r.dims, r.from = append(r.dims, p.n), append(r.from, axis)
			}
		}
		src, _ := v.cut(r)
		dst, _ := w.cut(r)
		b := l.nest(r.dims)
		b.store(dst, b.load(src))
		b.done()
		return w
	}
	b := l.nest(v.shape)
	b.store(w, b.load(v))
	b.done()
	return w
}

// materialize returns v in memory.
func (l *lowerer) materialize(v val) val {
	if v.imm == nil {
		return v
	}
	return l.copyOf("splat", v)
}

// reshape returns v in another shape, a copy if need be.
func (l *lowerer) reshape(v val, shape []int) (val, error) {
	if prod(v.shape) != prod(shape) {
		return v, fmt.Errorf("%v has not as many elements as %v", v.shape, shape)
	}
	if w, ok := v.reshaped(shape); ok {
		return w, nil
	}
	w, _ := l.copyOf("reshape", v).reshaped(shape)
	return w, nil
}
