package fuse

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// tail is the end of a training graph: logits = x w + bias, p = softmax logits by row, the logarithm of p at each row's label,
// and the gradient
//
//	g = p scale + update at the label
//	dx = g w^T, dw = x^T g, dbias = sum over rows of g
//
// Values of as many elements as the logits are read inside only.
type tail struct {
	product *graph.Node // MatMul or Gemm
	x       *graph.Value
	w       *graph.Value // [classes, depth] if turned, else [depth, classes]
	turned  bool
	bias    *graph.Value // nil without one
	logits  *graph.Value // what the softmax reads
	labels  *graph.Value // of each row, with an axis of size 1 at the end
	picked  *graph.Value // logarithm of p at the labels, of labels' shape
	scale   *graph.Value // scalar or of labels' shape; nil: 1
	update  *graph.Value // of labels' shape
	forward *graph.Node  // a SoftmaxCrossEntropyLoss of the same logits, or nil
	grad    *graph.Value // g
	dx      *graph.Value // nil where nobody needs it
	dw      *outer       // nil where nobody needs it
	dbias   *graph.Value // nil where nobody needs it

	shaped  []*graph.Node // nodes that want to know the logits' shape or size
	rows    graph.Dim
	classes int64
	depth   int64
	anchor  *graph.Node // new nodes go in front of this one
}

// outer is the product x^T g or, if turned, g^T x.
type outer struct {
	v      *graph.Value
	turned bool
	turn   *graph.Value // the transpose of v, if that is all that v is for
}

// errNoTail is what findTail returns for a softmax that is something else.
var errNoTail = errors.New("no cross entropy")

// findTail returns the tail around a softmax, or why it cannot be computed in pieces.
func findTail(soft *graph.Node, info *op.Info) (*tail, error) {
	t := &tail{logits: soft.In[0]}
	switch err := t.below(soft, info); {
	case err != nil && soft.Is("Softmax"), t.grad == nil && err == nil:
		return nil, errNoTail // most softmaxes are no losses
	case err != nil:
		return nil, err
	}
	if err := t.above(info); err != nil {
		return nil, err
	}
	if err := t.derivatives(info); err != nil {
		return nil, err
	}
	for _, v := range []*graph.Value{t.scale, t.update, t.labels, t.w, t.bias, t.x} {
		if v != nil && depends(v, t.product) {
			return nil, fmt.Errorf("%q is needed for the gradient and depends on the logits of all rows", v.Name)
		}
	}
	return t, nil
}

// below follows the softmax down to the gradient of the logits.
func (t *tail) below(soft *graph.Node, info *op.Info) error {
	s := t.logits.Type.Shape
	if len(s) < 2 || !t.logits.Type.Elem.IsDifferentiable() || !lastAxis(soft, len(s)) {
		return errNoTail
	}
	var ok bool
	if t.classes, ok = s[len(s)-1].Int(); !ok || t.classes < 1 {
		return errNoTail
	}
	t.rows = graph.Shape(s[:len(s)-1]).Size()
	var probs []*graph.Value // p, and what it is multiplied by
	readers, err := t.readers(soft.Out[0])
	if err != nil {
		return err
	}
	for _, u := range readers {
		switch n := u.Node; {
		case n.Is("GatherElements") && u.Index == 0 && lastAxis(n, len(s)) && t.picked == nil && soft.Is("LogSoftmax") && t.sameLabels(n.In[1]):
			t.picked = n.Out[0]
		case n.Is("Exp") && soft.Is("LogSoftmax"):
			probs = append(probs, n.Out[0])
		case n.Is("Mul") || n.Is("ScatterElements") || n.Is("Cast"):
			probs = append(probs, soft.Out[0])
		default:
			return fmt.Errorf("%s reads %q, which has the logits' size", n.Label(), soft.Out[0].Name)
		}
	}
	if soft.Is("LogSoftmax") && slices.Contains(probs, soft.Out[0]) || len(probs) != 1 {
		return errNoTail
	}
	p := probs[0]
	for {
		n, err := t.reader(p)
		switch {
		case err != nil:
			return err
		case n.Is("Cast") && t.scale == nil && n.Out[0].Type.Elem == graph.Float:
		case n.Is("Mul") && t.scale == nil && n.Out[0].Type.Shape.Equal(s):
			t.scale = n.In[0]
			if n.In[0] == p {
				t.scale = n.In[1]
			}
			if f := t.scale.Type.Shape; f == nil || len(f) > 0 && !f.Equal(t.oneEach()) {
				return fmt.Errorf("%q is neither one number nor one for each row", t.scale.Name)
			}
		case n.Is("ScatterElements") && n.In[0] == p && lastAxis(n, len(s)) && n.Str("reduction", "none") == "add" && t.sameLabels(n.In[1]):
			t.update, t.grad, t.anchor = n.In[2], n.Out[0], n
			return nil
		default:
			return errNoTail
		}
		p = n.Out[0]
	}
}

