package recompute

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/memplan"
)

// Barrier says how what recomputes is kept from running before the plan has it run. A copy of a node whose operands are there early
// could run early, and a runtime that orders nodes by its own rules does run it so, or merges it with the original; then the memory
// that the plan saves is not saved.
type Barrier uint8

// Kinds of barriers.
const (
	// BarrierData makes operands depend on data computed just before: they are reshaped to their own shape plus a zero that is
	// worked out from elements of all that came before. Nobody can know the zero before.
	BarrierData Barrier = iota
	// BarrierShape takes the zero from the shapes of those values: cheaper, but a runtime that knows the shapes sees through it.
	BarrierShape
	// BarrierNone leaves it at the order of the nodes.
	BarrierNone
)

// ParseBarrier reads data, shape or none.
func ParseBarrier(s string) (Barrier, error) {
	for b, name := range barrierNames {
		if s == name {
			return Barrier(b), nil
		}
	}
	return 0, fmt.Errorf("barrier %q: want data, shape or none", s)
}

var barrierNames = [...]string{"data", "shape", "none"}

// String returns the barrier's name.
func (b Barrier) String() string { return barrierNames[b] }

// barrier builds barriers while nodes are placed. It cuts the order into stretches: a token is a zero that depends on all
// nodes in front of it, and what comes behind it, if it has a large result or computes one again, depends on the token. So
// a runtime that orders nodes by rules of its own can only do so within a stretch.
type barrier struct {
	w      *writer
	kind   Barrier
	peak   int64                         // of the plan
	stride int64                         // bytes that the nodes of a stretch compute, about
	made   int64                         // by those of this one
	active bool                          // there is something to wait for: nodes of the backward part, or some computed again
	loose  []*graph.Value                // a result of each placed node that none placed later reads, in order of placement
	at     map[*graph.Node]int           // where they are in loose
	zero   *graph.Value                  // the last token
	after  map[*graph.Node]bool          // nodes that depend on it
	again  map[*graph.Node]bool          // originals of those that were computed again behind it
	unread map[*graph.Value]bool         // results that nobody reads, which are not to live until a token
	held   map[*graph.Value]*graph.Value // what values are that wait for it
	ints   map[int64]*graph.Value
	float  *graph.Value
}

func newBarrier(w *writer, kind Barrier, peak int64) *barrier {
	b := &barrier{w: w, kind: kind, peak: peak, stride: max(peak/stretches, 1), unread: map[*graph.Value]bool{}, ints: map[int64]*graph.Value{}, at: map[*graph.Node]int{}}
	b.reset()
	return b
}

// reset forgets what depends on the last token.
func (b *barrier) reset() {
	b.made, b.after, b.again, b.held = 0, map[*graph.Node]bool{}, map[*graph.Node]bool{}, map[*graph.Value]*graph.Value{}
}

// veil makes everything read the graph inputs through a barrier, but those that an optimizer writes over. A runtime that
// knows that two results are of the same size may keep the memory of one that died for one that is made much later; what it
// cannot know before the data is there it cannot plan.
func (b *barrier) veil(state []memplan.Pair) {
	if b.kind != BarrierData {
		return
	}
	over := map[*graph.Value]bool{}
	for _, s := range state {
		over[s.From] = true
	}
	var list []*graph.Value
	for _, v := range b.w.g.Inputs {
		if v.Init == nil && !over[v] && v.NumUses() > 0 && rank(v) == input && len(v.Type.Shape) > 0 && readable(v) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return
	}
	b.loose = append(b.loose, list[0])
	b.zero = b.token()
	b.room()
	for _, v := range list {
		b.w.version[v] = b.reshape(v)
	}
	b.zero = nil
}

// saw notes that a node was placed: what it reads has run before whatever waits for it.
func (b *barrier) saw(n *graph.Node, reads []*graph.Value) {
	for _, v := range reads {
		if v.Def != nil && v.Graph == b.w.g {
			b.drop(v.Def)
			b.after[n] = b.after[n] || b.after[v.Def]
		}
	}
	if v := b.witness(n); v != nil {
		b.at[n] = len(b.loose)
		b.loose = append(b.loose, v)
	}
	b.made += b.w.bytes(n)
	if n.Meta.Get(graph.MetaRole) == graph.RoleBackward {
		b.active = true
	}
}

