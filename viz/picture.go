package viz

import (
	"fmt"
	"slices"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/encoding"
	"gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/multi"

	"gradtool/graph"
)

// picture is what is drawn: boxes and arrows, as a gonum multigraph with DOT attributes.
type picture struct {
	*multi.DirectedGraph
	opt    Options
	boxes  map[*graph.Node]*box // several nodes share a box where the graph is collapsed
	ends   map[*graph.Value]*box
	nextID int64
	arrows map[[2]int64]bool // drawn already, where collapsed
}

// box is a node of the picture.
type box struct {
	id    int64
	attrs []encoding.Attribute
}

func (b *box) ID() int64                        { return b.id }
func (b *box) DOTID() string                    { return fmt.Sprintf("n%d", b.id) }
func (b *box) Attributes() []encoding.Attribute { return b.attrs }

// arrow is a line of the picture.
type arrow struct {
	from, to *box
	id       int64
	attrs    []encoding.Attribute
}

func (a *arrow) From() gonum.Node                 { return a.from }
func (a *arrow) To() gonum.Node                   { return a.to }
func (a *arrow) ReversedLine() gonum.Line         { return &arrow{a.to, a.from, a.id, a.attrs} }
func (a *arrow) ID() int64                        { return a.id }
func (a *arrow) Attributes() []encoding.Attribute { return a.attrs }

// manyArrows is the number of arrows from which on the picture is laid out in a hurry.
const manyArrows = 150

// DOTAttributers gives the attributes of the whole picture, of nodes and of edges.
func (p *picture) DOTAttributers() (g, n, e encoding.Attributer) {
	dir := p.opt.RankDir
	if dir == "" {
		dir = "TB"
	}
	whole := list{{Key: "rankdir", Value: dir}, {Key: "nodesep", Value: "0.25"}, {Key: "ranksep", Value: "0.35"}}
	if p.Edges().Len() > manyArrows {
		// Curved arrows take dot minutes in a picture of several hundred, and so does placing all boxes best.
		whole = append(whole, list{{Key: "splines", Value: "line"}, {Key: "nslimit", Value: "1"}, {Key: "nslimit1", Value: "1"}, {Key: "mclimit", Value: "0.2"}}...)
	}
	return whole,
		list{{Key: "fontname", Value: "Helvetica"}, {Key: "fontsize", Value: "10"}, {Key: "height", Value: "0.3"}},
		list{{Key: "fontname", Value: "Helvetica"}, {Key: "fontsize", Value: "8"}, {Key: "arrowsize", Value: "0.6"}}
}

type list []encoding.Attribute

func (l list) Attributes() []encoding.Attribute { return l }

func newPicture(g *graph.Graph, opt Options) *picture {
	p := &picture{DirectedGraph: multi.NewDirectedGraph(), opt: opt, boxes: map[*graph.Node]*box{}, ends: map[*graph.Value]*box{}, arrows: map[[2]int64]bool{}}
	nodes := p.chosen(g)
	depth := p.depth(nodes)
	shown := map[*graph.Node]bool{}
	for _, n := range nodes {
		shown[n] = true
	}
	for _, v := range g.Inputs {
		if slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return u.Node == nil || shown[top(g, u.Node)] }) {
			p.ends[v] = p.box("ellipse", v.Name+"\n"+v.Type.String(), attr("fillcolor", "#e8e8e8"), attr("style", "filled"))
		}
	}
	p.nodes(nodes, depth)
	for _, n := range nodes {
		for _, v := range append(slices.Clone(n.In), n.Captures()...) {
			if v != nil {
				p.arrow(p.source(v), p.boxes[n], v, depth > 0)
			}
		}
	}
	for _, v := range g.Outputs {
		if src := p.source(v); src != nil {
			end := p.box("ellipse", v.Name+"\n"+v.Type.String(), attr("fillcolor", "#d8e8d8"), attr("style", "filled"))
			p.arrow(src, end, v, false)
		}
	}
	return p
}

// top returns the node of g that n is, or in whose subgraphs it stands.
func top(g *graph.Graph, n *graph.Node) *graph.Node {
	for n.Graph != g && n.Graph.Parent != nil {
		n = n.Graph.Parent
	}
	return n
}

// chosen returns the nodes to draw: all, or those near the chosen one. Constants are left out.
func (p *picture) chosen(g *graph.Graph) []*graph.Node {
	keep := func(n *graph.Node) bool { return !n.Is("Constant") }
	if p.opt.Around != nil {
		near := map[*graph.Node]int{p.opt.Around: 0}
		queue := []*graph.Node{p.opt.Around}
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			if near[n] == p.opt.Hops {
				continue
			}
			visit := func(m *graph.Node) {
				if _, seen := near[m]; !seen && m != nil {
					near[m] = near[n] + 1
					queue = append(queue, m)
				}
			}
			for _, v := range n.In {
				if v != nil && v.Def != nil && v.Def.Graph == g {
					visit(v.Def)
				}
			}
			for _, v := range n.Out {
				if v == nil {
					continue
				}
				for _, u := range v.Uses() {
					if u.Node != nil {
						visit(top(g, u.Node))
					}
				}
			}
		}
		all := keep
		keep = func(n *graph.Node) bool { _, ok := near[n]; return ok && all(n) }
	}
	var out []*graph.Node
	for _, n := range g.Nodes {
		if keep(n) {
			out = append(out, n)
		}
	}
	return out
}

