// Package interp evaluates graphs with the kernels of the operator table.
//
// It is the reference that everything else is compared with: results are computed operator by
// operator in graph order, in the value types of the model or, in float64 mode, with every floating-point type held
// as float64, which is what finite differences need. A value is dropped after its last use.
package interp

import (
	"errors"
	"fmt"
	"hash/fnv"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Options selects how a graph is evaluated.
type Options struct {
	Wide bool   // float64 mode: all float types are held and computed in float64
	Seed uint64 // for random operators without a seed attribute
	// Watch, if set, is called with each value of the main graph as it is computed.
	Watch func(v *graph.Value, a *op.Array)
	// Count, if set, is called with each node before it is evaluated, as often as it is, in subgraphs too.
	Count func(n *graph.Node)
	// Memory, if set, holds values in place of the machine.
	Memory Memory
}

// Memory is where values are kept, the results of nodes and the inputs of subgraphs, from when they are computed to the last node that
// reads them.
type Memory interface {
	// Begin is called before a node runs.
	Begin(n *graph.Node) error
	// Put takes a value that was computed; held is false if the machine must keep it.
	Put(v *graph.Value, a *op.Array) (held bool, err error)
	// Get returns a value that Put has taken.
	Get(v *graph.Value) (*op.Array, error)
	// Drop says that a value that Put has taken is not read any more.
	Drop(v *graph.Value)
}

// Machine evaluates one model, many times.
type Machine struct {
	model *graph.Model
	opt   Options
	inits map[*graph.Value]*op.Array
}

// New returns a machine for m, whose graphs must be sorted and in canonical form. It fails if an operator of the main
// graph cannot be evaluated; all such nodes are listed.
func New(m *graph.Model, opt Options) (*Machine, error) {
	var errs []error
	for n := range m.Graph.AllNodes() {
		if d := op.Of(n); d == nil || d.Eval == nil {
			errs = append(errs, fmt.Errorf("node %s: the operator cannot be evaluated", n.Label()))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Machine{model: m, opt: opt, inits: map[*graph.Value]*op.Array{}}, nil
}

// Run evaluates the main graph. Inputs are given in graph order; nil takes the initializer that is the
// input's default. The results are those of the graph outputs.
func (m *Machine) Run(in []*op.Array) ([]*op.Array, error) {
	g := m.model.Graph
	if len(in) != len(g.Inputs) {
		return nil, fmt.Errorf("%d inputs given, the model has %d", len(in), len(g.Inputs))
	}
	env := map[*graph.Value]*op.Array{}
	for i, v := range g.Inputs {
		a := in[i]
		if a == nil && v.Init == nil {
			return nil, fmt.Errorf("input %q is missing", v.Name)
		}
		if a == nil {
			continue
		}
		if err := fits(v, a); err != nil {
			return nil, err
		}
		env[v] = m.widen(a)
	}
	return m.graph(g, env)
}

// widen brings an input to the storage that the mode demands.
func (m *Machine) widen(a *op.Array) *op.Array {
	if !m.opt.Wide || a.F32 == nil {
		return a
	}
	w := op.NewArray(a.Elem, a.Shape, true)
	for i, x := range a.F32 {
		w.F64[i] = float64(x)
	}
	return w
}

// fits reports whether a may be fed to input v: rank, known dimensions and element type.
func fits(v *graph.Value, a *op.Array) error {
	t := v.Type
	if !t.IsTensor() || !a.IsTensor() {
		return nil
	}
	if t.Elem != graph.Undefined && t.Elem != a.Elem {
		return fmt.Errorf("input %q is %s, got %s", v.Name, t, a.Type())
	}
	if t.Shape == nil {
		return nil
	}
	bad := len(t.Shape) != len(a.Shape)
	for i := 0; !bad && i < len(t.Shape); i++ {
		n, ok := t.Shape[i].Int()
		bad = ok && int(n) != a.Shape[i]
	}
	if bad {
		return fmt.Errorf("input %q is %s, got %s", v.Name, t, a.Type())
	}
	return nil
}

// graph evaluates g in an environment that holds its inputs and what it captures.
func (m *Machine) graph(g *graph.Graph, env map[*graph.Value]*op.Array) ([]*op.Array, error) {
	left := map[*graph.Value]int{} // uses to come, of values of this run of g
	own := func(v *graph.Value) bool { return v != nil && v.Graph == g && v.Init == nil }
	for _, n := range g.Nodes {
		for _, v := range reads(n) {
			if own(v) {
				left[v]++
			}
		}
	}
	for _, v := range g.Outputs {
		left[v]++
	}
	main := g == m.model.Graph
	memory := m.opt.Memory
	if memory != nil && !main {
		for _, v := range g.Inputs {
			if err := m.put(v, env); err != nil {
				return nil, err
			}
		}
	}
	drop := func(v *graph.Value) {
		if a, ok := env[v]; ok && a == nil {
			memory.Drop(v)
		}
		delete(env, v)
	}
	for _, n := range g.Nodes {
		if m.opt.Count != nil {
			m.opt.Count(n)
		}
		if memory != nil {
			if err := memory.Begin(n); err != nil {
				return nil, fmt.Errorf("node %s: %w", n.Label(), err)
			}
		}
		if err := m.node(n, env); err != nil {
			return nil, err
		}
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			if m.opt.Watch != nil && main {
				m.opt.Watch(v, env[v])
			}
			if memory != nil {
				if err := m.put(v, env); err != nil {
					return nil, fmt.Errorf("node %s: %w", n.Label(), err)
				}
			}
		}
		for _, v := range n.Out {
			if v != nil && left[v] == 0 {
				drop(v)
			}
		}
		for _, v := range reads(n) {
			if !own(v) {
				continue
			}
			if left[v]--; left[v] == 0 {
				drop(v)
			}
		}
	}
	out := make([]*op.Array, len(g.Outputs))
	for i, v := range g.Outputs {
		a, err := m.value(v, env)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	if memory != nil && !main { // the results are the node's from here on
		for _, v := range g.Outputs {
			if own(v) {
				drop(v)
			}
		}
	}
	return out, nil
}

// put offers a value to the memory.
func (m *Machine) put(v *graph.Value, env map[*graph.Value]*op.Array) error {
	if env[v] == nil {
		return nil // an omitted input of a subgraph
	}
	held, err := m.opt.Memory.Put(v, env[v])
	if err == nil && held {
		env[v] = nil // the memory has it
	}
	return err
}

// reads returns operands and captured values.
func reads(n *graph.Node) []*graph.Value {
	if c := n.Captures(); len(c) > 0 {
		return append(append([]*graph.Value{}, n.In...), c...)
	}
	return n.In
}

// value returns what v holds: computed, fed, or read from its initializer. A nil entry of env says that the memory has it.
func (m *Machine) value(v *graph.Value, env map[*graph.Value]*op.Array) (*op.Array, error) {
	if a, ok := env[v]; ok {
		if a == nil {
			return m.opt.Memory.Get(v)
		}
		return a, nil
	}
	if v.Init == nil {
		return nil, fmt.Errorf("value %q is read before it is defined", v.Name)
	}
	if a, ok := m.inits[v]; ok {
		return a, nil
	}
	a, err := op.FromTensor(v.Init, m.opt.Wide)
	if err != nil {
		return nil, fmt.Errorf("initializer %q: %w", v.Name, err)
	}
	m.inits[v] = a
	return a, nil
}

func (m *Machine) node(n *graph.Node, env map[*graph.Value]*op.Array) error {
	c := &op.EvalCtx{Node: n, In: make([]*op.Array, len(n.In)), Out: make([]*op.Array, len(n.Out)), Wide: m.opt.Wide, Seed: m.seed(n)}
	for i, v := range n.In {
		if v == nil {
			continue
		}
		a, err := m.value(v, env)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Label(), err)
		}
		c.In[i] = a
	}
	c.Run = func(g *graph.Graph, in []*op.Array) ([]*op.Array, error) {
		if len(in) != len(g.Inputs) {
			return nil, fmt.Errorf("subgraph %q takes %d inputs, got %d", g.Name, len(g.Inputs), len(in))
		}
		for i, v := range g.Inputs {
			env[v] = in[i]
		}
		return m.graph(g, env)
	}
	if err := c.Eval(op.Of(n)); err != nil {
		return fmt.Errorf("node %s: %w", n.Label(), err)
	}
	for i, v := range n.Out {
		if v == nil {
			continue
		}
		if c.Out[i] == nil {
			return fmt.Errorf("node %s: result %q was not computed", n.Label(), v.Name)
		}
		env[v] = c.Out[i]
	}
	return nil
}

// seed derives a node's own seed from the run's, so that two random nodes differ but runs repeat. The node is known by
// the name of its first result: a model draws the same numbers with and without its gradient.
func (m *Machine) seed(n *graph.Node) uint64 {
	name := ""
	for _, v := range n.Out {
		if v != nil {
			name = v.Name
			break
		}
	}
	h := fnv.New64a()
	fmt.Fprint(h, m.opt.Seed, "/", name)
	return h.Sum64()
}
