package op

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// Limits of value inference: constants of more elements are not looked at.
const (
	maxConstLen = 4096 // elements of a constant that inference evaluates with
	maxDimsLen  = 256  // elements of an integer tensor tracked as dimensions
)

// Info holds what inference found beyond the types, which it writes to the values themselves.
type Info struct {
	consts map[*graph.Value]*Array      // values known completely
	dims   map[*graph.Value][]graph.Dim // elements of small integer tensors known symbolically, in order
	lens   map[*graph.Value]graph.Dim   // numbers of elements of sequences
}

// NewInfo returns an Info that knows nothing yet.
func NewInfo() *Info {
	return &Info{consts: map[*graph.Value]*Array{}, dims: map[*graph.Value][]graph.Dim{}, lens: map[*graph.Value]graph.Dim{}}
}

// Problem is a node that cannot work: inference found its operands impossible.
type Problem struct {
	Node *graph.Node
	Err  error
}

// Error says which node, and why.
func (p *Problem) Error() string { return fmt.Sprintf("node %s: %v", p.Node.Label(), p.Err) }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Infer computes the types of all values of m's graph from its inputs and initializers, refining
// what the file declares, and the values of small integer tensors. The graph must be sorted and in
// canonical form (see [Upgrade]). All problems found are returned, joined; the result is usable all the same.
func Infer(m *graph.Model) (*Info, error) {
	in := NewInfo()
	return in, errors.Join(in.graph(m.Graph)...)
}

// Function infers the types inside a function's body, as far as they do not depend on its operands and attributes. A
// body in which a node's attribute is the function's stays untyped.
func (in *Info) Function(f *graph.Function) error {
	for n := range f.Body.AllNodes() {
		for _, a := range n.Attrs {
			if a.Ref != "" {
				return nil
			}
		}
	}
	return errors.Join(in.graph(f.Body)...)
}

func (in *Info) graph(g *graph.Graph) []error {
	var errs []error
	for _, v := range g.Inits {
		if v.Type.Kind == graph.KindUnknown {
			v.Type = v.Init.Type()
		}
	}
	for _, n := range g.Nodes {
		if err := in.Node(n); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Node infers the results of n from its operands.
func (in *Info) Node(n *graph.Node) error {
	d := Of(n)
	if d == nil {
		if f := called(n); f != nil {
			in.call(n, f)
		}
		return nil
	}
	if d.Infer == nil {
		return nil
	}
	c := newInferCtx(n, in)
	err := c.infer(d)
	for i, v := range n.Out {
		if v == nil {
			continue
		}
		t, clash := merge(v.Type, c.types[i])
		if clash && err == nil {
			err = fmt.Errorf("result %q is declared %s but works out as %s", v.Name, v.Type, c.types[i])
		}
		v.Type = t
		if c.vals[i] != nil && len(c.vals[i]) <= maxDimsLen {
			in.dims[v] = c.vals[i]
		}
	}
	if err != nil {
		return &Problem{n, err}
	}
	in.fold(d, n)
	return nil
}

// newInferCtx returns a context with room for the results of n: in one piece for the one result that most nodes have.
func newInferCtx(n *graph.Node, in *Info) *InferCtx {
	if len(n.Out) != 1 {
		return &InferCtx{Node: n, Info: in, types: make([]graph.Type, len(n.Out)), vals: make([][]graph.Dim, len(n.Out))}
	}
	c := &struct {
		InferCtx
		t [1]graph.Type
		v [1][]graph.Dim
	}{}
	c.Node, c.Info, c.types, c.vals = n, in, c.t[:], c.v[:]
	return &c.InferCtx
}

// infer calls the definition's Infer; a panic in it is a bug, reported with the node's name.
func (c *InferCtx) infer(d *Def) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SizeError:
			err = r
		default:
			err = fmt.Errorf("internal error in shape inference: %v", r)
		}
	}()
	return d.Infer(c)
}

// fold evaluates n if all it reads is small and known.
func (in *Info) fold(d *Def, n *graph.Node) {
	if d.Eval == nil || d.Facts&(Random|Control) != 0 || len(n.Out) == 0 {
		return
	}
	args := make([]*Array, len(n.In))
	for i, v := range n.In {
		if v == nil {
			continue
		}
		if args[i] = in.Const(v); args[i] == nil {
			return
		}
	}
	for _, v := range n.Out {
		if v == nil {
			continue
		}
		s, ok := v.Type.Shape.Ints()
		if !ok || !v.Type.IsTensor() {
			return
		}
		size := int64(1)
		for _, x := range s {
			if x > 0 && size > maxConstLen/x {
				return
			}
			size *= x
		}
	}
	c := &EvalCtx{Node: n, In: args, Out: make([]*Array, len(n.Out))}
	if err := c.Eval(d); err != nil {
		return
	}
	for i, v := range n.Out {
		if v != nil && c.Out[i] != nil {
			in.consts[v] = c.Out[i]
		}
	}
}

