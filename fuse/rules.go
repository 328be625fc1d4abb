package fuse

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// rule finds clusters that growing by pairs does not: of several matrix products, or of several passes over rows that a kernel
// keeps on the chip.
type rule struct {
	name string
	doc  string
	find func(p *planner)
}

// forwardRules are applied before forward nodes grow together.
func forwardRules() []rule {
	return []rule{
		{"update", "the next value of a parameter and of the optimizer's state for it", (*planner).updates},
		{"attention", "softmax(scale q k^T + mask) v, in whatever way scale, mask and softmax are written", (*planner).attention},
		{"gated", "f(x U) * (x V): SwiGLU, GeGLU and the like, which read x once", (*planner).gated},
		{"spelled", "activations and normalizations that are written with simpler operators", (*planner).spelled},
	}
}

// backwardRules are applied once the forward clusters are known.
func backwardRules() []rule {
	return []rule{
		{"loss", "a loss with its gradient", (*planner).losses},
		{"gradient", "the gradient of a forward cluster: what autodiff derived from its nodes", (*planner).gradients},
		{"softmax-gradient", "the gradient of attention where no metadata tells: both products around the softmax's gradient", (*planner).softmaxGradients},
		{"linear-gradient", "the two products that are the gradient of a product, where no metadata tells", (*planner).linearGradients},
	}
}

// seed merges the groups of the nodes, with those in between, if that is possible.
func (p *planner) seed(nodes []*graph.Node, rule string) bool {
	set := p.groups(nodes)
	if len(set) < 2 {
		return false
	}
	set = append(set, p.part.between(set)...)
	var all []*graph.Node
	for _, q := range set {
		if q.fixed || !p.mixes(set[0], q) {
			return false
		}
		all = append(all, q.nodes...)
	}
	if len(all) > p.machine.maxNodes() || len(all) > 2*len(nodes)+32 || !p.part.convex(set) {
		return false
	}
	slices.SortFunc(all, func(a, b *graph.Node) int { return p.part.index[a] - p.part.index[b] })
	in := map[*graph.Node]bool{}
	for _, n := range all {
		in[n] = true
	}
	if err := p.passes(all, in, true); err != nil {
		p.refuse(set[0], set[1], err)
		return false
	}
	p.part.merge(set, rule)
	return true
}

// groups returns the groups of the nodes, each once, in order.
func (p *planner) groups(nodes []*graph.Node) []*group {
	var set []*group
	for _, n := range nodes {
		if q := p.part.of[n]; q != nil && !slices.Contains(set, q) {
			set = append(set, q)
		}
	}
	slices.SortFunc(set, func(a, b *group) int { return a.pos - b.pos })
	return set
}

// maxRegion bounds what rules look at around a node.
const maxRegion = 96

// pointwise reports whether data can flow through n from one product to the next.
func (p *planner) pointwise(n *graph.Node) bool {
	switch p.kind(n) {
	case op.KindElementwise, op.KindView, op.KindInjective, op.KindReduce:
		return !p.isIndex(n) && p.fusible(n) == ""
	}
	return false
}

// flow returns what n's results reach through pointwise nodes: those nodes, and the products that they lead to.
func (p *planner) flow(n *graph.Node, next map[*graph.Node][]*graph.Node) (through, products []*graph.Node) {
	seen := map[*graph.Node]bool{n: true}
	queue := []*graph.Node{n}
	for len(queue) > 0 && len(through) < maxRegion {
		k := queue[0]
		queue = queue[1:]
		for _, s := range next[k] {
			if seen[s] {
				continue
			}
			seen[s] = true
			switch {
			case p.kind(s) == op.KindContract:
				products = append(products, s)
			case p.pointwise(s):
				through = append(through, s)
				queue = append(queue, s)
			}
		}
	}
	return through, products
}

// path returns the nodes through which data flow from product a to product b.
func (p *planner) path(a, b *graph.Node) []*graph.Node {
	down, _ := p.flow(a, p.part.succ)
	up, _ := p.flow(b, p.part.pred)
	var out []*graph.Node
	for _, n := range down {
		if slices.Contains(up, n) {
			out = append(out, n)
		}
	}
	return out
}

// attention seeds clusters of two products with a softmax between.
func (p *planner) attention() {
	for _, c := range slices.Clone(p.part.g.Nodes) {
		if p.kind(c) != op.KindContract || p.phase(c) == backwardPhase || p.part.of[c].rule != "" {
			continue
		}
		_, products := p.flow(c, p.part.succ)
		for _, d := range products {
			between := p.path(c, d)
			if len(between) > 0 && p.isSoftmax(between) && p.part.of[d].rule == "" && p.seed(append(between, c, d), "attention") {
				break
			}
		}
	}
}

