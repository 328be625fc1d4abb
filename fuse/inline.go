package fuse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// Inline puts the nodes of clusters back in the place of their calls, with the names, metadata and constants that they had,
// and returns how many calls it found. The functions, and what the model had to import for them, go. Functions of
// the domain "gradtool" that calls tell nothing about are left to [op.Inline]; clusters whose functions were edited since lose the
// names of their nodes.
func Inline(m *graph.Model) (int, error) { return inline(m, false) }

// Flatten is Inline, but nodes keep the marks of their cluster: its id and rule.
func Flatten(m *graph.Model) (int, error) { return inline(m, true) }

func inline(m *graph.Model, mark bool) (int, error) {
	calls := 0
	edited := map[*graph.Function]bool{}
	for g := range m.Graph.Graphs() {
		var r *restorer
		for _, n := range slices.Clone(g.Nodes) {
			f := m.Function(n.Domain, n.Op, n.Overload)
			if f == nil || f.Domain != Domain || n.Meta.Get(MetaNodes) == "" {
				continue
			}
			if _, hash, ok := keyOf(f); !ok || !strings.Contains(f.Name, "_"+hash) {
				edited[f] = true
				continue
			}
			if r == nil {
				r = newRestorer(m, g)
				r.mark = mark
			}
			if err := r.expand(n, f); err != nil {
				return calls, fmt.Errorf("node %s: %w", n.Label(), err)
			}
			calls++
		}
		if r != nil {
			r.reorder()
		}
	}
	if len(edited) > 0 {
		for n := range m.Graph.AllNodes() {
			if edited[m.Function(n.Domain, n.Op, n.Overload)] {
				calls++
			}
		}
		if err := op.Inline(m, func(f *graph.Function) bool { return !edited[f] }); err != nil {
			return calls, err
		}
	}
	if calls == 0 {
		return 0, nil
	}
	called := map[*graph.Function]bool{}
	note := func(g *graph.Graph) {
		for n := range g.AllNodes() {
			if f := m.Function(n.Domain, n.Op, n.Overload); f != nil {
				called[f] = true
			}
		}
	}
	note(m.Graph)
	for _, f := range m.Functions {
		note(f.Body)
	}
	m.Functions = slices.DeleteFunc(m.Functions, func(f *graph.Function) bool { return f.Domain == Domain && !called[f] })
	if slices.ContainsFunc(m.Functions, func(f *graph.Function) bool { return f.Domain == Domain }) {
		return calls, nil
	}
	if err := m.Graph.Sort(); err != nil {
		return calls, err
	}
	m.Opsets = slices.DeleteFunc(m.Opsets, func(o graph.Opset) bool { return o.Domain == Domain })
	if ir, err := strconv.ParseInt(m.Meta.Get(metaIR), 10, 64); err == nil {
		if ir > 0 && ir < m.IRVersion && len(m.Functions) == 0 {
			m.IRVersion = ir
			relist(m)
		}
		m.Meta.Delete(metaIR)
		m.Meta.Delete(metaInputs)
	}
	return calls, nil
}

// relist puts initializers back among the inputs.
func relist(m *graph.Model) {
	var list []listed
	if json.Unmarshal([]byte(m.Meta.Get(metaInputs)), &list) != nil {
		return
	}
	for _, l := range list {
		at := slices.IndexFunc(m.Graph.Inits, func(v *graph.Value) bool { return v.Name == l.Name && !v.IsInput() })
		if at >= 0 && l.At >= 0 && l.At <= len(m.Graph.Inputs) {
			m.Graph.Inputs = slices.Insert(m.Graph.Inputs, l.At, m.Graph.Inits[at])
		}
	}
}

// restorer puts nodes back into one graph.
type restorer struct {
	m      *graph.Model
	g      *graph.Graph
	consts map[string]*graph.Value // constants in sight, by name
	names  map[string]bool         // of values in sight, and in nested graphs
	mark   bool                    // nodes are marked with their cluster
	places map[*graph.Node]int     // that nodes had, from 1
}

func (r *restorer) expand(n *graph.Node, f *graph.Function) error {
	b := f.Body
	if len(n.In) > len(b.Inputs) || len(n.Out) > len(b.Outputs) || len(n.Attrs) > 0 || len(b.Inits) > 0 {
		return fmt.Errorf("the call does not fit function %s", f.Name)
	}
	list, err := records(n, len(b.Nodes))
	if err != nil {
		return err
	}
	values := map[*graph.Value]*graph.Value{}
	for i, v := range b.Inputs {
		values[v] = n.Operand(i)
	}
	results := map[*graph.Value]*graph.Value{}
	for i, v := range b.Outputs {
		if y := n.Result(i); y != nil {
			if results[v] != nil || v.Def == nil {
				return fmt.Errorf("result %d of function %s is no result of its own node", i, f.Name)
			}
			results[v] = y
		}
	}
	for i, k := range b.Nodes {
		if len(k.Subgraphs()) > 0 || len(list[i].Out) != len(k.Out) {
			return fmt.Errorf("%s: entry %d does not fit", MetaNodes, i)
		}
		if list[i].Const != "" {
			c, err := r.constant(n, k, list[i])
			if err != nil {
				return err
			}
			values[k.Out[0]] = c
			continue
		}
		r.node(n, k, list[i], values, results)
	}
	r.g.Remove(n)
	return nil
}

