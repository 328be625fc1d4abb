package recompute

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/memplan"
	"gradtool/memplan/remat"
)

// Applied says what a plan did to a model.
type Applied struct {
	Again    int // nodes that recompute
	Barriers int // nodes that make them wait
}

// writer writes a sequence into the model.
type writer struct {
	*Problem
	g       *graph.Graph
	nodes   []*graph.Node                 // in the order of the plan
	version map[*graph.Value]*graph.Value // what stands for a unit's result now
	copies  map[viewOf]*graph.Value       // views of versions
	placed  map[*graph.Node]bool          // original nodes that stand in the order already
	later   []func()                      // changes of original nodes
	barrier *barrier
	made    Applied
}

// stretches is into how many parts the memory at the peak is divided: nodes that compute as much may change places.
const stretches = 20

// bytes returns the size of what n computes that takes memory.
func (w *writer) bytes(n *graph.Node) (sum int64) {
	for _, v := range n.Out {
		if v == nil || w.viewed(v) != nil || memplan.Constant(v) {
			continue
		}
		if b, ok := memplan.SizeOf(v.Type).Int(); ok {
			sum += b
		}
	}
	return sum
}

// viewOf is a view applied to a version of what it views.
type viewOf struct{ view, of *graph.Value }

// Apply puts the nodes of the model in the order of the sequence and adds a copy of a node for each time that it is computed
// again; every reader reads the latest computation in front of it. Copies have the role "recompute" and name the node that
// they stem from. What they read of others goes through a barrier of the given kind.
func (p *Problem) Apply(sequence []int32, kind Barrier) (Applied, error) {
	w := &writer{Problem: p, g: p.Model.Graph, version: map[*graph.Value]*graph.Value{}, copies: map[viewOf]*graph.Value{},
		placed: map[*graph.Node]bool{}}
	u, err := remat.Simulate(p.Graph, sequence)
	if err != nil {
		return w.made, err
	}
	live, err := memplan.Analyze(w.g, nil, memplan.Options{})
	if err != nil {
		return w.made, err
	}
	w.barrier = newBarrier(w, kind, u.Peak)
	for _, n := range w.g.Nodes {
		if len(n.Out) > 0 && n.Out[0] != nil && memplan.Constant(n.Out[0]) {
			w.place(n, nil)
		}
	}
	w.barrier.veil(live.State)
	for k := 0; k < len(sequence); {
		units := sequence[k : k+p.together(sequence, k)]
		k += len(units)
		n := p.Nodes[units[0]]
		switch {
		case n == nil:
		case !w.placed[n]:
			w.leave(n, units)
			if err := w.first(n); err != nil {
				return w.made, err
			}
		default:
			if err := w.again(n, units); err != nil {
				return w.made, err
			}
		}
	}
	for _, v := range w.g.Outputs {
		got, err := w.now(v)
		if err == nil && got != v && v.Def != nil {
			err = errors.New("a copy took its place")
		}
		if err != nil {
			return w.made, fmt.Errorf("output %q is not what the model computes: %w", v.Name, err)
		}
	}
	for _, n := range w.g.Nodes { // views that nobody reads, for instance
		if !w.placed[n] {
			if err := w.first(n); err != nil {
				return w.made, err
			}
		}
	}
	for _, f := range w.later {
		f()
	}
	w.g.Nodes = w.nodes
	return w.made, nil
}

// place appends a node, which reads the given values, to the order.
func (w *writer) place(n *graph.Node, reads []*graph.Value) {
	w.placed[n] = true
	w.nodes = append(w.nodes, n)
	w.barrier.saw(n, reads)
}

// rewire makes an original node read what stands for its operands. That waits for the end, because copies are made of what the
// node read at first.
func (w *writer) rewire(n *graph.Node, values map[*graph.Value]*graph.Value) (reads []*graph.Value) {
	ops, captured := operands(n), n.Captures()
	for _, v := range ops {
		reads = append(reads, values[v])
	}
	w.later = append(w.later, func() {
		for i, v := range n.In {
			if v != nil && values[v] != v {
				n.SetIn(i, values[v])
			}
		}
		for _, v := range captured {
			if values[v] != v {
				recapture(n, v, values[v])
			}
		}
	})
	return reads
}

// first places an original node, and in front of it the views that it reads.
func (w *writer) first(n *graph.Node) error {
	values, err := w.values(n)
	if err != nil {
		return err
	}
	w.barrier.wait(n, values, false)
	w.place(n, w.rewire(n, values))
	return nil
}