// sameLabels notes the labels, or compares them with those noted.
func (t *tail) sameLabels(v *graph.Value) bool {
	if t.labels == nil && v.Type.Shape.Equal(t.oneEach()) {
		t.labels = v
	}
	return t.labels == v
}

// oneEach returns the shape of what has one element for each row.
func (t *tail) oneEach() graph.Shape {
	s := t.logits.Type.Shape.Clone()
	s[len(s)-1] = graph.Known(1)
	return s
}

// above follows the logits up to the product that they are.
func (t *tail) above(info *op.Info) error {
	v := t.logits
	for {
		if v.IsOutput() {
			return fmt.Errorf("the logits %q are a graph output, drop it (prune --keep says which outputs stay)", v.Name)
		}
		n := v.Def
		if n == nil {
			return errors.New("the logits are an input")
		}
		readers, err := t.readers(v)
		if err != nil {
			return err
		}
		readers = slices.DeleteFunc(readers, func(u graph.Use) bool { return t.isForward(u, v) })
		if len(readers) != 1 {
			return fmt.Errorf("%q has the logits' size and is read by several nodes", v.Name)
		}
		switch {
		case n.Is("Identity"), n.Is("Reshape") && t.keepsClasses(n.In[0]):
			v = n.In[0]
		case n.Is("Cast") && n.In[0].Type.Elem.IsDifferentiable() && t.bias == nil:
			v = n.In[0]
		case n.Is("Add") && t.bias == nil && t.isBias(n.In[0]):
			t.bias, v = n.In[0], n.In[1]
		case n.Is("Add") && t.bias == nil && t.isBias(n.In[1]):
			t.bias, v = n.In[1], n.In[0]
		case n.Is("MatMul"):
			t.product, t.x, t.w = n, n.In[0], n.In[1]
			return t.weights(false)
		case n.Is("Gemm"):
			if n.Float("alpha", 1) != 1 || n.Int("transA", 0) != 0 {
				return errors.New("the Gemm that makes the logits scales or transposes")
			}
			if c := n.Operand(2); c != nil && n.Float("beta", 1) != 0 {
				if t.bias != nil || !t.isBias(c) || n.Float("beta", 1) != 1 {
					return errors.New("what the Gemm that makes the logits adds is no bias")
				}
				t.bias = c
			}
			t.product, t.x, t.w = n, n.In[0], n.In[1]
			return t.weights(n.Int("transB", 0) != 0)
		default:
			return fmt.Errorf("the logits are no product of a matrix with weights, but made by %s", n.Label())
		}
	}
}

