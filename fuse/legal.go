package fuse

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Machine is what the cost model knows of where clusters will run. The zero Machine has defaults.
type Machine struct {
	OnChip   int64 // bytes that a kernel can hold beside its streams; default 128 KiB
	MaxNodes int   // nodes of a cluster; default 256
	// How fast it is, for estimates of time; zeros: clusters are judged by the bytes that they save alone.
	Bandwidth float64 // bytes a second
	Speed     float64 // floating-point operations a second
	Launch    float64 // seconds that a kernel takes to begin
}

func (m Machine) onChip() float64 {
	if m.OnChip > 0 {
		return float64(m.OnChip)
	}
	return 128 << 10
}

func (m Machine) maxNodes() int {
	if m.MaxNodes > 0 {
		return m.MaxNodes
	}
	return 256
}

// Reasons against a merge that several places give.
var (
	errTwoProducts = errors.New("two matrix products: each sets the loop order of a kernel")
	errTooLarge    = errors.New("the cluster would be too large")
	errUpdate      = errors.New("the update of a parameter is a kernel of its own, so that others can share it")
)

// content counts what shapes the loops of a kernel.
type content struct{ contract, window, scatter int }

func (f *facts) content(nodes []*graph.Node) content {
	var c content
	for _, n := range nodes {
		switch f.kind(n) {
		case op.KindContract:
			c.contract++
		case op.KindWindow:
			c.window++
		case op.KindScatter:
			if !f.isIndex(n) {
				c.scatter++
			}
		}
	}
	return c
}

// fits returns why one kernel would not compute all nodes as well as several do, nil if it would: where a value is needed
// whole before its reader can begin, it has to leave the chip, and one kernel saves nothing. The nodes are in
// execution order. Groups that a rule has found keep what they hold; the check is of what comes together.
func (p *planner) fits(a, b *group) error {
	if a.fixed || b.fixed {
		return errors.New("a node that is in no cluster")
	}
	if len(a.nodes)+len(b.nodes) > p.machine.maxNodes() {
		return errTooLarge
	}
	if a.rule == "update" || b.rule == "update" {
		return errUpdate
	}
	x, y := p.content(a.nodes), p.content(b.nodes)
	if x.contract > 0 && y.contract > 0 {
		return errTwoProducts
	}
	if x.window > 0 && (y.contract > 0 || y.window > 0) || y.window > 0 && x.contract > 0 {
		return errors.New("a window needs its neighbours' results: they would be computed several times")
	}
	nodes := union(p.part, a, b)
	in := make(map[*graph.Node]bool, len(nodes))
	for _, n := range nodes {
		in[n] = true
	}
	owner := func(n *graph.Node) *group { return p.part.of[n] }
	for _, n := range nodes {
		for i, v := range n.In {
			if v == nil || v.Def == nil || !in[v.Def] || owner(v.Def) == owner(n) && owner(n).rule != "" {
				continue
			}
			if err := p.edge(v, n, i); err != nil {
				return err
			}
		}
	}
	return p.passes(nodes, in, false)
}

// edge returns why n must not read v, computed in the same kernel, as operand i.
func (p *planner) edge(v *graph.Value, n *graph.Node, i int) error {
	if p.isIndex(v.Def) || p.isIndex(n) || p.free(n) {
		return nil
	}
	switch p.kind(v.Def) {
	case op.KindScatter:
		return fmt.Errorf("%s is complete only when all of its elements are written", v.Def.Op)
	}
	switch {
	case i == 0 && (n.Op == "Gather" || n.Op == "GatherND"), p.kind(n) == op.KindScatter && i == 0 && !constantFill(v):
		return fmt.Errorf("%s reads elements of %q at places that another operand names", n.Op, v.Name)
	case n.Op == "Resize", n.Op == "ReverseSequence":
		return fmt.Errorf("%s reads elements of %q at other places", n.Op, v.Name)
	}
	return nil
}

