package memplan

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
)

// Category tells what bytes are for.
type Category uint8

// Categories.
const (
	Weights     Category = iota // initializers and constants
	Inputs                      // graph inputs
	Activations                 // results of forward nodes, and of those that recompute them
	Gradients                   // results of backward nodes
	Optimizer                   // results of the optimizer
	Workspace                   // what nodes with subgraphs need inside
	numCategories
)

var categoryNames = [numCategories]string{"weights", "inputs", "activations", "gradients", "optimizer", "workspace"}

// String returns the category's name.
func (c Category) String() string {
	if c < numCategories {
		return categoryNames[c]
	}
	return "unknown"
}

// categoryOf returns the category of a value.
func categoryOf(v *graph.Value) Category {
	switch {
	case v.Init != nil || constant(v):
		return Weights
	case v.Def == nil:
		return Inputs
	}
	switch v.Def.Meta.Get(graph.MetaRole) {
	case graph.RoleBackward:
		return Gradients
	case graph.RoleOptimizer:
		return Optimizer
	}
	return Activations
}

// Buffer is a run of bytes of the arena with the values that lie in it, one after another or, views, at the same time.
type Buffer struct {
	Values      []*graph.Value // in order of definition: the first one brings the bytes; none for a workspace
	Node        *graph.Node    // whose workspace it is
	Size        graph.Dim
	Bytes       int64
	First, Last int // steps, both included
	Category    Category
	Output      bool // holds a graph output
}

// Name returns the name of the first value, or for a workspace the node's label.
func (b *Buffer) Name() string {
	if b.Node != nil {
		return "workspace of " + b.Node.Label()
	}
	return b.Values[0].Name
}

// Pair says that To is written over From: at the step that makes To, From dies.
type Pair struct{ From, To *graph.Value }

// Outside is a value that the arena cannot hold, and why.
type Outside struct {
	Value *graph.Value
	Why   string
}

// Live tells, for one order of a graph's nodes, which values share bytes and when they live.
type Live struct {
	Graph   *graph.Graph
	Order   []*graph.Node
	Buffers []*Buffer // in order of First
	Of      map[*graph.Value]*Buffer
	InPlace []Pair // in order of time
	State   []Pair // results that lie where an input lay: From is the input
	Outside []Outside
	Uncount int     // values inside subgraphs that no workspace counts, for the reasons that Outside gives
	Use     []int64 // bytes alive at each step, workspace included
	Peak    int64   // the most of Use; no arena for this order is smaller
	At      int     // the first step that needs it

	bodies map[*graph.Node][]*Placed // plans of subgraphs
}

// Analyze returns what the main graph g, or a graph like one, needs if its nodes run in the given order; nil means the order that
// they have in g. The types of values must be known; those whose size is not lie outside. It fails on an order that
// does not hold every node once, behind those that it reads, and with a [SymbolError] on symbolic sizes that opt does not bind.
func Analyze(g *graph.Graph, order []*graph.Node, opt Options) (*Live, error) {
	n, err := newNet(g, opt, false)
	if err != nil {
		return nil, err
	}
	seq := n.given()
	if order != nil {
		if seq, err = n.sequence(order); err != nil {
			return nil, err
		}
	}
	if !n.valid(seq) {
		return nil, errors.New("the order has a node in front of one that it reads")
	}
	return n.live(g, seq, n.simulate(seq)), nil
}

// sequence returns the numbers of the nodes.
func (n *net) sequence(order []*graph.Node) ([]int32, error) {
	at := make(map[*graph.Node]int32, len(n.nodes))
	for i, k := range n.nodes {
		at[k] = int32(i)
	}
	seq := make([]int32, 0, len(order))
	for _, k := range order {
		i, ok := at[k]
		if !ok {
			return nil, fmt.Errorf("the order has node %s, which is not in the graph or comes twice", k.Label())
		}
		delete(at, k)
		seq = append(seq, i)
	}
	if len(seq) != len(n.nodes) {
		return nil, fmt.Errorf("the order has %d of %d nodes", len(seq), len(n.nodes))
	}
	return seq, nil
}

// live puts the result of a simulation in terms of values.
func (n *net) live(g *graph.Graph, order []int32, r *run) *Live {
	l := &Live{Graph: g, Of: map[*graph.Value]*Buffer{}, Outside: n.outside, Uncount: n.left, Use: r.live, Peak: r.peak, At: r.at, bodies: map[*graph.Node][]*Placed{}}
	bufs := make([]*Buffer, len(n.stores))
	for _, id := range n.inputs {
		s := &n.stores[id]
		bufs[id] = &Buffer{Values: slices.Clone(s.values), Size: s.size, Bytes: s.bytes, Last: int(r.last[id]), Category: Inputs, Output: s.output}
		l.Buffers = append(l.Buffers, bufs[id])
	}
	for step, k := range order {
		l.Order = append(l.Order, n.nodes[k])
		if len(n.bodies) > 0 && n.bodies[k] != nil {
			l.bodies[n.nodes[k]] = n.bodies[k]
		}
		for _, id := range n.defs[k] {
			s := &n.stores[id]
			from := r.took[id]
			if from >= 0 && n.stores[from].given {
				l.State = append(l.State, Pair{n.stores[from].values[0], s.values[0]})
				continue
			}
			if from >= 0 {
				l.InPlace = append(l.InPlace, Pair{n.operandIn(k, from), s.values[0]})
				bufs[id] = bufs[from]
				if bufs[id] == nil {
					continue
				}
			} else {
				bufs[id] = &Buffer{Size: s.size, Bytes: s.bytes, First: step, Category: categoryOf(s.values[0])}
				l.Buffers = append(l.Buffers, bufs[id])
			}
			b := bufs[id]
			b.Last = int(r.last[id])
			b.Output = b.Output || s.output
			b.Values = append(b.Values, s.values...)
		}
		if n.space[k] > 0 {
			l.Buffers = append(l.Buffers, &Buffer{Node: n.nodes[k], Size: graph.Known(n.space[k]), Bytes: n.space[k], First: step, Last: step, Category: Workspace})
		}
	}
	for _, b := range l.Buffers {
		for _, v := range b.Values {
			l.Of[v] = b
		}
	}
	n.sortValues(l, order)
	return l
}

// sortValues puts the values of each buffer in order of definition.
func (n *net) sortValues(l *Live, order []int32) {
	step := make(map[*graph.Node]int, len(order)) // 0 for inputs of bodies too
	for i, k := range l.Order {
		step[k] = i
	}
	for _, b := range l.Buffers {
		slices.SortStableFunc(b.Values, func(v, w *graph.Value) int { return step[v.Def] - step[w.Def] })
	}
}

// operandIn returns the operand of node k that lies in the storage.
func (n *net) operandIn(k, id int32) *graph.Value {
	for _, v := range overwritable(n.nodes[k]) {
		if at, ok := n.of[v]; ok && at == id {
			return v
		}
	}
	return n.stores[id].values[0]
}