// isForward reports whether a reader of v is the loss whose gradient the tail has, and notes it.
func (t *tail) isForward(u graph.Use, v *graph.Value) bool {
	n := u.Node
	if !n.Is("SoftmaxCrossEntropyLoss") || u.Index != 0 || n.Operand(2) != nil || t.forward != nil || t.picked != nil || v != t.logits {
		return false
	}
	if p := n.Result(1); p != nil && p.NumUses() > 0 || n.Result(0) == nil || len(v.Type.Shape) != 2 {
		return false
	}
	t.forward = n
	return true
}

// keepsClasses reports whether v has the classes on its last axis.
func (t *tail) keepsClasses(v *graph.Value) bool {
	s := v.Type.Shape
	if len(s) < 2 {
		return false
	}
	n, ok := s[len(s)-1].Int()
	return ok && n == t.classes
}

// isBias reports whether v has one element for each class.
func (t *tail) isBias(v *graph.Value) bool {
	s := v.Type.Shape
	if s == nil || !s.Size().Same(graph.Known(t.classes)) {
		return false
	}
	n, ok := s[len(s)-1].Int()
	return ok && n == t.classes
}

// weights finds the matrix behind transposes.
func (t *tail) weights(turned bool) error {
	t.w, t.turned = untranspose(t.w, turned)
	s, xs := t.w.Type.Shape, t.x.Type.Shape
	if len(s) != 2 || len(xs) < 2 {
		return errors.New("the logits are no product of a matrix with weights")
	}
	k := s[0]
	if t.turned {
		k = s[1]
	}
	var ok bool
	if t.depth, ok = k.Int(); !ok || t.depth < 1 {
		return errors.New("the depth of the product is not known")
	}
	return nil
}

// untranspose returns the matrix that v is the transpose of, and turned the other way for each one.
func untranspose(v *graph.Value, turned bool) (*graph.Value, bool) {
	for v.Def != nil && v.Def.Is("Transpose") && len(v.Type.Shape) == 2 {
		if p := v.Def.Ints("perm"); len(p) != 2 || p[0] == 1 {
			turned = !turned
		}
		v = v.Def.In[0]
	}
	return v, turned
}

// readers returns the places that read the elements of v, which has as many as the logits, and notes the nodes that want
// to know its shape.
func (t *tail) readers(v *graph.Value) ([]graph.Use, error) {
	var out []graph.Use
	for _, u := range v.Uses() {
		n := u.Node
		switch {
		case n == nil && v.Graph.Parent == nil && u.Graph == v.Graph:
			return nil, fmt.Errorf("%q has the logits' size and is a graph output", v.Name)
		case n == nil || n.Graph != v.Graph:
			return nil, fmt.Errorf("%q has the logits' size and is read by a subgraph", v.Name)
		case !op.Of(n).Has(op.ShapeOnly):
			out = append(out, u)
		case !n.Is("Shape") && !n.Is("Size") || !v.Type.Shape.Equal(t.logits.Type.Shape):
			return nil, fmt.Errorf("%s wants to know the shape of %q", n.Label(), v.Name)
		default:
			t.shaped = append(t.shaped, n)
		}
	}
	return out, nil
}

// reader returns the only node that reads the elements of v.
func (t *tail) reader(v *graph.Value) (*graph.Node, error) {
	list, err := t.readers(v)
	switch {
	case err != nil:
		return nil, err
	case len(list) != 1:
		return nil, fmt.Errorf("%q has the logits' size and is read by several nodes", v.Name)
	}
	return list[0].Node, nil
}

// lastAxis reports whether n's axis is the last of rank axes.
func lastAxis(n *graph.Node, rank int) bool {
	def := int64(0)
	if n.Is("Softmax") || n.Is("LogSoftmax") {
		def = -1
	}
	a := n.Int("axis", def)
	return a == -1 || a == int64(rank-1)
}

