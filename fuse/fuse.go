package fuse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Options says how to fuse. The zero value fuses all that pays and writes functions.
type Options struct {
	Machine Machine
	Dims    map[string]int64 // sizes of symbolic dimensions, for the cost model alone
	Flat    bool             // leave the nodes where they are and say in their metadata which cluster they are of
	Explain bool             // collect reasons against merges
	// Kernels, if it is not nil, are nodes of the main graph that the compiler for the machine makes a kernel of each: the clusters then are
	// those.
	Kernels [][]*graph.Node
	// Allow is asked before each cluster is made; nil allows all. After a refusal no more are made.
	Allow func(format string, args ...any) bool
}

// Cluster is nodes that one kernel computes.
type Cluster struct {
	ID     string
	Rule   string // what it is
	Doc    string
	Role   string // graph.Role of the nodes that have one
	From   string // the forward node that the first of them stems from
	Pair   []string
	Nodes  []*graph.Node // as they stood before
	Saved  graph.Dim     // bytes that need not be moved
	Time   [2]Cost       // of kernels for the nodes one by one, in all, and for the cluster; zero if the machine does not say
	Inside []string      // names of values that no longer cross the border
	Call   *graph.Node   // nil for flat ones

	body *body
}

// Refusal is a pair of neighbours that stay apart.
type Refusal struct {
	A, B string // labels of a node of either
	Why  string
}

// Result is what Run did.
type Result struct {
	Clusters []*Cluster
	Shared   int // functions
	Before   Traffic
	After    Traffic
	Nodes    int        // nodes before, without constants
	Kernels  int        // clusters and nodes left, without constants
	Seconds  [2]float64 // estimates before and after; zero if the machine does not say
	Refusals []Refusal  // where Options.Explain asks for them, in the order of the graph
	Left     []Refusal  // nodes in no cluster, with the reason in Why
}

var (
	errPhases  = errors.New("one is of the forward part, the other of the backward part or the optimizer")
	errKernels = errors.New("the machine's compiler makes a kernel of each")
	errCycle   = errors.New("a node outside would be needed by the cluster and need it")
)

// Run fuses the graphs of m, subgraphs included, which must be sorted. The bodies of the model's own functions are left alone.
func Run(m *graph.Model, opt Options) (*Result, error) {
	f := newFacts(m, opt.Dims)
	r := &Result{Before: Traffic{graph.Known(0), graph.Known(0)}, After: Traffic{graph.Known(0), graph.Known(0)}}
	var plans []*planner
	for g := range m.Graph.Graphs() {
		p := &planner{facts: f, machine: opt.Machine, part: newPartition(g), opt: &opt, refused: map[[2]*graph.Node]error{}}
		p.isolate()
		if opt.Kernels != nil && g == m.Graph {
			p.asked(opt.Kernels)
		} else {
			p.plan()
		}
		plans = append(plans, p)
	}
	e := newEmitter(m)
	for _, p := range plans {
		r.count(p)
		r.clusters(p)
	}
	r.limit(opt)
	pair(r.Clusters)
	r.emit(m, e, plans, opt)
	if opt.Explain {
		for _, p := range plans {
			p.explain(r)
		}
	}
	return r, nil
}

// count measures the graph before and after.
func (r *Result) count(p *planner) {
	var before, after [][]*graph.Node
	for _, q := range p.part.order {
		if p.kind(q.nodes[0]) == op.KindConstant {
			continue
		}
		r.Kernels++
		after = append(after, q.nodes)
		for _, n := range q.nodes {
			r.Nodes++
			before = append(before, []*graph.Node{n})
		}
	}
	if p.machine.timed() {
		for i, groups := range [][][]*graph.Node{before, after} {
			for _, nodes := range groups {
				r.Seconds[i] += p.cost(nodes).Seconds
			}
		}
	}
	add := func(t *Traffic, u Traffic) { t.Total, t.Between = t.Total.Add(u.Total), t.Between.Add(u.Between) }
	add(&r.Before, p.traffic(before))
	add(&r.After, p.traffic(after))
}