// group is nodes that share a box: those of one role and scope.
type group struct {
	role, scope string
	nodes       []*graph.Node
}

// depth returns how many parts of scope names to keep so that at most opt.Max boxes remain; 0 draws every node.
func (p *picture) depth(nodes []*graph.Node) int {
	if p.opt.Max <= 0 || len(nodes) <= p.opt.Max {
		return 0
	}
	for d := 16; d > 1; d-- {
		if len(p.groups(nodes, d)) <= p.opt.Max {
			return d
		}
	}
	return 1
}

// groups puts nodes of one role and scope together, in order of appearance; nodes without scope in runs.
func (p *picture) groups(nodes []*graph.Node, depth int) []*group {
	type key struct {
		role, scope string
		run         int
	}
	var out []*group
	at := map[key]*group{}
	length := len(nodes)/max(p.opt.Max/2, 1) + 1
	for i, n := range nodes {
		k := key{role: role(n), scope: scope(n, depth)}
		if k.scope == "" {
			k.run = 1 + i/length
		}
		if at[k] == nil {
			at[k] = &group{role: k.role, scope: k.scope}
			out = append(out, at[k])
		}
		at[k].nodes = append(at[k].nodes, n)
	}
	return out
}

// nodes makes the boxes, one per node or, for depth > 0, one per group.
func (p *picture) nodes(nodes []*graph.Node, depth int) {
	if depth == 0 {
		for _, n := range nodes {
			p.boxes[n] = p.box("box", n.Op+"\n"+short(n.Name), style(role(n), fill(n.Op))...)
		}
		return
	}
	for _, g := range p.groups(nodes, depth) {
		name := g.scope
		if name == "" {
			name = short(g.nodes[0].Name) + " ..."
		}
		label := fmt.Sprintf("%s\n%d nodes: %s", name, len(g.nodes), summary(g.nodes))
		b := p.box("box3d", label, style(g.role, "#44444422")...)
		for _, n := range g.nodes {
			p.boxes[n] = b
		}
	}
}

// summary names the most frequent operators.
func summary(nodes []*graph.Node) string {
	count := map[string]int{}
	var ops []string
	for _, n := range nodes {
		if count[n.Op] == 0 {
			ops = append(ops, n.Op)
		}
		count[n.Op]++
	}
	slices.SortStableFunc(ops, func(a, b string) int { return count[b] - count[a] })
	s := ""
	for i, op := range ops[:min(3, len(ops))] {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s x%d", op, count[op])
	}
	if len(ops) > 3 {
		s += ", ..."
	}
	return s
}

// style tells the roles apart.
func style(role, fill string) []encoding.Attribute {
	s, color := "filled", "black"
	switch role {
	case graph.RoleBackward, graph.RoleTangent:
		s, color = "filled,dashed", "#2050c0"
	case graph.RoleLoss, graph.RoleOptimizer:
		s, color = "filled,bold", "#c02020"
	case graph.RoleRecompute:
		s, color = "filled,dotted", "#208020"
	}
	return []encoding.Attribute{attr("style", s), attr("color", color), attr("fillcolor", fill), attr("class", role)}
}

// source returns the box that v comes from, nil if it is a constant or not drawn.
func (p *picture) source(v *graph.Value) *box {
	if v.Def != nil {
		return p.boxes[v.Def]
	}
	return p.ends[v]
}

func (p *picture) box(shape, label string, attrs ...encoding.Attribute) *box {
	b := &box{p.nextID, append([]encoding.Attribute{attr("shape", shape), attr("label", label)}, attrs...)}
	p.nextID++
	p.AddNode(b)
	return b
}

// arrow draws v from one box to another; merge leaves out all but one between two boxes, and loops.
func (p *picture) arrow(from, to *box, v *graph.Value, merge bool) {
	if from == nil || to == nil || from == to {
		return
	}
	k := [2]int64{from.id, to.id}
	if merge && p.arrows[k] {
		return
	}
	p.arrows[k] = true
	var attrs []encoding.Attribute
	if !merge && v.Type.IsTensor() {
		attrs = append(attrs, attr("label", v.Type.String()))
	}
	attrs = append(attrs, attr("tooltip", v.Name))
	p.SetLine(&arrow{from, to, p.nextID, attrs})
	p.nextID++
}

// short cuts long names in the middle of nowhere: the end tells more than the beginning.
func short(name string) string {
	if r := []rune(name); len(r) > 40 {
		return "..." + string(r[len(r)-37:])
	}
	return name
}

// attr returns a DOT attribute with its value quoted.
func attr(key, value string) encoding.Attribute {
	return encoding.Attribute{Key: key, Value: fmt.Sprintf("%q", value)}
}

func (p *picture) marshal() ([]byte, error) {
	return dot.MarshalMulti(p, "model", "", "\t")
}