// Eval runs the definition's evaluation; a panic in it becomes an error. Where operands of types that the operator does
// not take led to it, the error says so; where a tensor is too large, it is a [*SizeError].
func (c *EvalCtx) Eval(d *Def) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SizeError:
			err = r
		default:
			if err = c.typeError(); err == nil {
				err = fmt.Errorf("internal error in evaluation: %v", r)
			}
		}
	}()
	return d.Eval(c)
}

// typeError says which operand or result has a type that the newest version of the operator does not allow, nil if none.
func (c *EvalCtx) typeError() error {
	domain := graph.StdDomain(c.Node.Domain)
	s, ok := schema.Lookup(domain, c.Node.Op, schema.MaxOpset(domain))
	if !ok {
		return nil
	}
	for _, msg := range s.Accepts(schemaNode(c.Node, schema.MaxOpset(domain), nil)) {
		if isTypeMessage(msg) {
			return errors.New(msg)
		}
	}
	return nil
}

// Const returns the value of v if it is known and small, else nil.
func (in *Info) Const(v *graph.Value) *Array {
	if a, ok := in.consts[v]; ok {
		return a
	}
	var a *Array
	if v.IsConst() && v.Init.Len() >= 0 && v.Init.Len() <= maxConstLen {
		a, _ = FromTensor(v.Init, false)
		in.consts[v] = a
		return a
	}
	if d, ok := in.dims[v]; ok {
		vals := make([]int64, len(d))
		for i := range d {
			n, ok := d[i].Int()
			if !ok {
				return nil
			}
			vals[i] = n
		}
		shape, ok := smallShape(v.Type)
		if !ok || prod(shape) != len(d) {
			return nil
		}
		a = &Array{Elem: v.Type.Elem, Shape: shape, I64: vals, Kind: graph.KindTensor}
		in.consts[v] = a
		return a
	}
	return nil
}

// Dims returns the elements of an integer scalar or vector as known numbers or expressions; an
// element may be unknown. It is nil if not even the number of elements is known.
func (in *Info) Dims(v *graph.Value) []graph.Dim {
	if len(v.Type.Shape) > 1 {
		return nil
	}
	if d := in.Elems(v); d != nil {
		return d
	}
	if t := v.Type; t.IsTensor() && t.Elem.IsInt() && t.Shape != nil {
		if shape, ok := smallShape(t); ok {
			return make([]graph.Dim, prod(shape))
		}
	}
	return nil
}

// Elems returns the elements of an integer tensor of any rank, in order, as Dims does; nil if nothing is known of them.
func (in *Info) Elems(v *graph.Value) []graph.Dim {
	if d, ok := in.dims[v]; ok {
		return d
	}
	a := in.Const(v)
	if a == nil || a.I64 == nil {
		return nil
	}
	out := make([]graph.Dim, len(a.I64))
	for i, x := range a.I64 {
		out[i] = graph.Known(x)
	}
	return out
}

// merge refines what is known of a type by what else is known; clash tells that they contradict each
// other, and then the second counts.
func merge(a, b graph.Type) (t graph.Type, clash bool) {
	if b.Kind == graph.KindUnknown {
		return a, false
	}
	if a.Kind == graph.KindUnknown {
		return b, false
	}
	if a.Kind != b.Kind {
		return b, true
	}
	t = b
	if t.Elem == graph.Undefined {
		t.Elem = a.Elem
	} else if a.Elem != graph.Undefined && a.Elem != t.Elem {
		clash = true
	}
	if t.Inner == nil {
		t.Inner = a.Inner
	} else if a.Inner != nil {
		inner, c := merge(*a.Inner, *t.Inner)
		t.Inner, clash = &inner, clash || c
	}
	switch {
	case t.Shape == nil:
		t.Shape = a.Shape
	case a.Shape == nil:
	case len(a.Shape) != len(t.Shape):
		return t, true
	default:
		t.Shape = t.Shape.Clone()
		for i := range t.Shape {
			d, c := mergeDim(a.Shape[i], t.Shape[i])
			t.Shape[i], clash = d, clash || c
		}
	}
	return t, clash
}

// mergeDim prefers numbers to symbols to nothing, and of two symbolic forms the inferred second,
// which says how the size depends on the inputs.
func mergeDim(a, b graph.Dim) (graph.Dim, bool) {
	x, aKnown := a.Int()
	y, bKnown := b.Int()
	switch {
	case aKnown && bKnown:
		return b, x != y
	case bKnown || a.IsUnknown():
		return b, false
	case aKnown || b.IsUnknown():
		return a, false
	}
	return b, false
}
