package batch

import (
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// emitter rewrites a graph, node by node in its order.
type emitter struct {
	m     *graph.Model
	g     *graph.Graph
	info  *op.Info
	b     *op.Builder // puts nodes in front of the node at hand
	batch graph.Dim   // samples
	parts int
	sizes []graph.Dim    // samples of each part
	ends  []*graph.Value // where each part ends, int64 vectors of one element, made when they are needed
	first seed           // the input that tells the number of samples

	seed   map[*graph.Value]*place         // inputs that have the batch
	at     map[*graph.Value]*place         // values of the given graph that are there in parts
	pieces map[*graph.Value][]*graph.Value // their parts
	whole  map[*graph.Value]*graph.Value   // what stands for a value of the given graph as a whole, if not the value itself
	cuts   map[*graph.Value][]cut          // parts of whole values
	gone   []*graph.Node                   // nodes of the given graph that are computed in parts
	joined map[*graph.Value]bool           // values that are complete once all parts are computed
	part   map[*graph.Node]int             // of nodes that belong to one part
	common map[*graph.Node]bool            // nodes made for a part that are of none
	res    *Result
}

// cut is the parts of a whole value at a place; nil where nobody has asked for them yet.
type cut struct {
	at    *place
	parts []*graph.Value
}

func newEmitter(m *graph.Model, info *op.Info, n graph.Dim, parts int) *emitter {
	e := &emitter{m: m, g: m.Graph, info: info, b: op.NewBuilder(m.Graph, info), batch: n, parts: parts,
		seed: map[*graph.Value]*place{}, at: map[*graph.Value]*place{}, pieces: map[*graph.Value][]*graph.Value{},
		whole: map[*graph.Value]*graph.Value{}, cuts: map[*graph.Value][]cut{}, joined: map[*graph.Value]bool{}, part: map[*graph.Node]int{}, common: map[*graph.Node]bool{}}
	if k, ok := n.Int(); ok {
		e.parts = int(min(int64(parts), k))
	}
	e.res = &Result{Axis: n.String(), Parts: e.parts, Batch: n}
	for k := range e.parts {
		e.sizes = append(e.sizes, e.end(k+1).Sub(e.end(k)))
	}
	return e
}

// end returns where part k-1 ends and part k begins: parts differ by at most one sample. Of a batch with fewer samples than parts
// some are empty.
func (e *emitter) end(k int) graph.Dim {
	return e.batch.Mul(graph.Known(int64(k))).FloorDiv(graph.Known(int64(e.parts)))
}

// count notes which input tells the number of samples.
func (e *emitter) count(s seed) error {
	e.first = s
	e.ends = make([]*graph.Value, e.parts+1)
	if e.batch.IsUnknown() {
		return ErrNoBatch
	}
	return nil
}

// samples returns the number of samples as an int64 vector of one element.
func (e *emitter) samples() *graph.Value {
	if n, ok := e.batch.Int(); ok {
		return e.b.Ints(n)
	}
	if e.ends[e.parts] == nil {
		e.ends[e.parts] = e.shared(e.b.DimOf(e.first.value, e.first.at.axis))
	}
	return e.ends[e.parts]
}

// endOf returns end(k) as an int64 vector of one element.
func (e *emitter) endOf(k int) *graph.Value {
	switch n, ok := e.end(k).Int(); {
	case ok:
		return e.b.Ints(n)
	case k == e.parts:
		return e.samples()
	case e.ends[k] == nil:
		e.ends[k] = e.shared(e.b.Div(e.shared(e.b.Mul(e.samples(), e.b.Ints(int64(k)))), e.b.Ints(int64(e.parts))))
	}
	return e.ends[k]
}

// shared says that the node of v is of no part.
func (e *emitter) shared(v *graph.Value) *graph.Value {
	e.common[v.Def] = true
	return v
}

// sizeOf returns the number of samples of part k as an int64 vector of one element.
func (e *emitter) sizeOf(k int) *graph.Value {
	if n, ok := e.sizes[k].Int(); ok {
		return e.b.Ints(n)
	}
	return e.b.Sub(e.endOf(k+1), e.endOf(k))
}

// times returns v * d, where d must be a known number.
func (e *emitter) times(v *graph.Value, d graph.Dim) *graph.Value {
	n, _ := d.Int()
	if n == 1 {
		return v
	}
	if a := e.info.Const(v); a != nil && a.Len() == 1 {
		return e.b.Ints(a.I64[0] * n)
	}
	return e.b.Mul(v, e.b.Ints(n))
}

// run rewrites the graph.
func (e *emitter) run() error {
	work := append([]*graph.Node{}, e.g.Nodes...)
	for len(work) > 0 {
		n := work[0]
		work = work[1:]
		e.b.Before = n
		c := &ctx{emitter: e, n: n, at: make([]*place, len(n.In))}
		for i, v := range n.In {
			if v != nil {
				c.at[i] = e.placeOf(v)
			}
		}
		if c.split() < 0 {
			if e.captured(n) {
				e.res.Borders = append(e.res.Borders, Border{n.Label(), "its subgraph reads the batch"})
			}
			continue
		}
		if build := decomposition(c); build != nil {
			at := len(e.g.Nodes)
			begin := indexOf(e.g.Nodes, n)
			e.b.ReplaceBy(n, build)
			added := len(e.g.Nodes) + 1 - at
			work = append(append([]*graph.Node{}, e.g.Nodes[begin:begin+added]...), work...)
			continue
		}
		v, err := c.judge()
		if err == nil {
			err = e.emit(c, v)
			if err != nil {
				return fmt.Errorf("internal error: parts of %s: %w", n.Label(), err)
			}
		} else {
			if c.split() >= 0 {
				e.res.Borders = append(e.res.Borders, Border{n.Label(), err.Error()})
			}
			for _, v := range n.In {
				if v != nil {
					e.entire(v)
				}
			}
			e.captured(n)
		}
		if e.b.Err != nil {
			return fmt.Errorf("internal error: parts of %s: %w", n.Label(), e.b.Err)
		}
	}
	e.b.Before = nil
	return e.settle()
}

func indexOf(nodes []*graph.Node, n *graph.Node) int {
	for i := range nodes {
		if nodes[i] == n {
			return i
		}
	}
	return -1
}

// placeOf returns where the batch lies in a value of the given graph, nil if it is whole.
func (e *emitter) placeOf(v *graph.Value) *place {
	if p := e.seed[v]; p != nil {
		return p
	}
	return e.at[v]
}

// captured makes what the subgraphs of n read whole, and reports whether something was in parts.
func (e *emitter) captured(n *graph.Node) bool {
	any := false
	if len(n.Subgraphs()) == 0 {
		return false
	}
	for _, v := range n.Captures() {
		if v.Graph == e.g {
			any = any || e.at[v] != nil
			e.entire(v)
		}
	}
	return any
}

// entire returns what stands for a value as a whole.
func (e *emitter) entire(v *graph.Value) *graph.Value {
	if w := e.whole[v]; w != nil {
		return w
	}
	parts := e.pieces[v]
	if parts == nil {
		return v
	}
	w := e.concat(parts, e.at[v])
	e.whole[v], e.joined[w] = w, true
	e.res.Joined = append(e.res.Joined, v.Name)
	return w
}

// concat joins the parts of a value.
func (e *emitter) concat(parts []*graph.Value, at *place) *graph.Value {
	role := e.b.Role
	e.b.Role, e.b.Prefix = parts[0].Def.Meta.Get(graph.MetaRole), "batch/whole"
	defer func() { e.b.Role, e.b.Prefix = role, "" }()
	parts = append([]*graph.Value{}, parts...)
	outer, _ := at.outer.Int()
	for k, v := range parts {
		if at.unit != nil && k > 0 { // positions count from the beginning of the whole
			v = e.b.Add(v, e.b.Cast(e.times(e.endOf(k), *at.unit), v.Type.Elem))
		}
		if outer != 1 {
			v = e.blocks(v, at, outer)
		}
		parts[k] = v
	}
	if outer == 1 {
		return e.b.Concat(int64(at.axis), parts...)
	}
	return e.unblock(e.b.Concat(int64(at.axis)+1, parts...), at.axis)
}

// blocks makes an axis of blocks into two.
func (e *emitter) blocks(v *graph.Value, at *place, outer int64) *graph.Value {
	var dims []*graph.Value
	for i := range v.Type.Shape {
		if i != at.axis {
			dims = append(dims, e.b.DimOf(v, i))
			continue
		}
		dims = append(dims, e.b.Ints(outer))
		if n, ok := v.Type.Shape[i].Int(); ok {
			dims = append(dims, e.b.Ints(n/outer))
		} else {
			dims = append(dims, e.b.Div(e.b.DimOf(v, i), e.b.Ints(outer)))
		}
	}
	return e.b.Op("Reshape", []*graph.Value{v, e.vector(dims)}, graph.IntAttr("allowzero", 1))
}

// unblock undoes blocks.
func (e *emitter) unblock(v *graph.Value, axis int) *graph.Value {
	var dims []*graph.Value
	for i := range v.Type.Shape {
		switch {
		case i == axis+1:
		case i != axis:
			dims = append(dims, e.b.DimOf(v, i))
		default:
			x, ok1 := v.Type.Shape[i].Int()
			y, ok2 := v.Type.Shape[i+1].Int()
			if ok1 && ok2 {
				dims = append(dims, e.b.Ints(x*y))
			} else {
				dims = append(dims, e.b.Mul(e.b.DimOf(v, i), e.b.DimOf(v, i+1)))
			}
		}
	}
	return e.b.Op("Reshape", []*graph.Value{v, e.vector(dims)}, graph.IntAttr("allowzero", 1))
}

// vector joins int64 vectors of one element: a constant if all are.
func (e *emitter) vector(dims []*graph.Value) *graph.Value {
	var list []int64
	for _, d := range dims {
		a := e.info.Const(d)
		if a == nil || a.Len() != 1 {
			return e.b.Concat(0, dims...)
		}
		list = append(list, a.I64[0])
	}
	return e.b.Ints(list...)
}

// emit makes the parts of a node.
func (e *emitter) emit(c *ctx, v *verdict) error {
	n := c.n
	e.gone = append(e.gone, n)
	e.res.Divided++
	e.b.Role, e.b.From, e.b.Prefix = n.Meta.Get(graph.MetaRole), n.Meta.Get(graph.MetaFrom), ""
	defer func() { e.b.Role, e.b.From, e.b.Prefix = "", "", "" }()
	if v.whole != nil {
		for i, w := range v.whole() {
			e.whole[n.Out[i]] = w
		}
		e.res.Divided--
		return nil
	}
	var sum []*graph.Value // partial results, combined
	for k := range e.parts {
		in := make([]*graph.Value, len(n.In))
		for i, w := range n.In {
			switch {
			case w == nil:
			case v.carry == i+1 && k > 0:
				in[i] = sum[0]
			case v.in[i] != nil:
				in[i] = e.want(w, v.in[i], k)
			default:
				in[i] = e.entire(w)
			}
		}
		if v.carry > len(in) && k > 0 { // an operand that the node was given without
			for len(in) < v.carry {
				in = append(in, nil)
			}
			in[v.carry-1] = sum[0]
		}
		var out []*graph.Value
		begin := e.m.NextID()
		if v.build != nil {
			out = v.build(k, in)
		} else {
			out = e.copy(n, in, v.edit, k)
		}
		e.claim(begin, n, k)
		if sum == nil {
			sum = make([]*graph.Value, len(n.Out))
		}
		for i, w := range n.Out {
			if w == nil {
				continue
			}
			switch y := out[i]; {
			case v.out[i] != nil:
				if got, ok := y.Type.Shape[v.out[i].axis].Int(); ok {
					if want, ok := v.out[i].size(e.sizes[k]).Int(); ok && got != want {
						return fmt.Errorf("part %d of %q has %d elements in axis %d, expected %d", k, w.Name, got, v.out[i].axis, want)
					}
				}
				e.pieces[w] = append(e.pieces[w], y)
				e.at[w] = v.out[i]
			case k == 0 || v.carry > 0:
				sum[i] = y
			default:
				begin := e.m.NextID()
				sum[i] = e.b.Op(v.join, []*graph.Value{sum[i], y})
				e.claim(begin, n, k)
			}
		}
	}
	for i, w := range n.Out {
		if w == nil || v.out[i] != nil {
			continue
		}
		e.joined[sum[i]] = true
		if v.finish != nil {
			sum[i] = v.finish(sum[i])
		}
		e.whole[w] = sum[i]
	}
	return nil
}

// claim says that nodes made since id belong to part k.
func (e *emitter) claim(id int, before *graph.Node, k int) {
	at := indexOf(e.g.Nodes, before)
	for at--; at >= 0 && e.g.Nodes[at].ID >= id; at-- {
		if n := e.g.Nodes[at]; !n.Is("Constant") && !e.common[n] {
			if _, ok := e.part[n]; !ok {
				e.part[n] = k
			}
		}
	}
}

// copy makes a copy of n for part k.
func (e *emitter) copy(n *graph.Node, in []*graph.Value, edit func(*graph.Node, int), k int) []*graph.Value {
	cl := &graph.Cloner{To: e.m, Prefix: fmt.Sprintf("part%d/", k)}
	m, err := cl.Node(e.g, n)
	if err != nil {
		if e.b.Err == nil {
			e.b.Err = err
		}
		return nil
	}
	for i, v := range in {
		if i < len(m.In) {
			m.SetIn(i, v)
		} else {
			m.In = append(m.In, nil)
			m.SetIn(i, v)
		}
	}
	if m.Meta.Get(graph.MetaFrom) == "" && n.Name != "" {
		m.Meta.Set(graph.MetaFrom, n.Name)
	}
	if edit != nil {
		edit(m, k)
	}
	e.b.Put(m)
	return m.Out
}

// settle joins what is wanted whole at the end, removes what is computed in parts, and orders the nodes.
func (e *emitter) settle() error {
	for _, v := range e.g.Outputs {
		e.entire(v)
	}
	e.arrange()
	for i := len(e.gone) - 1; i >= 0; i-- {
		n := e.gone[i]
		outs := append([]*graph.Value{}, n.Out...)
		for _, v := range outs {
			if v == nil {
				continue
			}
			if w := e.whole[v]; w != nil {
				e.replace(v, w)
			}
		}
		e.g.Remove(n)
	}
	return e.b.Err
}

// replace lets w be v, or be read in its place where it is more than that.
func (e *emitter) replace(v, w *graph.Value) {
	switch {
	case w.Def != nil && !w.Def.Is("Constant"):
		v.TakeOver(w)
	case v.IsOutput():
		v.TakeOver(e.b.Unary("Identity", w))
	default:
		v.ReplaceUses(w)
	}
}
