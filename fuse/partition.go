package fuse

import (
	"slices"

	"gradtool/graph"
)

// group is a set of nodes of one graph: a cluster to be, or a node alone.
type group struct {
	nodes []*graph.Node // in the order of the graph
	pos   int           // in partition.order
	rule  string        // the rule that found it, "" if it grew
	fixed bool          // takes part in no cluster

	bytes   float64 // that it moves
	counted bool    // bytes is set

	pairs map[*group]*prospect // what is known of merges with groups that came behind
}

// prospect is what is known of a merge of two groups. Groups do not change: what comes of a merge or a split is another one. So it holds as long
// as both are there.
type prospect struct {
	gain    float64
	counted bool  // gain is set
	err     error // the reason against the merge, nil if none is known

	tail    []*graph.Node // what the second should have of the first, see bestTail
	shifted bool          // tail is set
}

// with returns what is known of a merge of q with r.
func (q *group) with(r *group) *prospect {
	if q.pairs == nil {
		q.pairs = map[*group]*prospect{}
	}
	x := q.pairs[r]
	if x == nil {
		x = &prospect{}
		q.pairs[r] = x
	}
	return x
}

// partition divides a graph's nodes into groups. The groups can be executed one after another in the order kept: no group
// depends on itself through others.
type partition struct {
	g     *graph.Graph
	order []*group
	of    map[*graph.Node]*group
	index map[*graph.Node]int // place in the graph
	succ  map[*graph.Node][]*graph.Node
	pred  map[*graph.Node][]*graph.Node
}

// newPartition puts each node into a group of its own. The graph must be sorted.
func newPartition(g *graph.Graph) *partition {
	p := &partition{g: g, of: map[*graph.Node]*group{}, index: map[*graph.Node]int{}, succ: map[*graph.Node][]*graph.Node{},
		pred: map[*graph.Node][]*graph.Node{}}
	for i, n := range g.Nodes {
		q := &group{nodes: []*graph.Node{n}, pos: i}
		p.order = append(p.order, q)
		p.of[n] = q
		p.index[n] = i
	}
	for _, n := range g.Nodes {
		for _, list := range [][]*graph.Value{n.In, n.Captures()} {
			for _, v := range list {
				if v != nil && v.Def != nil && v.Def.Graph == g && !slices.Contains(p.pred[n], v.Def) {
					p.pred[n] = append(p.pred[n], v.Def)
					p.succ[v.Def] = append(p.succ[v.Def], n)
				}
			}
		}
	}
	return p
}

// readers returns the groups other than q that read what q computes, in order.
func (p *partition) readers(q *group) []*group { return p.around(q, p.succ) }

func (p *partition) around(q *group, next map[*graph.Node][]*graph.Node) []*group {
	var out []*group
	seen := map[*group]bool{q: true}
	for _, n := range q.nodes {
		for _, m := range next[n] {
			if r := p.of[m]; !seen[r] {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b *group) int { return a.pos - b.pos })
	return out
}

// between returns the groups that depend on one of the set and that one of the set depends on: those without which the set
// is not convex. None is of the set.
func (p *partition) between(set []*group) []*group {
	in, after := p.span(set)
	if after == nil {
		return nil
	}
	needed := map[*group]bool{}
	lo, hi := bounds(set)
	var out []*group
	for i := hi; i >= lo; i-- {
		q := p.order[i]
		if !in[q] && !after[q] {
			continue
		}
		for _, n := range q.nodes {
			for _, m := range p.succ[n] {
				if r := p.of[m]; r != q && (in[r] || needed[r]) && after[q] && !in[q] {
					needed[q] = true
				}
			}
		}
		if needed[q] {
			out = append(out, q)
		}
	}
	slices.Reverse(out)
	return out
}

func bounds(set []*group) (lo, hi int) {
	lo, hi = set[0].pos, set[0].pos
	for _, q := range set {
		lo, hi = min(lo, q.pos), max(hi, q.pos)
	}
	return lo, hi
}

// span returns the set as a map, and the groups between its first and its last that depend on it.
func (p *partition) span(set []*group) (in, after map[*group]bool) {
	in, after = map[*group]bool{}, map[*group]bool{}
	for _, q := range set {
		in[q] = true
	}
	lo, hi := bounds(set)
	for _, q := range p.order[lo : hi+1] {
		if in[q] {
			continue
		}
	scan:
		for _, n := range q.nodes {
			for _, m := range p.pred[n] {
				if r := p.of[m]; r != q && (in[r] || after[r]) {
					after[q] = true
					break scan
				}
			}
		}
	}
	return in, after
}

// convex reports whether the set can become one group: no group outside it depends on it and is needed by it.
func (p *partition) convex(set []*group) bool {
	in, after := p.span(set)
	for _, q := range set {
		for _, n := range q.nodes {
			for _, m := range p.pred[n] {
				if r := p.of[m]; !in[r] && after[r] {
					return false
				}
			}
		}
	}
	return true
}

// merge makes one group of the set, which must be convex, and returns it. What depends on it comes behind it.
func (p *partition) merge(set []*group, rule string) *group {
	in, after := p.span(set)
	q := &group{rule: rule}
	for _, r := range set {
		q.nodes = append(q.nodes, r.nodes...)
	}
	slices.SortFunc(q.nodes, func(a, b *graph.Node) int { return p.index[a] - p.index[b] })
	q.nodes = slices.Compact(q.nodes)
	for _, n := range q.nodes {
		p.of[n] = q
	}
	lo, hi := bounds(set)
	var front, back []*group
	for _, r := range p.order[lo : hi+1] {
		switch {
		case in[r]:
		case after[r]:
			back = append(back, r)
		default:
			front = append(front, r)
		}
	}
	p.order = slices.Concat(p.order[:lo], front, []*group{q}, back, p.order[hi+1:])
	for i := lo; i < len(p.order); i++ {
		p.order[i].pos = i
	}
	return q
}

// split makes two groups of q: the tail, nodes that no other of q reads, behind the rest.
func (p *partition) split(q *group, tail []*graph.Node) (rest, t *group) {
	rest, t = &group{rule: q.rule}, &group{rule: q.rule}
	for _, n := range q.nodes {
		into := rest
		if slices.Contains(tail, n) {
			into = t
		}
		into.nodes = append(into.nodes, n)
		p.of[n] = into
	}
	p.order = slices.Concat(p.order[:q.pos], []*group{rest, t}, p.order[q.pos+1:])
	for i := q.pos; i < len(p.order); i++ {
		p.order[i].pos = i
	}
	return rest, t
}

// unsplit undoes the split of q, which must be the last change.
func (p *partition) unsplit(q, rest, tail *group) {
	for _, n := range q.nodes {
		p.of[n] = q
	}
	q.pos = rest.pos
	p.order = slices.Concat(p.order[:q.pos], []*group{q}, p.order[tail.pos+1:])
	for i := q.pos; i < len(p.order); i++ {
		p.order[i].pos = i
	}
}

// uncycle forgets that groups could not be one because of others in between: those may be apart now.
func (p *partition) uncycle() {
	for _, q := range p.order {
		for _, x := range q.pairs {
			if x.err == errCycle {
				x.err = nil
			}
		}
	}
}
