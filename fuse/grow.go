package fuse

import (
	"cmp"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// planner divides one graph into clusters.
type planner struct {
	*facts
	machine Machine
	part    *partition
	opt     *Options
	only    phase                    // what grows: this phase, or any
	behind  bool                     // nothing grows in front of products
	refused map[[2]*graph.Node]error // last reason against a merge, by the first nodes of the two groups
	homes   map[*graph.Node][]int    // kernels that compute parts of a node, nil if the compiler was not asked
}

// phase tells parts of a training graph apart that are not mixed: forward values are wanted by who runs the forward part
// alone, and clusters of the two directions are to know each other.
type phase uint8

const (
	anyPhase phase = iota
	forwardPhase
	backwardPhase
	optimizerPhase
)

func (p *planner) phase(n *graph.Node) phase {
	switch n.Meta.Get(graph.MetaRole) {
	case graph.RoleBackward, graph.RoleRecompute:
		return backwardPhase
	case graph.RoleOptimizer:
		return optimizerPhase
	case graph.RoleLoss:
		return anyPhase
	}
	if p.isIndex(n) {
		return anyPhase
	}
	return forwardPhase
}

// phaseOf returns the phase of a group's nodes; the loss and arithmetic on shapes go with any.
func (p *planner) phaseOf(q *group) phase {
	for _, n := range q.nodes {
		if f := p.phase(n); f != anyPhase {
			return f
		}
	}
	return anyPhase
}

func (p *planner) mixes(a, b *group) bool {
	x, y := p.phaseOf(a), p.phaseOf(b)
	return x == y || x == anyPhase || y == anyPhase
}

// candidate is two groups that could become one.
type candidate struct {
	a, b *group
	gain float64
}

// plan finds the clusters: first those of the forward part, so that each can get its gradient as a cluster.
func (p *planner) plan() {
	for _, r := range forwardRules() {
		r.find(p)
	}
	p.only = forwardPhase
	p.growAll()
	for _, r := range backwardRules() {
		r.find(p)
	}
	p.only = anyPhase
	p.growAll()
}

// growAll lets groups grow behind what they read first, then in front of products: what follows a product shares its results'
// place, what goes into one may be computed once per tile.
func (p *planner) growAll() {
	p.behind = true
	p.grow(false)
	p.behind = false
	p.grow(false)
	p.grow(true)
	p.grow(false)
	if p.shift() {
		p.grow(false)
	}
}

// grow merges groups pairwise, the pair that saves most first, until nothing fits.
func (p *planner) grow(siblings bool) {
	for {
		list := p.candidates(siblings)
		merged := 0
		for _, c := range list {
			if p.part.of[c.a.nodes[0]] != c.a || p.part.of[c.b.nodes[0]] != c.b {
				continue // one of them is another by now
			}
			if !p.try(c.a, c.b) {
				continue
			}
			merged++
		}
		if merged == 0 {
			return
		}
	}
}

// try merges two groups if that is right and pays.
func (p *planner) try(a, b *group) bool {
	x := a.with(b)
	if x.err == nil {
		x.err = p.against(a, b)
	}
	if x.err != nil {
		p.refuse(a, b, x.err)
		return false
	}
	rule := a.rule
	if rule == "" {
		rule = b.rule
	}
	p.part.merge([]*group{a, b}, rule)
	return true
}

// against returns why two groups must not be one, nil if they may. Merges of others take no such reason away.
func (p *planner) against(a, b *group) error {
	if !p.mixes(a, b) {
		return errPhases
	}
	if err := p.fits(a, b); err != nil {
		return err
	}
	if !p.part.convex([]*group{a, b}) {
		return errCycle
	}
	return nil
}

func (p *planner) refuse(a, b *group, err error) {
	if p.opt.Explain {
		p.refused[[2]*graph.Node{a.nodes[0], b.nodes[0]}] = err
	}
}

// candidates returns the pairs of groups of which one reads the other or, if siblings is set, both read a third value, with what
// a merge saves; the best first.
func (p *planner) candidates(siblings bool) []candidate {
	var list []candidate
	for _, a := range p.part.order {
		if a.fixed || p.only != anyPhase && p.phaseOf(a) != p.only {
			continue
		}
		near := p.part.readers(a)
		if siblings {
			near = p.siblings(a)
		}
		for _, b := range near {
			if p.behind && p.content(b.nodes).contract > 0 && p.content(a.nodes).contract == 0 && !p.weightless(a) {
				continue
			}
			if b.fixed || p.only != anyPhase && p.phaseOf(b) != p.only {
				continue
			}
			g := p.worth(a, b)
			if g <= 0 && !p.weightless(a) && !p.weightless(b) {
				continue
			}
			list = append(list, candidate{a, b, g})
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(y.gain, x.gain) })
	return list
}

// worth returns what a merge saves: seconds where the machine says how fast it is, else bytes.
func (p *planner) worth(a, b *group) float64 {
	x := a.with(b)
	if !x.counted {
		x.gain, x.counted = p.saves(a, b), true
	}
	return x.gain
}

func (p *planner) saves(a, b *group) float64 {
	both := slices.Concat(a.nodes, b.nodes)
	bytes := p.moves(a) + p.moves(b) - p.moved(both)
	if bytes <= 0 || !p.machine.timed() {
		return bytes
	}
	return p.cost(a.nodes).Seconds + p.cost(b.nodes).Seconds - p.cost(both).Seconds
}

// moves returns the bytes that a kernel for the group moves.
func (p *planner) moves(q *group) float64 {
	if !q.counted {
		q.bytes, q.counted = p.moved(q.nodes), true
	}
	return q.bytes
}

// weightless reports whether a group moves nothing itself: arithmetic on shapes, and views. To merge it saves no bytes, but a
// launch.
func (p *planner) weightless(q *group) bool {
	return !slices.ContainsFunc(q.nodes, func(n *graph.Node) bool { return !p.isIndex(n) && !p.free(n) })
}

// siblings returns the groups behind a that read a value which a reads too.
func (p *planner) siblings(a *group) []*group {
	var out []*group
	seen := map[*group]bool{a: true}
	for _, n := range a.nodes {
		if p.free(n) {
			continue
		}
		for _, v := range n.In {
			if v == nil || p.inside(v) || v.Def == nil && v.Init != nil {
				continue
			}
			for _, u := range v.Uses() {
				if u.Node == nil || p.part.of[u.Node] == nil {
					continue
				}
				if b := p.part.of[u.Node]; !seen[b] && b.pos > a.pos && !p.free(u.Node) {
					seen[b] = true
					out = append(out, b)
				}
			}
		}
	}
	slices.SortFunc(out, func(x, y *group) int { return x.pos - y.pos })
	return out
}

// isolate marks the groups that take part in no cluster.
func (p *planner) isolate() {
	for _, q := range p.part.order {
		n := q.nodes[0]
		q.fixed = p.kind(n) == op.KindConstant || p.fusible(n) != ""
	}
}