// reorder gives nodes the places that they had. Those that were in no cluster take the places left, in the order in which they stand. Where an
// edit has made that order wrong, sorting mends it.
func (r *restorer) reorder() {
	for _, n := range r.g.Nodes {
		if at, err := strconv.Atoi(n.Meta.Get(metaPlace)); err == nil && r.places[n] == 0 {
			r.places[n] = at
		}
		n.Meta.Delete(metaPlace)
	}
	taken := map[int]bool{}
	for _, n := range r.g.Nodes {
		taken[r.places[n]] = true
	}
	at := map[*graph.Node]int{}
	next := 1
	for _, n := range r.g.Nodes {
		if at[n] = r.places[n]; at[n] > 0 {
			continue
		}
		for taken[next] {
			next++
		}
		at[n] = next
		next++
	}
	slices.SortStableFunc(r.g.Nodes, func(a, b *graph.Node) int { return cmp.Compare(at[a], at[b]) })
}

// node puts a copy of k, a node of the body, in front of the call.
func (r *restorer) node(call, k *graph.Node, rec record, values, results map[*graph.Value]*graph.Value) {
	in := make([]*graph.Value, len(k.In))
	for i, v := range k.In {
		if v != nil {
			in[i] = values[v]
		}
	}
	c := r.g.NewNode(k.Domain, k.Op, in, make([]string, len(k.Out)))
	c.Name, c.Doc, c.Meta, c.Overload = rec.Name, rec.Doc, rec.meta(), k.Overload
	r.places[c] = rec.At
	if r.mark {
		c.Meta.Set(MetaCluster, call.Meta.Get(MetaCluster))
		c.Meta.Set(MetaRule, call.Meta.Get(MetaRule))
	}
	for _, a := range k.Attrs {
		c.SetAttr(bare(a))
	}
	for i, v := range k.Out {
		if v == nil {
			continue
		}
		if y := results[v]; y != nil {
			call.Out[slices.Index(call.Out, y)] = nil
			c.Out[i], y.Def, y.Index = y, c, i
			values[v] = y
			continue
		}
		name := rec.Out[i]
		if name == "" {
			name = k.Op
		}
		values[v] = c.DefineOut(i, r.name(name))
	}
	r.g.InsertBefore(call, c)
}

// constant returns the value that the constant k of a body was: the one of that name if it is still there, else a new one.
func (r *restorer) constant(call, k *graph.Node, rec record) (*graph.Value, error) {
	if !k.Is("Constant") || len(k.Out) != 1 || k.Out[0] == nil || len(k.Attrs) != 1 {
		return nil, fmt.Errorf("%s: a constant is a %s", MetaNodes, k.Op)
	}
	name, attr := rec.Out[0], k.Attrs[0]
	if v := r.consts[name]; v != nil && holds(v, attr) {
		if v.Def != nil && v.Def.Graph == r.g {
			r.places[v.Def] = rec.At
		}
		return v, nil
	}
	if name == "" {
		name = "Constant"
	}
	if rec.Const == isInit && attr.T != nil {
		v := r.g.AddInit(r.name(name), attr.T)
		v.Doc = rec.Doc
		r.consts[name] = v
		return v, nil
	}
	if attr = bare(attr); attr.T != nil && attr.T.Name != rec.Label {
		t := *attr.T
		t.Name, t.Src = rec.Label, nil
		attr.T = &t
	}
	c := r.g.NewNode(k.Domain, k.Op, nil, []string{r.name(name)}, attr)
	c.Name, c.Doc, c.Meta = rec.Name, rec.Doc, rec.meta()
	r.places[c] = rec.At
	r.g.InsertBefore(call, c)
	r.consts[name] = c.Out[0]
	return c.Out[0], nil
}

// newRestorer finds the names that nodes of the graph must not use, and the constants that they can read.
func newRestorer(m *graph.Model, g *graph.Graph) *restorer {
	r := &restorer{m: m, g: g, consts: map[string]*graph.Value{}, names: map[string]bool{}, places: map[*graph.Node]int{}}
	for h := range g.Graphs() {
		for v := range h.Values() {
			r.names[v.Name] = true
		}
	}
	for h := g; ; h = h.Parent.Graph {
		for v := range h.Values() {
			r.names[v.Name] = true
			if r.consts[v.Name] == nil && (v.IsConst() || v.Def != nil && v.Def.Is("Constant")) {
				r.consts[v.Name] = v
			}
		}
		if h.Parent == nil {
			return r
		}
	}
}

// name returns the name that a value had, or one like it if that is taken.
func (r *restorer) name(name string) string {
	if r.names[name] {
		return r.m.Fresh(name)
	}
	r.names[name] = true
	return name
}

// holds reports whether the constant v has the value of the attribute.
func holds(v *graph.Value, a *graph.Attr) bool {
	if v.Init != nil {
		x, ok := rewrite.TensorKey(v.Init)
		y, ok2 := rewrite.TensorKey(a.T)
		return ok && ok2 && x == y
	}
	probe := graph.Node{Op: "Constant", Attrs: []*graph.Attr{a}, Out: v.Def.Out}
	none := func(*graph.Value) string { return "" }
	x, ok := rewrite.Key(v.Def, none)
	y, ok2 := rewrite.Key(&probe, none)
	return ok && ok2 && x == y
}