// constantFill reports whether v is the same number everywhere, possibly under another shape.
func constantFill(v *graph.Value) bool {
	for v.Def != nil {
		switch v.Def.Op {
		case "ConstantOfShape", "Constant":
			return true
		case "Expand", "Reshape":
			v = v.Def.Operand(0)
			if v == nil {
				return false
			}
			continue
		}
		return false
	}
	return false
}

// passes checks reductions: what is reduced over rows that fit on the chip can be read again while it is there, other
// reductions are complete only at the end, so that nothing in the kernel can put their results beside the elements. With
// streams set products may follow on rows, as in attention, where rows are scaled as they come.
func (p *planner) passes(nodes []*graph.Node, in map[*graph.Node]bool, streams bool) error {
	after := map[*graph.Node]*graph.Node{} // the reduction that a node comes after, if it must be complete by then
	rows := map[*graph.Node]*graph.Node{}  // the row reduction that a node comes after
	product := map[*graph.Node]bool{}      // nodes that come after a matrix product
	for _, n := range nodes {
		kind := p.kind(n)
		if p.isIndex(n) {
			continue
		}
		var full, row *graph.Node
		behind := false
		for _, v := range n.In {
			if v == nil || v.Def == nil || !in[v.Def] {
				continue
			}
			if after[v.Def] != nil {
				full = after[v.Def]
			}
			if rows[v.Def] != nil {
				row = rows[v.Def]
			}
			behind = behind || product[v.Def] || p.kind(v.Def) == op.KindContract
		}
		blocks := kind == op.KindContract || kind == op.KindWindow || p.largest(n) > p.resultWeight(full)
		if full != nil && !p.free(n) && blocks && !p.together(full, n) {
			return fmt.Errorf("a second pass: %s needs the result of %s, complete only at the end", n.Label(), full.Label())
		}
		if row != nil && kind == op.KindContract && !streams && !p.together(row, n) {
			return fmt.Errorf("%s needs whole rows, finished by %s", n.Label(), row.Label())
		}
		after[n], rows[n], product[n] = full, row, behind
		if kind != op.KindReduce {
			continue
		}
		size, trailing := p.row(n)
		if x := n.Operand(0); (!trailing || size > p.machine.onChip()) && rereads(n) && x != nil && p.computed(x, in) && !p.together(x.Def, n) {
			return fmt.Errorf("a second pass: %s reads %q for its statistics and again for its result", n.Label(), x.Name)
		}
		switch {
		case !trailing || size > p.machine.onChip():
			after[n] = n
		case behind && size*minRows > p.machine.onChip() && !streams && p.part.of[n].rule == "":
			return fmt.Errorf("%s needs rows of %.0f bytes behind a matrix product: too few of them fit on the chip", n.Label(), size)
		default:
			rows[n] = n
		}
	}
	return nil
}

// rereads reports whether a reduction puts what it finds beside the elements that it was found from.
func rereads(n *graph.Node) bool {
	switch n.Op {
	case "Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
		"MeanVarianceNormalization", "LpNormalization", "BatchNormalization":
		return true
	}
	return false
}

// computed reports whether a node of the set, other than a view of what is given, defines v.
func (p *planner) computed(v *graph.Value, in map[*graph.Node]bool) bool {
	for v != nil && v.Def != nil && in[v.Def] {
		if p.kind(v.Def) != op.KindView {
			return true
		}
		v = v.Def.Operand(0)
	}
	return false
}

// minRows is how many rows of a matrix product must fit on the chip if they are to be reduced there.
const minRows = 16

// together reports whether a rule has put two nodes into one cluster already.
func (p *planner) together(a, b *graph.Node) bool {
	return p.part.of[a] == p.part.of[b] && p.part.of[a].rule != ""
}

// largest returns the size of the largest operand or result of n, which is what its loop runs over.
func (p *planner) largest(n *graph.Node) float64 {
	most := 0.0
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v != nil {
				most = max(most, p.weight(v))
			}
		}
	}
	return most
}