func (b *barrier) drop(n *graph.Node) {
	if i, ok := b.at[n]; ok {
		b.loose[i] = nil
		delete(b.at, n)
	}
}

// witness returns a result of n whose first element can be read: one of a known, not empty shape. Constants and what depends
// on shapes only prove nothing.
func (b *barrier) witness(n *graph.Node) *graph.Value {
	if len(n.In) == 0 {
		return nil
	}
	for _, v := range n.Out {
		if v != nil && !b.unread[v] && readable(v) {
			return v
		}
	}
	return nil
}

// readable reports whether v has a first element that can be cast to a float.
func readable(v *graph.Value) bool {
	if !v.Type.IsTensor() || v.Type.Elem == graph.String || v.Type.Elem.IsComplex() || v.Type.Elem.Bits() < 8 {
		return false
	}
	size, ok := v.Type.Shape.Size().Int()
	return ok && size > 0
}

// small is the share of a stretch's bytes below which results may come early.
const small = 64

// wait makes node n, or a copy of it, wait for the last token if it does not yet: values says what stands for its
// operands, and gets another entry. A new token begins where a stretch is full.
func (b *barrier) wait(n *graph.Node, values map[*graph.Value]*graph.Value, again bool) {
	if b.kind == BarrierNone {
		return
	}
	b.active = b.active || again
	if b.active && b.made >= b.stride || again && (b.zero == nil || b.again[n]) {
		if z := b.token(); z != nil {
			b.zero = z
		}
	}
	if again {
		b.again[n] = true
	}
	if b.zero == nil || !again && b.w.bytes(n)*small < b.stride {
		return
	}
	for _, v := range operands(n) {
		if x := values[v]; x.Def != nil && b.after[x.Def] {
			return
		}
	}
	v := handle(n)
	if v == nil || !again && rank(v) < computed {
		return // weights are brought into other forms beforehand
	}
	x := values[v]
	if b.held[x] == nil {
		b.held[x] = b.reshape(x)
	}
	values[v] = b.held[x]
}

// Ranks of operands by how well they can wait.
const (
	unfit    = iota
	weight   // runtimes bring weights into forms of their own beforehand
	input    // of the graph
	computed // by a node
)

func rank(v *graph.Value) int {
	switch {
	case !v.Type.IsTensor() || !v.Type.Shape.HasRank():
		return unfit
	case v.Init != nil && !v.IsInput(), v.Def != nil && len(v.Def.In) == 0:
		return weight
	case v.Def == nil:
		return input
	}
	return computed
}

// handle returns the operand of n that can wait best, of several the largest, nil if none can.
func handle(n *graph.Node) *graph.Value {
	var best *graph.Value
	var most int64
	for _, v := range n.In {
		if v == nil || rank(v) == unfit {
			continue
		}
		size, _ := memplan.SizeOf(v.Type).Int()
		if best == nil || rank(v) > rank(best) || rank(v) == rank(best) && size > most {
			best, most = v, size
		}
	}
	return best
}

// token returns a zero, int64[1], that depends on every node placed so far.
func (b *barrier) token() *graph.Value {
	var parts []*graph.Value
	for _, v := range slices.Backward(b.loose) {
		if v == nil {
			continue
		}
		if b.kind == BarrierShape {
			if len(v.Type.Shape) == 0 {
				continue
			}
			parts = append(parts, b.node("Shape", []*graph.Value{v}, graph.TensorOf(graph.Int64, graph.ShapeOf(int64(len(v.Type.Shape))))))
			continue
		}
		x := b.node("Reshape", []*graph.Value{v, b.int(-1)}, graph.TensorOf(v.Type.Elem, graph.Shape{v.Type.Shape.Size()}))
		x = b.node("Slice", []*graph.Value{x, b.int(0), b.int(1)}, graph.TensorOf(v.Type.Elem, graph.ShapeOf(1)))
		if v.Type.Elem != graph.Float {
			x = b.node("Cast", []*graph.Value{x}, graph.TensorOf(graph.Float, graph.ShapeOf(1)), graph.IntAttr("to", int64(graph.Float)))
		}
		parts = append(parts, x)
	}
	b.loose = b.loose[:0]
	clear(b.at)
	if len(parts) == 0 {
		return nil
	}
	zero := b.combine(parts)
	b.loose, b.at[zero.Def] = append(b.loose[:0], zero), 0
	b.reset()
	b.after[zero.Def] = true
	return zero
}