// isSoftmax reports whether the only reductions among the nodes are those of one softmax.
func (p *planner) isSoftmax(nodes []*graph.Node) bool {
	whole, exp, sum := 0, 0, 0
	for _, n := range nodes {
		switch {
		case n.Op == "Softmax":
			whole++
		case n.Op == "Exp":
			exp++
		case n.Op == "ReduceSum":
			sum++
		case p.kind(n) == op.KindReduce && n.Op != "ReduceMax":
			return false
		}
	}
	return whole == 1 && exp == 0 && sum == 0 || whole == 0 && exp == 1 && sum == 1
}

// gated seeds clusters of two products of one operand whose results are multiplied element by element.
func (p *planner) gated() {
	for _, n := range slices.Clone(p.part.g.Nodes) {
		if !n.Is("Mul") || len(n.In) != 2 || p.phase(n) == backwardPhase || p.isIndex(n) {
			continue
		}
		a, pa := p.origin(n.In[0])
		b, pb := p.origin(n.In[1])
		if a == nil || b == nil || a == b || source(a.Operand(0)) != source(b.Operand(0)) || p.part.of[a].rule != "" || p.part.of[b].rule != "" {
			continue
		}
		p.seed(slices.Concat([]*graph.Node{a, b, n}, pa, pb), "gated")
	}
}

// origin returns the only product that v is computed from by element-wise nodes, with those.
func (p *planner) origin(v *graph.Value) (product *graph.Node, through []*graph.Node) {
	queue := []*graph.Value{v}
	for len(queue) > 0 {
		n := queue[0].Def
		queue = queue[1:]
		switch {
		case n == nil || p.kind(n) == op.KindConstant || slices.Contains(through, n):
		case p.kind(n) == op.KindContract && product != nil && product != n:
			return nil, nil
		case p.kind(n) == op.KindContract:
			product = n
		case p.kind(n) == op.KindElementwise && len(through) < 16:
			through = append(through, n)
			for _, x := range n.In {
				if x != nil {
					queue = append(queue, x)
				}
			}
		default:
			return nil, nil
		}
	}
	return product, through
}

// source returns what v is another shape or order of the axes of.
func source(v *graph.Value) *graph.Value {
	for v != nil && v.Def != nil {
		switch v.Def.Op {
		case "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast":
			if v.Def.Operand(0) == nil {
				return v
			}
			v = v.Def.In[0]
			continue
		}
		return v
	}
	return v
}

// spelled seeds clusters of functions that are written with simpler operators.
func (p *planner) spelled() {
	var finders []*rewrite.Finder
	for _, s := range slices.Concat(activations(), normalizations()) {
		if s.find != nil {
			finders = append(finders, s.find())
		}
	}
	for _, n := range slices.Clone(p.part.g.Nodes) {
		if p.isIndex(n) || p.phase(n) == backwardPhase {
			continue
		}
		for _, f := range finders {
			if m := f.At(n, nil, p.known); m != nil && p.seed(m.Nodes(), "spelled") {
				break
			}
		}
	}
}

// losses seeds the cluster of a loss and what was derived from it.
func (p *planner) losses() {
	var nodes []*graph.Node
	names := map[string]bool{}
	for _, n := range p.part.g.Nodes {
		if n.Meta.Get(graph.MetaRole) == graph.RoleLoss && p.kind(n) != op.KindConstant {
			nodes = append(nodes, n)
			names[n.Name] = true
			names[n.Meta.Get(graph.MetaFrom)] = true
		}
	}
	if len(nodes) == 0 {
		return
	}
	names[""] = true // the gradient of the loss itself stems from no node of the model
	for _, n := range p.part.g.Nodes {
		if p.phase(n) == backwardPhase && names[n.Meta.Get(graph.MetaFrom)] && p.kind(n) != op.KindConstant {
			nodes = append(nodes, n)
		}
	}
	p.gather(nodes, "loss")
}

// gradients seeds the gradient of each forward cluster.
func (p *planner) gradients() {
	stem := map[string][]*graph.Node{}
	for _, n := range p.part.g.Nodes {
		if p.phase(n) == backwardPhase && p.kind(n) != op.KindConstant {
			from := n.Meta.Get(graph.MetaFrom)
			stem[from] = append(stem[from], n)
		}
	}
	delete(stem, "")
	if len(stem) == 0 {
		return
	}
	for _, q := range slices.Clone(p.part.order) {
		var nodes []*graph.Node
		for _, n := range q.nodes {
			if p.phase(n) == forwardPhase && n.Name != "" {
				nodes = append(nodes, stem[n.Name]...)
			}
		}
		p.gather(nodes, "gradient")
	}
}

