package fuse

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// facts is what is known of a model beyond its own declarations. The model itself stays in the form it has: types and
// constants come from a copy that is brought to canonical form.
type facts struct {
	m      *graph.Model
	info   *op.Info
	twin   map[*graph.Value]*graph.Value // value of the copy that stands for one of m
	dims   map[string]int64              // sizes to reckon with
	kinds  map[*graph.Node]op.Kind
	size   map[*graph.Value]graph.Dim
	weigh  map[*graph.Value]float64
	works  map[*graph.Node]float64
	broken map[*graph.Node]bool // nodes that violate the schema of their operator
}

// nominal is the size that a symbolic dimension is taken to have where sizes must be compared.
const nominal = 8

func newFacts(m *graph.Model, dims map[string]int64) *facts {
	f := &facts{m: m, info: op.NewInfo(), dims: dims, kinds: map[*graph.Node]op.Kind{}, size: map[*graph.Value]graph.Dim{}, weigh: map[*graph.Value]float64{},
		works: map[*graph.Node]float64{}}
	c := &graph.Model{IRVersion: m.IRVersion, Opsets: append([]graph.Opset{}, m.Opsets...), Origin: m.Origin}
	clone := graph.Cloner{To: c, KeepTypes: true, Values: map[*graph.Value]*graph.Value{}}
	f.twin = clone.Values
	f.broken = violators(m)
	c.Graph = c.NewGraph("")
	var err error
	if c.Graph, err = clone.Graph(m.Graph); err != nil {
		return f
	}
	for _, fn := range m.Functions {
		g := &graph.Function{Domain: fn.Domain, Name: fn.Name, Overload: fn.Overload, Attrs: fn.Attrs, Defaults: fn.Defaults,
			Opsets: append([]graph.Opset{}, fn.Opsets...)}
		if g.Body, err = clone.Graph(fn.Body); err != nil {
			return f
		}
		g.Body.Func = g
		c.Functions = append(c.Functions, g)
	}
	// What inference cannot make sense of has the types of the file.
	if op.Inline(c, nil) != nil || op.Upgrade(c) != nil {
		return f
	}
	f.info, _ = op.Infer(c)
	return f
}

// violators returns the nodes that are not what their operators' schemas ask for.
func violators(m *graph.Model) map[*graph.Node]bool {
	out := map[*graph.Node]bool{}
	list, _ := op.Verify(m).(interface{ Unwrap() []error })
	if list == nil {
		return out
	}
	for _, err := range list.Unwrap() {
		var v *graph.VerifyError
		if errors.As(err, &v) {
			out[v.Node] = true
		}
	}
	return out
}

// typ returns the type of v as far as it is known.
func (f *facts) typ(v *graph.Value) graph.Type {
	if w := f.twin[v]; w != nil && w.Type.Kind != graph.KindUnknown {
		return w.Type
	}
	return v.Type
}

// known returns the elements of v if they are known and small, else nil.
func (f *facts) known(v *graph.Value) *op.Array {
	if v == nil {
		return nil
	}
	if w := f.twin[v]; w != nil {
		return f.info.Const(w)
	}
	return nil
}

// kind returns the kind of n, where an operator that does something special in training is looked at more closely.
func (f *facts) kind(n *graph.Node) op.Kind {
	if k, ok := f.kinds[n]; ok {
		return k
	}
	k := op.KindOf(n)
	if n.Is("Dropout") && k == op.KindOpaque {
		if a := f.known(n.Operand(2)); a != nil && a.Len() == 1 && a.I64 != nil && a.I64[0] == 0 {
			k = op.KindElementwise
		}
	}
	f.kinds[n] = k
	return k
}

// bytes returns the size of v, unknown if it is no tensor of known shape.
func (f *facts) bytes(v *graph.Value) graph.Dim {
	if d, ok := f.size[v]; ok {
		return d
	}
	d := f.bytesOf(v)
	f.size[v] = d
	return d
}

func (f *facts) bytesOf(v *graph.Value) graph.Dim {
	t := f.typ(v)
	bits := int64(t.Elem.Bits())
	if !t.IsTensor() || bits == 0 {
		return graph.Unknown()
	}
	n := t.Shape.Size()
	if bits >= 8 {
		return n.Mul(graph.Known(bits / 8))
	}
	return n.Mul(graph.Known(bits)).CeilDiv(graph.Known(8))
}

// weight returns the size of v in bytes as a number: symbols have the sizes that the options give, else a nominal one.
func (f *facts) weight(v *graph.Value) float64 {
	if w, ok := f.weigh[v]; ok {
		return w
	}
	w := f.number(f.bytes(v))
	f.weigh[v] = w
	return w
}