// values returns what stands for the operands of n.
func (w *writer) values(n *graph.Node) (map[*graph.Value]*graph.Value, error) {
	values := map[*graph.Value]*graph.Value{}
	for _, v := range operands(n) {
		x, err := w.now(v)
		if err != nil {
			return nil, err
		}
		values[v] = x
	}
	return values, nil
}

// recapture makes the subgraphs of n read x in place of v.
func recapture(n *graph.Node, v, x *graph.Value) {
	for _, sub := range n.Subgraphs() {
		for g := range sub.Graphs() {
			for _, m := range g.Nodes {
				for i, u := range m.In {
					if u == v {
						m.SetIn(i, x)
					}
				}
			}
			for i, u := range g.Outputs {
				if u == v {
					outs := append([]*graph.Value{}, g.Outputs...)
					outs[i] = x
					g.SetOutputs(outs...)
				}
			}
		}
	}
}

// now returns what stands for v at this place in the order: the latest computation of it, and of views one of that.
func (w *writer) now(v *graph.Value) (*graph.Value, error) {
	n := v.Def
	if x := w.version[v]; x != nil && n == nil {
		return x, nil
	}
	if n == nil || v.Graph != w.g || len(n.Out) > 0 && n.Out[0] != nil && memplan.Constant(n.Out[0]) {
		return v, nil
	}
	if w.isUnit(n) {
		if x := w.version[v]; x != nil {
			return x, nil
		}
		if !w.placed[n] {
			return nil, fmt.Errorf("node %s is read before the plan computes it", n.Label())
		}
		return v, nil
	}
	x, err := w.now(n.In[0])
	if err != nil {
		return nil, err
	}
	key := viewOf{v, x}
	if y := w.copies[key]; y != nil {
		return y, nil
	}
	if !w.placed[n] {
		w.copies[key] = v
		return v, w.view(n)
	}
	values := map[*graph.Value]*graph.Value{n.In[0]: x}
	for _, u := range n.In[1:] {
		if u == nil {
			continue
		}
		if values[u], err = w.now(u); err != nil {
			return nil, err
		}
	}
	k, err := w.clone(n, values, nil)
	if err != nil {
		return nil, err
	}
	w.copies[key] = k.Out[v.Index]
	return k.Out[v.Index], nil
}

// view places an original view, behind what shapes it.
func (w *writer) view(n *graph.Node) error {
	values, err := w.values(n)
	if err != nil {
		return err
	}
	w.place(n, w.rewire(n, values))
	return nil
}

// clone appends a copy of n that reads values in place of n's operands.
func (w *writer) clone(n *graph.Node, values map[*graph.Value]*graph.Value, units []int32) (*graph.Node, error) {
	c := &graph.Cloner{To: w.Model, Values: values, Prefix: prefix, KeepTypes: true}
	k, err := c.Node(w.g, n)
	if err != nil {
		return nil, err
	}
	from := n.Name
	if n.Meta.Get(graph.MetaRole) == graph.RoleRecompute && n.Meta.Get(graph.MetaFrom) != "" {
		from = n.Meta.Get(graph.MetaFrom)
	} else if from == "" {
		from = n.Out[slices.IndexFunc(n.Out, func(v *graph.Value) bool { return v != nil })].Name
	}
	k.Meta.Set(graph.MetaRole, graph.RoleRecompute)
	k.Meta.Set(graph.MetaFrom, from)
	if len(units) == 1 && w.isTwinUnit(units[0]) {
		if w.of[n.Out[0]] == units[0] {
			k.Out = k.Out[:1]
		} else {
			w.barrier.unread[k.Out[0]] = true
		}
	}
	w.made.Again++
	w.nodes = append(w.nodes, k)
	w.placed[k] = true
	w.barrier.saw(k, operands(k))
	return k, nil
}

// prefix begins the names of what is added.
const prefix = "recompute/"

// again computes units of n once more.
func (w *writer) again(n *graph.Node, units []int32) error {
	values, err := w.values(n)
	if err != nil {
		return err
	}
	w.barrier.wait(n, values, true)
	k, err := w.clone(n, values, units)
	if err != nil {
		return err
	}
	for i, v := range k.Out {
		if v != nil && n.Out[i] != nil && slices.Contains(units, w.of[n.Out[i]]) {
			w.version[n.Out[i]] = v
		}
	}
	return nil
}

// leave notes which results of n nobody reads as only these of its units are computed; indices are left out.
func (w *writer) leave(n *graph.Node, units []int32) {
	if len(units) > 1 || !w.isTwinUnit(units[0]) {
		return
	}
	if w.of[n.Out[0]] != units[0] {
		w.barrier.unread[n.Out[0]] = true
		return
	}
	w.later = append(w.later, func() { n.Out = n.Out[:1] })
}