// gather makes one group of the nodes, or as few as are possible.
func (p *planner) gather(nodes []*graph.Node, rule string) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *graph.Node) bool { return p.part.of[n].fixed || p.part.of[n].rule != "" })
	if len(p.groups(nodes)) < 2 || p.seed(nodes, rule) {
		return
	}
	// Starting from each group in turn, take in what fits.
	for {
		set := p.groups(nodes)
		merged := false
		for i, a := range set {
			for _, b := range set[i+1:] {
				if p.part.of[a.nodes[0]] != a || p.part.of[b.nodes[0]] != b {
					continue
				}
				if p.touch(a, b) && p.seed(slices.Concat(a.nodes, b.nodes), rule) {
					merged = true
					a = p.part.of[a.nodes[0]]
				}
			}
		}
		if !merged {
			return
		}
	}
}

// touch reports whether one group reads the other or both read a computed value.
func (p *planner) touch(a, b *group) bool {
	return slices.Contains(p.part.readers(a), b) || slices.Contains(p.part.readers(b), a) || slices.Contains(p.siblings(a), b)
}

// softmaxGrad returns the ways to write p (g - sum p g), the gradient of a softmax p.
func softmaxGrad() *rewrite.Finder {
	g, y := func() *rewrite.Pattern { return rewrite.Any("g") }, func() *rewrite.Pattern { return rewrite.Any("p") }
	sum := func() *rewrite.Pattern { return rewrite.P("ReduceSum", times(g(), y())).More() }
	return rewrite.Find(nil,
		times(y(), rewrite.P("Sub", g(), sum())),
		rewrite.P("Sub", times(g(), y()), times(y(), sum())))
}

// softmaxGradients seeds the gradient of attention: the product before the softmax's gradient, those behind it, and the
// other product that reads the softmax's result and the same cotangent.
func (p *planner) softmaxGradients() {
	find := softmaxGrad()
	for _, n := range slices.Clone(p.part.g.Nodes) {
		if p.part.of[n].rule == "gradient" {
			continue
		}
		m := find.At(n, nil, p.known)
		if m == nil {
			continue
		}
		y, g := m.V("p"), m.V("g")
		if y.Def == nil || g.Def == nil {
			continue
		}
		first, through := p.origin(g)
		if first == nil {
			continue
		}
		nodes := slices.Concat(m.Nodes(), through, []*graph.Node{first})
		down, products := p.flow(n, p.part.succ)
		for _, d := range products {
			if up, _ := p.flow(d, p.part.pred); slices.Contains(up, n) {
				nodes = append(nodes, d)
				for _, k := range down {
					if slices.Contains(up, k) {
						nodes = append(nodes, k)
					}
				}
			}
		}
		_, readers := p.flow(y.Def, p.part.succ)
		for _, d := range readers {
			shared := slices.ContainsFunc(d.In, func(v *graph.Value) bool {
				return v != nil && slices.ContainsFunc(first.In, func(w *graph.Value) bool { return w != nil && source(v) == source(w) })
			})
			if d != first && shared && p.part.index[d] > p.part.index[y.Def] && !slices.Contains(nodes, d) && source(d.In[0]) == y {
				nodes = append(nodes, d)
			}
		}
		p.gather(nodes, "softmax-gradient")
	}
}

// linearGradients seeds pairs of products that share an operand g, of which one reads a parameter W and the other makes a
// tensor of W's size: g W^T and x^T g.
func (p *planner) linearGradients() {
	readers := map[*graph.Value][]*graph.Node{}
	var order []*graph.Value
	for _, n := range p.part.g.Nodes {
		if p.kind(n) != op.KindContract || p.part.of[n].rule != "" {
			continue
		}
		for _, v := range n.In {
			if v == nil {
				continue
			}
			s := source(v)
			if readers[s] == nil {
				order = append(order, s)
			}
			if s.Def != nil && !slices.Contains(readers[s], n) {
				readers[s] = append(readers[s], n)
			}
		}
	}
	for _, g := range order {
		for _, a := range readers[g] {
			for _, b := range readers[g] {
				w := parameter(a)
				if a == b || w == nil || parameter(b) != nil || p.part.of[a] == p.part.of[b] || p.weight(w) != p.weight(b.Out[0]) || p.weight(w) == 0 {
					continue
				}
				p.seed([]*graph.Node{a, b}, "linear-gradient")
			}
		}
	}
}

// parameter returns the initializer or input without which a product has no weights: the source of an operand that is
// given, not computed; nil if both are computed.
func parameter(n *graph.Node) *graph.Value {
	for _, v := range n.In[:min(2, len(n.In))] {
		if v != nil {
			if s := source(v); s.Def == nil && (s.Init != nil || s.IsInput()) {
				return s
			}
		}
	}
	return nil
}
