package onnxgo

import (
	"fmt"

	"github.com/owulveryck/onnx-go"
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"gonum.org/v1/gonum/graph/simple"
	"gorgonia.org/tensor"
)

// A Backend records what onnx-go's decoder tells a backend. It implements onnx.Backend.
type Backend struct {
	values  []*value // by id
	edges   []gonum.WeightedEdge
	pending int // edges from here on belong to the next operation
	ops     []operation
	noData  bool
}

var _ onnx.Backend = (*Backend)(nil)

// NewBackend returns an empty backend. It takes one model.
func NewBackend() *Backend { return &Backend{} }

// A value is what onnx-go calls a node. Several may have the same name: the decoder makes one for each
// declaration.
type value struct {
	id      int64
	name    string
	tensors []tensor.Tensor // as they were set: a declared type, data, or both in this order
}

// ID implements gonum's graph.Node.
func (v *value) ID() int64 { return v.id }

// SetName implements onnx.Namer.
func (v *value) SetName(name string) { v.name = name }

// GetName implements onnx.Namer.
func (v *value) GetName() string { return v.name }

// A carrier is a value that takes tensors. The decoder fails at types that its tensor library does not
// have, but only if there is somebody to take them.
type carrier struct{ *value }

// SetTensor implements onnx.DataCarrier.
func (c carrier) SetTensor(t tensor.Tensor) error {
	c.tensors = append(c.tensors, t)
	return nil
}

// GetTensor implements onnx.DataCarrier.
func (c carrier) GetTensor() tensor.Tensor {
	if len(c.tensors) == 0 {
		return nil
	}
	return c.tensors[len(c.tensors)-1]
}

// An operation is one node of the model.
type operation struct {
	op       string
	attrs    map[string]any
	operands []*value
	results  []*value
}

// NewNode returns a value; it is the backend's from now on, whether or not it is added.
func (b *Backend) NewNode() gonum.Node {
	v := &value{id: int64(len(b.values))}
	b.values = append(b.values, v)
	if b.noData {
		return v
	}
	return carrier{v}
}

// AddNode does nothing, see NewNode.
func (b *Backend) AddNode(gonum.Node) {}

// NewWeightedEdge returns an edge from a result to an operand of its operation; the weight is the
// operand's position.
func (b *Backend) NewWeightedEdge(from, to gonum.Node, weight float64) gonum.WeightedEdge {
	return simple.WeightedEdge{F: from, T: to, W: weight}
}

// SetWeightedEdge records e. ErrUnlike in gonum's own graphs, edges between the same two nodes are kept
// apart, so an operand that is read twice is there twice.
func (b *Backend) SetWeightedEdge(e gonum.WeightedEdge) { b.edges = append(b.edges, e) }

// ApplyOperation records an operation with the given results. The decoder has set its edges just
// before: for each result the operands in order.
func (b *Backend) ApplyOperation(op onnx.Operation, results ...gonum.Node) error {
	o := operation{op: op.Name, attrs: op.Attributes}
	for _, r := range results {
		v, err := b.value(r)
		if err != nil {
			return err
		}
		o.results = append(o.results, v)
	}
	for i, e := range b.edges[b.pending:] {
		if e.Weight() != float64(i) {
			break // the operands once more, for the second result
		}
		v, err := b.value(e.To())
		if err != nil {
			return err
		}
		o.operands = append(o.operands, v)
	}
	b.pending = len(b.edges)
	b.ops = append(b.ops, o)
	return nil
}

func (b *Backend) value(n gonum.Node) (*value, error) {
	if n != nil && n.ID() >= 0 && n.ID() < int64(len(b.values)) {
		return b.values[n.ID()], nil
	}
	return nil, fmt.Errorf("node %v is not of this backend", n)
}

// Node returns the value with that id, nil without one.
func (b *Backend) Node(id int64) gonum.Node {
	if id < 0 || id >= int64(len(b.values)) {
		return nil
	}
	return b.node(b.values[id])
}

func (b *Backend) node(v *value) gonum.Node {
	if b.noData {
		return v
	}
	return carrier{v}
}

// Nodes returns all values.
func (b *Backend) Nodes() gonum.Nodes {
	list := make([]gonum.Node, len(b.values))
	for i, v := range b.values {
		list[i] = b.node(v)
	}
	return iterator.NewOrderedNodes(list)
}

// From returns the operands of the operation that defines a value.
func (b *Backend) From(id int64) gonum.Nodes {
	return b.neighbours(func(e gonum.Edge) (gonum.Node, bool) { return e.To(), e.From().ID() == id })
}

// To returns the results of the operations that read a value.
func (b *Backend) To(id int64) gonum.Nodes {
	return b.neighbours(func(e gonum.Edge) (gonum.Node, bool) { return e.From(), e.To().ID() == id })
}

func (b *Backend) neighbours(f func(gonum.Edge) (gonum.Node, bool)) gonum.Nodes {
	var list []gonum.Node
	seen := map[int64]bool{}
	for _, e := range b.edges {
		if n, ok := f(e); ok && !seen[n.ID()] {
			seen[n.ID()] = true
			list = append(list, n)
		}
	}
	return iterator.NewOrderedNodes(list)
}

// Edge returns an edge from u to v, nil without one.
func (b *Backend) Edge(u, v int64) gonum.Edge {
	for _, e := range b.edges {
		if e.From().ID() == u && e.To().ID() == v {
			return e
		}
	}
	return nil
}

// HasEdgeFromTo reports whether there is an edge from u to v.
func (b *Backend) HasEdgeFromTo(u, v int64) bool { return b.Edge(u, v) != nil }

// HasEdgeBetween reports whether there is an edge between x and y.
func (b *Backend) HasEdgeBetween(x, y int64) bool {
	return b.HasEdgeFromTo(x, y) || b.HasEdgeFromTo(y, x)
}
