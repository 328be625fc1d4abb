package prune

import (
	"math"
	"slices"
	"strconv"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/size"
)

// Allowances for the bytes that folding may add.
const (
	NodeAllowance  = 4 << 10 // for each folded node, beyond the operands that go with it
	ModelAllowance = 1 << 20 // for all folded nodes of a model, of what each is allowed
)

// Limits of what folding looks at.
const (
	maxFoldBytes = 1 << 30 // of operands and results of one node
	inlineBytes  = 1 << 10 // larger constants of a main graph become initializers
	metaGrown    = "gradtool.prune.grown"
)

// fold puts constants in the place of nodes whose operands all are.
//
// The bytes of a constant may exceed those of the operands that go with the node by NodeAllowance; what exceeds them is
// taken off ModelAllowance. A refusal for want of that is noted in the model's metadata, so that a later run does not
// begin anew.
func (p *pruner) fold() error {
	f := &folder{pruner: p, arrays: map[*graph.Value]*op.Array{}}
	for _, g := range roots(p.m) {
		for h := range g.Graphs() {
			f.graph(h)
		}
	}
	return nil
}

type folder struct {
	*pruner
	arrays map[*graph.Value]*op.Array // elements of constants that were read
	nodes  []*graph.Node              // of the graph at hand, as they will be
}

// graph folds the nodes of g.
func (f *folder) graph(g *graph.Graph) {
	f.nodes = make([]*graph.Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		if f.stopped || !f.node(n) {
			f.nodes = append(f.nodes, n)
		}
	}
	g.Nodes = f.nodes
}

// node folds n if it can: it adds the constants that take its place to f.nodes.
func (f *folder) node(n *graph.Node) bool {
	d := op.Of(n)
	if d == nil || d.Eval == nil || d.Facts&(op.Random|op.Training|op.Control) != 0 || n.Is("Constant") || n.Is("Identity") && !f.copies(n) ||
		slices.ContainsFunc(n.Attrs, func(a *graph.Attr) bool { return a.Ref != "" }) ||
		!slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && v.NumUses() > 0 }) {
		return false
	}
	values := f.knownResults(n)
	if values == nil && !f.constantOperands(n) {
		return false
	}
	gone := f.operandBytes(n)
	need := int64(0)
	for i, v := range n.Out {
		if v == nil || v.NumUses() == 0 {
			continue
		}
		b, ok := typeBytes(v.Type)
		if values != nil {
			b, ok = arrayBytes(values[i])
		}
		switch {
		case !v.Type.IsTensor() && v.Type.Kind != graph.KindUnknown:
			return false
		case !ok && !d.Has(op.DataDependent):
			f.miss("fold: node %s: the size of the result %q is not known", label{n}, v.Name)
			return false
		case !ok: // a selection: no larger than what it selects from
			b = f.operandsTotal(n) * 8
		}
		if need += b; need > maxFoldBytes || need < 0 {
			need = math.MaxInt64
			break
		}
	}
	if !f.affordable(n, need, gone) {
		return false
	}
	if values == nil {
		if values = f.evaluate(d, n); values == nil {
			return false
		}
		total := int64(0)
		for i, v := range n.Out {
			if v != nil && v.NumUses() > 0 {
				b, ok := arrayBytes(values[i])
				if !ok {
					return false
				}
				total += b
			}
		}
		if total > need && !f.affordable(n, total, gone) {
			return false
		}
		need = total
	}
	if !f.allow("fold %s", label{n}) {
		return false
	}
	if need > gone {
		f.grown += need - gone
	}
	f.stats.Folded++
	for i, v := range n.Out {
		if v != nil && v.NumUses() > 0 {
			f.arrays[f.constant(n, v, values[i])] = values[i]
		}
	}
	clear1(n)
	return true
}

// copies reports whether n is an Identity that gives a small constant the name of an output: a second constant does too,
// and computes nothing.
func (p *pruner) copies(n *graph.Node) bool {
	if len(n.Out) != 1 || n.Out[0] == nil || !n.Out[0].IsOutput() || len(n.In) != 1 || n.In[0] == nil || !p.isConstant(n.In[0]) {
		return false
	}
	size, ok := typeBytes(n.In[0].Type)
	return ok && size <= inlineBytes
}

// affordable reports whether need bytes may take the place of a node with which gone bytes of operands go.
func (f *folder) affordable(n *graph.Node, need, gone int64) bool {
	switch more := need - gone; {
	case need > maxFoldBytes || more > NodeAllowance:
		f.miss("fold: node %s: the constant takes %s, its operands that go %s, the allowance is %s", label{n}, bytes(need), bytes(gone), bytes(NodeAllowance))
		return false
	case more > 0 && f.grown+more > ModelAllowance:
		f.miss("fold: node %s: the allowance of %s for the model is used up", label{n}, bytes(ModelAllowance))
		f.m.Meta.Set(metaGrown, strconv.FormatInt(f.grown, 10))
		return false
	}
	return true
}

func bytes(n int64) string {
	if n > maxFoldBytes {
		return "more than " + size.Bytes(maxFoldBytes)
	}
	return size.Bytes(n)
}