// combine makes a zero of single elements, or of shapes.
func (b *barrier) combine(parts []*graph.Value) *graph.Value {
	all := parts[0]
	if b.kind == BarrierShape {
		if len(parts) > 1 {
			all = b.node("Concat", parts, graph.TensorOf(graph.Int64, graph.UnknownShape(1)), graph.IntAttr("axis", 0))
		}
		all = b.node("ReduceMin", []*graph.Value{all, b.int(0)}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
		return b.node("Min", []*graph.Value{all, b.int(0)}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
	}
	// What has elements at the sizes planned for may have none at others; with a number of its own the list is never empty.
	parts = append(parts, b.number())
	n := int64(len(parts))
	all = b.node("Concat", parts, graph.TensorOf(graph.Float, graph.ShapeOf(n)), graph.IntAttr("axis", 0))
	all = b.node("IsNaN", []*graph.Value{all}, graph.TensorOf(graph.Bool, graph.ShapeOf(n)))
	all = b.node("Cast", []*graph.Value{all}, graph.TensorOf(graph.Int64, graph.ShapeOf(n)), graph.IntAttr("to", int64(graph.Int64)))
	all = b.node("ReduceMax", []*graph.Value{all, b.int(0)}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
	return b.node("Min", []*graph.Value{all, b.int(0)}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
}

// reshape returns x in its own shape, once the token is there.
func (b *barrier) reshape(x *graph.Value) *graph.Value {
	rank := int64(len(x.Type.Shape))
	if rank == 0 { // a scalar has no shape to add the zero to: it becomes a vector, and a scalar again
		dims := b.node("Add", []*graph.Value{b.int(1), b.zero}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
		y := b.node("Reshape", []*graph.Value{x, dims}, graph.TensorOf(x.Type.Elem, graph.ShapeOf(1)))
		y.Def.Meta.Set(graph.MetaBarrier, b.kind.String())
		return b.node("Squeeze", []*graph.Value{y, b.int(0)}, x.Type)
	}
	dims := b.node("Shape", []*graph.Value{x}, graph.TensorOf(graph.Int64, graph.ShapeOf(rank)))
	dims = b.node("Add", []*graph.Value{dims, b.zero}, graph.TensorOf(graph.Int64, graph.ShapeOf(rank)))
	y := b.node("Reshape", []*graph.Value{x, dims}, x.Type)
	y.Def.Meta.Set(graph.MetaBarrier, b.kind.String())
	return y
}

// node places a node of the barrier with one result.
func (b *barrier) node(name string, in []*graph.Value, t graph.Type, attrs ...*graph.Attr) *graph.Value {
	m := b.w.Model
	n := b.w.g.NewNode("", name, in, []string{m.Fresh(prefix + "barrier/" + name)}, attrs...)
	n.Name = m.FreshNode(prefix + "barrier/" + name)
	n.Meta.Set(graph.MetaRole, graph.RoleRecompute)
	n.Out[0].Type = t
	b.w.nodes = append(b.w.nodes, n)
	b.w.placed[n] = true
	b.w.made.Barriers++
	for _, v := range in {
		if v.Def != nil {
			b.drop(v.Def)
			b.after[n] = b.after[n] || b.after[v.Def]
		}
	}
	return n.Out[0]
}

// number returns the constant float[1] 0.
func (b *barrier) number() *graph.Value {
	if b.float == nil {
		b.float = b.node("Constant", nil, graph.TensorOf(graph.Float, graph.ShapeOf(1)), graph.TensorAttr("value", graph.Floats([]int64{1}, 0)))
	}
	return b.float
}

// int returns the constant int64[1] x.
func (b *barrier) int(x int64) *graph.Value {
	if b.ints[x] == nil {
		b.ints[x] = b.node("Constant", nil, graph.TensorOf(graph.Int64, graph.ShapeOf(1)), graph.TensorAttr("value", graph.Ints([]int64{1}, x)))
	}
	return b.ints[x]
}