// unknownBytes is what a value of unknown size counts as: worth saving.
const unknownBytes = 4096

// number evaluates d with the given and nominal sizes.
func (f *facts) number(d graph.Dim) float64 {
	if n, ok := estimate(d, f.dims); ok {
		return n
	}
	return unknownBytes
}

// Estimate returns the value of an expression where the given symbols have the given sizes and others the cost model's
// nominal one; 0 if it is unknown.
func Estimate(d graph.Dim, dims map[string]int64) float64 {
	n, _ := estimate(d, dims)
	return n
}

func estimate(d graph.Dim, dims map[string]int64) (float64, bool) {
	if n, ok := d.Int(); ok {
		return float64(n), true
	}
	with := map[string]int64{}
	for _, s := range d.Symbols() {
		with[s] = nominal
		if n, ok := dims[s]; ok {
			with[s] = n
		}
	}
	n, ok := d.Eval(with).Int()
	return float64(n), ok
}

// isIndex reports whether all that n computes are a few integers: arithmetic on shapes, done beside the kernels.
func (f *facts) isIndex(n *graph.Node) bool {
	const most = 64
	switch f.kind(n) {
	case op.KindShape:
		return true
	case op.KindElementwise, op.KindView, op.KindInjective, op.KindReduce:
	default:
		return false
	}
	for _, v := range n.Out {
		if v == nil {
			continue
		}
		t := f.typ(v)
		if !t.IsTensor() || !t.Elem.IsInt() && t.Elem != graph.Bool {
			return false
		}
		s := t.Shape
		if s == nil || len(s) > 2 {
			return false
		}
		if k, ok := s.Size().Int(); ok && k > most || !ok && len(s) != 1 {
			return false
		}
	}
	return true
}

// fusible returns why n can be in no cluster, "" if it can.
func (f *facts) fusible(n *graph.Node) string {
	if len(n.Subgraphs()) > 0 {
		return "control flow stays outside clusters"
	}
	if f.m.Function(n.Domain, n.Op, n.Overload) != nil {
		return "it calls a function"
	}
	if n.Meta.Get(graph.MetaBarrier) != "" { // equal clusters share a body, where nothing would say what it is
		return "a barrier of a memory plan makes its readers wait"
	}
	s, ok := schema.Lookup(n.Domain, n.Op, max(int(n.Opset()), 1))
	switch {
	case !ok:
		return "the operator is not known at this opset"
	case s.Deprecated:
		return "the operator is deprecated at this opset"
	case s.Contrib:
		return "the operator is not of the standard"
	case f.broken[n]:
		return "the node violates the operator's schema"
	}
	for _, a := range n.Attrs {
		if a.Type == graph.AttrUndefined || a.Ref != "" {
			return "attribute " + a.Name + " has no type"
		}
	}
	for _, v := range n.Out {
		if v != nil && f.typ(v).Kind != graph.KindTensor && f.typ(v).Kind != graph.KindUnknown {
			return "a result is no tensor"
		}
	}
	if f.kind(n) == op.KindOpaque {
		return "nothing is known of how its results depend on its operands"
	}
	return ""
}

// Limits of constants that go inside bodies.
const maxInside = 64

// inside reports whether v, an operand of n, is a small constant that goes into the body of n's cluster: the result of a Constant
// node, or an integer initializer that nobody can override. Other initializers may be weights, however small.
func (f *facts) inside(v *graph.Value) bool {
	switch {
	case v.Def != nil && v.Def.Is("Constant"):
		return constant(v) != nil
	case v.IsConst() && !v.IsInput() && (v.Init.Elem.IsInt() || v.Init.Elem == graph.Bool):
		n := v.Init.Len()
		return n >= 0 && n <= maxInside && v.Init.Check() == nil
	}
	return false
}

// constant returns the attribute that holds a Constant node's value if that is small and dense, else nil.
func constant(v *graph.Value) *graph.Attr {
	if len(v.Def.Attrs) != 1 || len(v.Def.Out) != 1 {
		return nil
	}
	a := v.Def.Attrs[0]
	if a.Ref != "" {
		return nil
	}
	n := int64(1)
	switch a.Type {
	case graph.AttrTensor:
		if a.T == nil || a.T.Check() != nil || a.T.Elem == graph.String {
			return nil
		}
		n = a.T.Len()
	case graph.AttrInts:
		n = int64(len(a.Ints))
	case graph.AttrFloats:
		n = int64(len(a.Floats))
	case graph.AttrInt, graph.AttrFloat:
	default:
		return nil
	}
	if n > maxInside {
		return nil
	}
	return a
}