// readGrown returns what earlier runs used up of ModelAllowance, if that was too little for them.
func readGrown(m *graph.Model) int64 {
	n, err := strconv.ParseInt(m.Meta.Get(metaGrown), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// knownResults returns the results of n if inference knows them all and they are no constants yet.
func (f *folder) knownResults(n *graph.Node) []*op.Array {
	out := make([]*op.Array, len(n.Out))
	for i, v := range n.Out {
		if v == nil || v.NumUses() == 0 {
			continue
		}
		if out[i] = f.known(v); out[i] == nil {
			return nil
		}
	}
	return out
}

// constantOperands reports whether all operands of n are constants that no training changes.
func (f *folder) constantOperands(n *graph.Node) bool {
	return !slices.ContainsFunc(n.In, func(v *graph.Value) bool { return v != nil && !f.isConstant(v) })
}

// isConstant reports whether v is a constant that no training changes.
func (p *pruner) isConstant(v *graph.Value) bool {
	return (v.Init != nil || v.Def != nil && v.Def.Is("Constant")) && v.Type.IsTensor() && !p.trains(v)
}

// operandBytes returns the bytes of the constants that only n reads.
func (f *folder) operandBytes(n *graph.Node) int64 {
	total := int64(0)
	seen := map[*graph.Value]bool{}
	for _, v := range n.In {
		if v == nil || seen[v] || !f.isConstant(v) || v.IsInput() {
			continue
		}
		seen[v] = true
		mine := !slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return u.Node != n })
		if b, ok := typeBytes(v.Type); ok && mine {
			total += b
		}
	}
	return total
}

// operandsTotal returns the number of elements of n's operands.
func (f *folder) operandsTotal(n *graph.Node) int64 {
	total := int64(0)
	for _, v := range n.In {
		if v == nil {
			continue
		}
		c, ok := v.Type.Shape.Size().Int()
		if !ok || c > maxFoldBytes {
			return maxFoldBytes
		}
		total += c * int64(max(1, len(v.Type.Shape)))
	}
	return total
}

// evaluate runs n's kernel, nil if it fails: then the node fails at run time too, or is none that can be evaluated.
func (f *folder) evaluate(d *op.Def, n *graph.Node) []*op.Array {
	c := &op.EvalCtx{Node: n, In: make([]*op.Array, len(n.In)), Out: make([]*op.Array, len(n.Out))}
	for i, v := range n.In {
		if v == nil {
			continue
		}
		if c.In[i] = f.array(v); c.In[i] == nil {
			return nil
		}
	}
	if err := c.Eval(d); err != nil {
		f.miss("fold: node %s: %v", label{n}, err)
		return nil
	}
	for i, v := range n.Out {
		if v != nil && v.NumUses() > 0 && (c.Out[i] == nil || !c.Out[i].IsTensor()) {
			return nil
		}
	}
	return c.Out
}

// array returns the elements of a constant, nil if they cannot be read.
func (f *folder) array(v *graph.Value) *op.Array {
	if a, ok := f.arrays[v]; ok {
		return a
	}
	var a *op.Array
	if v.Init != nil {
		if b := v.Init.ByteLen(); b >= 0 && b <= maxFoldBytes {
			a, _ = op.FromTensor(v.Init, false)
		}
	} else {
		c := &op.EvalCtx{Node: v.Def, Out: make([]*op.Array, len(v.Def.Out))}
		if c.Eval(op.Of(v.Def)) == nil {
			a = c.Out[v.Index]
		}
	}
	if a != nil && !a.IsTensor() {
		a = nil
	}
	f.arrays[v] = a
	return a
}

// constant puts a in the place of result v of n: as a Constant node or, if it is large and stands in a main graph, as an
// initializer. It returns the constant. Floats that come from Constant nodes stay such: initializers may be trained.
func (f *folder) constant(n *graph.Node, v *graph.Value, a *op.Array) *graph.Value {
	g, t := n.Graph, a.Tensor()
	weight := slices.ContainsFunc(n.In, func(x *graph.Value) bool { return x != nil && x.Init != nil && x.Type.Elem.IsFloat() })
	if g.Parent == nil && g.Func == nil && !v.IsOutput() && t.ByteLen() > inlineBytes && (weight || !a.Elem.IsFloat()) {
		name := v.Name
		v.Name = g.Model.Fresh(name)
		w := g.AddInit(name, t)
		f.made[w] = true
		v.ReplaceUses(w)
		return w
	}
	k := g.NewNode("", "Constant", nil, []string{g.Model.Fresh(v.Name)}, graph.TensorAttr("value", t))
	k.Name = g.Model.FreshNode(v.Name)
	k.Meta = append(graph.Meta{}, n.Meta...)
	k.Out[0].Type = t.Type()
	k.Graph = g
	f.nodes = append(f.nodes, k)
	v.TakeOver(k.Out[0])
	if !v.IsOutput() {
		v.Type = t.Type()
	}
	return v
}

// typeBytes returns the bytes of a tensor of type t; false if they are not known.
func typeBytes(t graph.Type) (int64, bool) {
	n, ok := t.Shape.Size().Int()
	bits := int64(t.Elem.Bits())
	if !ok || !t.IsTensor() || bits == 0 || n < 0 {
		return 0, false
	}
	if n > math.MaxInt64/bits-7 {
		return math.MaxInt64, true
	}
	return (n*bits + 7) / 8, true
}

// arrayBytes returns the bytes of a tensor as constant data.
func arrayBytes(a *op.Array) (int64, bool) {
	if a.Elem == graph.String {
		total := int64(0)
		for _, s := range a.Str {
			total += int64(len(s))
		}
		return total, true
	}
	dims := make([]int64, len(a.Shape))
	for i, d := range a.Shape {
		dims[i] = int64(d)
	}
	return typeBytes(graph.TensorOf(a.Elem, graph.ShapeOf(dims...)))
}
