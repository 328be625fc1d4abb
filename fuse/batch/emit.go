package batch

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// emitter rewrites a graph, node by node in its order.
type emitter struct {
	m     *graph.Model
	g     *graph.Graph
	info  *op.Info
	b     *op.Builder // puts nodes in front of the node at hand, at the end
	batch graph.Dim   // samples
	parts int
	sizes []graph.Dim    // samples of each part
	ends  []*graph.Value // where each part ends, int64 vectors of one element, made when they are needed
	first origin         // the input that tells the number of samples

	seed   map[*graph.Value]*place         // inputs that have the batch
	at     map[*graph.Value]*place         // values of the given graph that are there in parts
	pieces map[*graph.Value][]*graph.Value // their parts
	whole  map[*graph.Value]*graph.Value   // what stands for a value of the given graph as a whole, if not the value itself
	cuts   map[*graph.Value][]cut          // parts of whole values
	gone   []*graph.Node                   // nodes of the given graph that are computed in parts
	joined map[*graph.Value]bool           // values that are complete once all parts are computed
	part   map[*graph.Node]int             // of nodes that belong to one part
	idle   map[*graph.Node]bool            // nodes that nobody read to begin with
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
		whole: map[*graph.Value]*graph.Value{}, cuts: map[*graph.Value][]cut{}, joined: map[*graph.Value]bool{}, part: map[*graph.Node]int{}, common: map[*graph.Node]bool{}, idle: map[*graph.Node]bool{}}
	if k, ok := n.Int(); ok {
		e.parts = int(min(int64(parts), k))
	}
	e.res = &Result{Axis: n.String(), Parts: e.parts}
	for k := range e.parts {
		e.sizes = append(e.sizes, e.end(k+1).Sub(e.end(k)))
	}
	return e
}

// run rewrites the graph. Its nodes are taken out and put back one by one, each behind its parts.
func (e *emitter) run() error {
	work := e.g.Nodes
	for _, n := range work {
		e.idle[n] = !used(n)
	}
	e.m.Fresh("batch") // the model takes note of the names of its nodes while they are there
	e.m.FreshNode("batch")
	e.g.Nodes = make([]*graph.Node, 0, len(work)*(e.parts+1))
	for len(work) > 0 {
		n := work[0]
		work = work[1:]
		c := &ctx{emitter: e, n: n, at: make([]*place, max(len(n.In), 8))}
		for i, v := range n.In {
			if v != nil {
				if c.at[i] = e.placeOf(v); c.at[i] != nil && c.at[i].sum {
					c.at[i] = nil
				}
			}
		}
		if build := decomposition(c); build != nil {
			at := len(e.g.Nodes)
			e.g.Nodes = append(e.g.Nodes, n)
			e.b.ReplaceBy(n, build)
			work = append(slices.Clone(e.g.Nodes[at:]), work...)
			e.g.Nodes = e.g.Nodes[:at]
		} else {
			if err := e.node(c); err != nil {
				return fmt.Errorf("internal error: parts of %s: %w", n.Label(), err)
			}
			e.g.Nodes = append(e.g.Nodes, n)
		}
		if e.b.Err != nil {
			return fmt.Errorf("internal error: parts of %s: %w", n.Label(), e.b.Err)
		}
	}
	return e.settle()
}

// node computes a node in parts, or makes what it reads whole.
func (e *emitter) node(c *ctx) error {
	n := c.n
	why := errors.New("its subgraph reads the batch")
	divisible := c.split() >= 0 || c.adds()
	if divisible {
		v, err := c.judge()
		if err == nil {
			return e.emit(c, v)
		}
		why = err
	}
	for _, v := range n.In {
		if v != nil {
			e.entire(v)
		}
	}
	if e.captured(n) || divisible {
		e.res.Borders = append(e.res.Borders, Border{n.Label(), why.Error()})
	}
	return nil
}

// used reports whether anybody reads a result of n.
func used(n *graph.Node) bool {
	for _, v := range n.Out {
		if v != nil && v.NumUses() > 0 {
			return true
		}
	}
	return false
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
	if v.carry > 0 && v.join != "" && summand(n.Out[0]) { // of two ways the one whose terms may stay apart
		v.carry = 0
	}
	if v.join == "Add" && v.carry == 0 && v.finish == nil && len(n.Out) == 1 && v.out[0] == nil && summand(n.Out[0]) {
		v.out = []*place{{sum: true}}
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
		e.claim(begin, k)
		if sum == nil {
			sum = make([]*graph.Value, len(n.Out))
		}
		for i, w := range n.Out {
			if w == nil {
				continue
			}
			switch y := out[i]; {
			case v.out[i] != nil:
				if err := e.checked(w, y, v.out[i], k); err != nil {
					return err
				}
				e.pieces[w] = append(e.pieces[w], y)
				e.at[w] = v.out[i]
			case k == 0 || v.carry > 0:
				sum[i] = y
			default:
				begin := e.m.NextID()
				sum[i] = e.b.Op(v.join, []*graph.Value{sum[i], y})
				e.claim(begin, k)
			}
		}
	}
	for i, w := range n.Out {
		if w == nil || v.out[i] != nil {
			continue
		}
		e.joined[sum[i]] = true
		e.res.Summed++
		if v.finish != nil {
			sum[i] = v.finish(sum[i])
		}
		e.whole[w] = sum[i]
	}
	return nil
}

// checked reports whether y can be part k of v.
func (e *emitter) checked(v, y *graph.Value, at *place, k int) error {
	if at.sum {
		return nil
	}
	got, ok1 := y.Type.Shape[at.axis].Int()
	want, ok2 := at.size(e.sizes[k]).Int()
	if ok1 && ok2 && got != want {
		return fmt.Errorf("part %d of %q has %d elements in axis %d, expected %d", k, v.Name, got, at.axis, want)
	}
	return nil
}

// claim says that nodes made since id belong to part k.
func (e *emitter) claim(id int, k int) {
	for at := len(e.g.Nodes) - 1; at >= 0 && e.g.Nodes[at].ID >= id; at-- {
		n := e.g.Nodes[at]
		if _, ok := e.part[n]; !ok && !n.Is("Constant") && !e.common[n] {
			e.part[n] = k
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