// clusters makes clusters of the groups of several nodes.
func (r *Result) clusters(p *planner) {
	names := newNamer(p).names()
	for _, q := range p.part.order {
		if len(q.nodes) < 2 {
			continue
		}
		b := newBody(p.facts, q.nodes)
		if b == nil {
			r.Kernels += len(q.nodes) - 1
			continue
		}
		c := &Cluster{ID: "c" + strconv.Itoa(len(r.Clusters)+1), Nodes: q.nodes, body: b}
		c.Rule, c.Doc = names[q][0], names[q][1]
		var single [][]*graph.Node
		for _, n := range q.nodes {
			single = append(single, []*graph.Node{n})
			if role := n.Meta.Get(graph.MetaRole); role != "" && (c.Role == "" || role == graph.RoleBackward) {
				c.Role = role
			}
			if c.From == "" {
				c.From = n.Meta.Get(graph.MetaFrom)
			}
		}
		var inside []*graph.Value
		c.Saved, inside = p.saved(single)
		if p.machine.timed() {
			for _, nodes := range single {
				c.Time[0].Seconds += p.cost(nodes).Seconds
			}
			c.Time[1] = p.cost(q.nodes)
		}
		for _, v := range inside {
			c.Inside = append(c.Inside, v.Name)
		}
		r.Clusters = append(r.Clusters, c)
	}
}

// limit drops the clusters from the first on that is not allowed.
func (r *Result) limit(opt Options) {
	if opt.Allow == nil {
		return
	}
	for i, c := range r.Clusters {
		if opt.Allow("%s %s", c.Rule, c.Nodes[0].Label()) {
			continue
		}
		for _, c := range r.Clusters[i:] {
			r.Kernels += len(c.Nodes) - 1
			r.After.Between = r.After.Between.Add(c.Saved)
		}
		r.Clusters = r.Clusters[:i]
		return
	}
}

// pair lets clusters of the backward part and those that their nodes stem from know each other.
func pair(list []*Cluster) {
	home := map[string]*Cluster{} // by name of a forward node
	for _, c := range list {
		for _, n := range c.Nodes {
			if role := n.Meta.Get(graph.MetaRole); n.Name != "" && (role == "" || role == graph.RoleForward || role == graph.RoleLoss) {
				home[n.Name] = c
			}
		}
	}
	for _, c := range list {
		for _, n := range c.Nodes {
			if n.Meta.Get(graph.MetaRole) != graph.RoleBackward {
				continue
			}
			d := home[n.Meta.Get(graph.MetaFrom)]
			if d == nil || d == c || slices.Contains(c.Pair, d.ID) {
				continue
			}
			c.Pair = append(c.Pair, d.ID)
			d.Pair = append(d.Pair, c.ID)
		}
	}
}

// emit writes the clusters.
func (r *Result) emit(m *graph.Model, e *emitter, plans []*planner, opt Options) {
	if len(r.Clusters) == 0 {
		return
	}
	for _, p := range plans {
		p.reorder()
	}
	before := len(m.Functions)
	if !opt.Flat {
		require(m)
	}
	var inside []use
	for _, c := range r.Clusters {
		if opt.Flat {
			for _, n := range c.Nodes {
				c.mark(&n.Meta)
			}
			continue
		}
		g := c.Nodes[0].Graph
		for _, v := range c.body.consts {
			inside = append(inside, use{v, g})
		}
		c.Call = e.call(g, c)
	}
	sweep(inside)
	if !opt.Flat {
		for _, p := range plans {
			e.notePlaces(p.part.g)
		}
	}
	r.Shared = len(m.Functions) - before
}

// reorder puts the nodes of the graph in the order of the groups.
func (p *planner) reorder() {
	nodes := make([]*graph.Node, 0, len(p.part.g.Nodes))
	for _, q := range p.part.order {
		nodes = append(nodes, q.nodes...)
	}
	p.part.g.Nodes = nodes
}

// explain collects why neighbours stay apart, and why nodes are in no cluster.
func (p *planner) explain(r *Result) {
	for _, q := range p.part.order {
		n := q.nodes[0]
		if q.fixed && p.kind(n) != op.KindConstant {
			r.Left = append(r.Left, Refusal{A: n.Label(), Why: p.fusible(n)})
		}
		for _, s := range p.part.readers(q) {
			err := p.refused[[2]*graph.Node{n, s.nodes[0]}]
			if err == nil {
				err = p.apart(q, s)
			}
			if err != nil {
				r.Refusals = append(r.Refusals, Refusal{n.Label(), s.nodes[0].Label(), err.Error()})
			}
		}
	}
}

// String says who stays apart and why.
func (r Refusal) String() string {
	if r.B == "" {
		return fmt.Sprintf("%s: %s", r.A, r.Why)
	}
	return fmt.Sprintf("%s | %s: %s", r.A, r.B, r.Why)
}