// resultWeight returns the size of the largest result of n, 0 without a node.
func (p *planner) resultWeight(n *graph.Node) float64 {
	if n == nil {
		return 0
	}
	most := 64.0 // scalars are all alike
	for _, v := range n.Out {
		if v != nil {
			most = max(most, p.weight(v))
		}
	}
	return most
}

// row returns how many bytes of its first operand a reduction needs for an element of the result, and whether they lie
// together: the reduced axes are the last ones.
func (p *planner) row(n *graph.Node) (size float64, trailing bool) {
	x := n.Operand(0)
	if x == nil {
		return 0, false
	}
	t := p.typ(x)
	if t.Shape == nil {
		return 0, false
	}
	rank := len(t.Shape)
	from := rank
	switch n.Op {
	case "Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "CumSum", "CumProd", "ArgMax", "ArgMin":
		axis := n.Int("axis", -1)
		if n.Op == "CumSum" || n.Op == "CumProd" {
			a := p.known(n.Operand(1))
			if a == nil || a.Len() != 1 || a.I64 == nil {
				return 0, false
			}
			axis = a.I64[0]
		}
		if n.Op == "ArgMax" || n.Op == "ArgMin" {
			axis = n.Int("axis", 0)
		}
		if axis < 0 {
			axis += int64(rank)
		}
		if axis != int64(rank-1) && n.Opset() >= 13 || axis < 0 {
			return 0, false
		}
		from = int(axis)
	case "LayerNormalization", "RMSNormalization":
		axis := n.Int("axis", -1)
		if axis < 0 {
			axis += int64(rank)
		}
		from = int(axis)
	case "InstanceNormalization", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool":
		from = 2
	case "GroupNormalization":
		from = 1
	case "BatchNormalization":
		return p.weight(x), false
	default:
		axes, ok := p.axes(n)
		if !ok {
			return 0, false
		}
		hit := make([]bool, rank)
		for _, a := range axes {
			if a < 0 {
				a += int64(rank)
			}
			if a < 0 || a >= int64(rank) {
				return 0, false
			}
			hit[a] = true
		}
		for from > 0 && hit[from-1] {
			from--
		}
		for _, h := range hit[:from] {
			if h {
				return 0, false
			}
		}
	}
	if from < 0 || from > rank {
		return 0, false
	}
	// A scalar result is no row: all of the operand takes part.
	if from == 0 && rank > 1 {
		return p.weight(x), false
	}
	d := graph.Known(int64(max(t.Elem.Bits(), 8) / 8))
	for _, s := range t.Shape[from:] {
		d = d.Mul(s)
	}
	return p.number(d), true
}

// axes returns the axes of a Reduce operator, by attribute or operand.
func (p *planner) axes(n *graph.Node) ([]int64, bool) {
	if n.HasAttr("axes") {
		return n.Ints("axes"), true
	}
	v := n.Operand(1)
	if v == nil {
		if n.Int("noop_with_empty_axes", 0) != 0 {
			return nil, true
		}
		rank := len(p.typ(n.In[0]).Shape)
		all := make([]int64, rank)
		for i := range all {
			all[i] = int64(i)
		}
		return all, true
	}
	if a := p.known(v); a != nil && a.I64 != nil {
		return a.I64, true
	}
	return nil, false
}

// union returns the nodes of two groups in the order of the graph.
func union(p *partition, a, b *group) []*graph.Node {
	out := make([]*graph.Node, 0, len(a.nodes)+len(b.nodes))
	i, j := 0, 0
	for i < len(a.nodes) || j < len(b.nodes) {
		if j == len(b.nodes) || i < len(a.nodes) && p.index[a.nodes[i]] < p.index[b.nodes[j]] {
			out = append(out, a.nodes[i])
			i++
		} else {
			out = append(out, b.nodes[j])
			j++
		}
	}
	return out
}