// derivatives finds what is made of the gradient of the logits.
func (t *tail) derivatives(info *op.Info) error {
	queue := []*graph.Value{t.grad}
	for len(queue) > 0 {
		g := queue[0]
		queue = queue[1:]
		readers, err := t.readers(g)
		if err != nil {
			return err
		}
		for _, u := range readers {
			n := u.Node
			switch {
			case n.Is("Reshape") && u.Index == 0 && t.keepsClasses(n.Out[0]), n.Is("Identity"),
				n.Is("Cast") && n.Out[0].Type.Elem.IsDifferentiable():
				queue = append(queue, n.Out[0])
			case n.Is("ReduceSum") && t.dbias == nil && t.sumsRows(n, info):
				t.dbias = n.Out[0]
			case t.back(n, u.Index) && t.dx == nil:
				t.dx = n.Out[0]
			case n.Is("Gemm") && t.dw == nil && t.across(n, u.Index):
				v := n.Out[0]
				t.dw = &outer{v: v, turned: u.Index == 0}
				if v.NumUses() == 1 && v.Uses()[0].Node != nil && v.Uses()[0].Node.Is("Transpose") {
					t.dw.turn = v.Uses()[0].Node.Out[0]
				}
			default:
				return fmt.Errorf("%s reads the gradient of the logits", n.Label())
			}
		}
	}
	if t.dx == nil && t.dw == nil {
		return errNoTail
	}
	if t.dx != nil && len(t.dx.Type.Shape) != 2 && !t.dx.Type.Shape.Equal(t.x.Type.Shape) {
		return fmt.Errorf("%q has another shape than %q, whose gradient it is", t.dx.Name, t.x.Name)
	}
	return nil
}

// sumsRows reports whether n sums over all rows and keeps the classes alone.
func (t *tail) sumsRows(n *graph.Node, info *op.Info) bool {
	rank := len(n.In[0].Type.Shape)
	if len(n.Out[0].Type.Shape) != 1 || n.Operand(1) == nil {
		return false
	}
	a := info.Const(n.In[1])
	if a == nil || a.I64 == nil || a.Len() != rank-1 {
		return false
	}
	for _, x := range a.I64 {
		if x < 0 {
			x += int64(rank)
		}
		if x == int64(rank-1) {
			return false
		}
	}
	return true
}

// back reports whether n is the product of the gradient, its operand i, with the weights.
func (t *tail) back(n *graph.Node, i int) bool {
	if i != 0 || !n.Is("MatMul") && !n.Is("Gemm") {
		return false
	}
	turned := false
	if n.Is("Gemm") {
		if n.Float("alpha", 1) != 1 || n.Operand(2) != nil || n.Int("transA", 0) != 0 {
			return false
		}
		turned = n.Int("transB", 0) != 0
	}
	w, turned := untranspose(n.In[1], turned)
	return w == t.w && turned != t.turned
}

// across reports whether n is the product of the gradient, its operand i, with x over the rows.
func (t *tail) across(n *graph.Node, i int) bool {
	if n.Float("alpha", 1) != 1 || n.Operand(2) != nil || n.Int("transA", 0) == 0 || n.Int("transB", 0) != 0 {
		return false
	}
	return flat(n.In[1-i]) == flat(t.x)
}

// flat returns what v is another shape of.
func flat(v *graph.Value) *graph.Value {
	for v.Def != nil && (v.Def.Is("Reshape") || v.Def.Is("Identity")) {
		v = v.Def.In[0]
	}
	return v
}

// depends reports whether v is computed from n's results.
func depends(v *graph.Value, n *graph.Node) bool {
	seen := map[*graph.Node]bool{}
	var visit []*graph.Node
	push := func(v *graph.Value) {
		if v != nil && v.Def != nil && !seen[v.Def] {
			seen[v.Def] = true
			visit = append(visit, v.Def)
		}
	}
	push(v)
	for len(visit) > 0 {
		k := visit[len(visit)-1]
		visit = visit[:len(visit)-1]
		if k == n {
			return true
		}
		for _, w := range k.In {
			push(w)
		}
		for _, w := range k.Captures() {
			push(w)
		}
	}
	return false
}
