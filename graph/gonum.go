package graph

import (
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
)

// View is a read-only view of a graph for gonum's algorithms: its nodes are the op nodes, with their IDs, and there is an
// edge from a node to each that reads one of its results, itself or in a subgraph. Several readings are one edge. The
// view is of the moment: it does not follow later edits. Nodes and edges come in graph order.
type View struct {
	nodes []gonum.Node
	byID  map[int64]OpNode
	from  map[int64][]gonum.Node // readers of a node
	to    map[int64][]gonum.Node // nodes that a node reads
	edges map[[2]int64]bool
}

// OpNode is a node of a [View].
type OpNode struct{ Node *Node }

// ID returns the node's ID, which is stable.
func (n OpNode) ID() int64 { return int64(n.Node.ID) }

// OpEdge is an edge of a [View], from a node to one that reads it.
type OpEdge struct{ F, T OpNode }

// From returns the node that is read.
func (e OpEdge) From() gonum.Node { return e.F }

// To returns the node that reads.
func (e OpEdge) To() gonum.Node { return e.T }

// ReversedEdge returns the edge the other way round, which is not in the view.
func (e OpEdge) ReversedEdge() gonum.Edge { return OpEdge{e.T, e.F} }

// View implements gonum's directed graphs.
var _ gonum.Directed = (*View)(nil)

// Gonum returns a view of g's own nodes; those of its subgraphs count as parts of the nodes that hold them.
func Gonum(g *Graph) *View {
	v := &View{byID: map[int64]OpNode{}, from: map[int64][]gonum.Node{}, to: map[int64][]gonum.Node{}, edges: map[[2]int64]bool{}}
	for _, n := range g.Nodes {
		v.nodes = append(v.nodes, OpNode{n})
		v.byID[int64(n.ID)] = OpNode{n}
	}
	for _, n := range g.Nodes {
		for _, list := range [][]*Value{n.In, n.Captures()} {
			for _, x := range list {
				if x != nil && x.Def != nil {
					v.edge(int64(x.Def.ID), int64(n.ID))
				}
			}
		}
	}
	return v
}

func (v *View) edge(from, to int64) {
	f, ok := v.byID[from]
	if !ok || v.edges[[2]int64{from, to}] {
		return
	}
	v.edges[[2]int64{from, to}] = true
	v.from[from] = append(v.from[from], v.byID[to])
	v.to[to] = append(v.to[to], f)
}

// Node returns the node with that ID, nil if g has none.
func (v *View) Node(id int64) gonum.Node {
	if n, ok := v.byID[id]; ok {
		return n
	}
	return nil
}

func ordered(nodes []gonum.Node) gonum.Nodes {
	if len(nodes) == 0 {
		return gonum.Empty
	}
	return iterator.NewOrderedNodes(nodes)
}

// Nodes returns all nodes.
func (v *View) Nodes() gonum.Nodes { return ordered(v.nodes) }

// From returns the nodes that read results of the node with that ID.
func (v *View) From(id int64) gonum.Nodes { return ordered(v.from[id]) }

// To returns the nodes whose results the node with that ID reads.
func (v *View) To(id int64) gonum.Nodes { return ordered(v.to[id]) }

// HasEdgeBetween reports whether one of the two nodes reads the other.
func (v *View) HasEdgeBetween(x, y int64) bool {
	return v.edges[[2]int64{x, y}] || v.edges[[2]int64{y, x}]
}

// HasEdgeFromTo reports whether node y reads node x.
func (v *View) HasEdgeFromTo(x, y int64) bool { return v.edges[[2]int64{x, y}] }

// Edge returns the edge from x to y, nil if y does not read x.
func (v *View) Edge(x, y int64) gonum.Edge {
	if !v.edges[[2]int64{x, y}] {
		return nil
	}
	return OpEdge{v.byID[x], v.byID[y]}
}
