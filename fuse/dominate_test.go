package fuse

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph/flow"
	gonum "gonum.org/v1/gonum/graph/simple"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/public"
	"gradtool/onnxio"
	"gradtool/testmodels"
)

// dominated groups the nodes of p's graph by post-dominators, as TVM's FuseOps does (Chen et al., "TVM", OSDI 2018): what leads from a
// node to its immediate post-dominator is fused with both, if it is element-wise up to there; the results of products fuse with
// element-wise nodes behind them, and reductions end a group.
type dominated struct {
	p      *planner
	behind map[*graph.Node]*graph.Node // immediate post-dominators
	parent map[*graph.Node]*graph.Node
	kinds  map[*graph.Node]int // of the groups, by their representatives
	sizes  map[*graph.Node]int
}

// The kinds of nodes in the order of what can be fused with what.
const (
	domElementwise = iota
	domInjective
	domReduce
	domProduct
	domOpaque
)

func (d *dominated) kindOf(n *graph.Node) int {
	switch d.p.kind(n) {
	case op.KindElementwise:
		return domElementwise
	case op.KindView, op.KindInjective, op.KindShape:
		return domInjective
	case op.KindReduce:
		return domReduce
	case op.KindContract, op.KindWindow:
		return domProduct
	}
	return domOpaque
}

func postDominators(p *planner) map[*graph.Node]*graph.Node {
	g := gonum.NewDirectedGraph()
	const exit = -1
	g.AddNode(gonum.Node(exit))
	byID := map[int64]*graph.Node{}
	for _, n := range p.part.g.Nodes {
		g.AddNode(gonum.Node(n.ID))
		byID[int64(n.ID)] = n
	}
	edge := func(from, to int64) {
		if from != to && !g.HasEdgeFromTo(from, to) {
			g.SetEdge(g.NewEdge(g.Node(from), g.Node(to)))
		}
	}
	for _, n := range p.part.g.Nodes {
		read := false
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			for _, u := range v.Uses() {
				if u.Node == nil || u.Node.Graph != p.part.g {
					edge(exit, int64(n.ID))
				}
				read = true
			}
		}
		for _, s := range p.part.succ[n] {
			edge(int64(s.ID), int64(n.ID))
		}
		if !read {
			edge(exit, int64(n.ID))
		}
	}
	out := map[*graph.Node]*graph.Node{}
	tree := flow.Dominators(g.Node(exit), g)
	for id, n := range byID {
		if x := tree.DominatorOf(id); x != nil && x.ID() != exit {
			out[n] = byID[x.ID()]
		}
	}
	return out
}

func (d *dominated) find(n *graph.Node) *graph.Node {
	for d.parent[n] != n {
		n = d.parent[n]
	}
	return n
}

// path returns the nodes on ways from n to its post-dominator s, both included.
func (d *dominated) path(n, s *graph.Node) []*graph.Node {
	seen := map[*graph.Node]bool{n: true}
	queue := []*graph.Node{n}
	for i := 0; i < len(queue); i++ {
		if queue[i] == s {
			continue
		}
		for _, k := range d.p.part.succ[queue[i]] {
			if !seen[k] {
				seen[k] = true
				queue = append(queue, k)
			}
		}
	}
	return queue
}

// fuse merges the ways from n to s if all nodes between have at most the kind.
func (d *dominated) fuse(n, s *graph.Node, most int) {
	nodes := d.path(n, s)
	size := 0
	groups := map[*graph.Node]bool{}
	for _, k := range nodes {
		if k != n && k != s && d.kinds[d.find(k)] > most || d.p.part.of[k].fixed {
			return
		}
		if r := d.find(k); !groups[r] {
			groups[r] = true
			size += d.sizes[r]
		}
	}
	if size > d.p.machine.maxNodes() {
		return
	}
	root := d.find(s)
	for r := range groups {
		if r != root {
			d.parent[r] = root
			d.kinds[root] = max(d.kinds[root], d.kinds[r])
		}
	}
	d.sizes[root] = size
}

// dominatedGroups returns the groups, each in the order of the graph.
func dominatedGroups(p *planner) [][]*graph.Node {
	d := &dominated{p: p, behind: postDominators(p), parent: map[*graph.Node]*graph.Node{}, kinds: map[*graph.Node]int{}, sizes: map[*graph.Node]int{}}
	for _, n := range p.part.g.Nodes {
		d.parent[n], d.kinds[n], d.sizes[n] = n, d.kindOf(n), 1
	}
	for phase := range 2 {
		for _, n := range p.part.g.Nodes {
			s := d.behind[n]
			if s == nil || d.find(n) == d.find(s) || p.part.of[n].fixed {
				continue
			}
			sink := d.kinds[d.find(s)]
			switch d.kindOf(n) {
			case domProduct:
				if phase == 0 && sink <= domElementwise {
					d.fuse(n, s, domElementwise)
				}
			case domElementwise:
				if sink <= domReduce {
					d.fuse(n, s, domInjective)
				}
			case domInjective:
				if phase == 1 && sink <= domInjective {
					d.fuse(n, s, domInjective)
				}
			}
		}
	}
	var order []*graph.Node
	groups := map[*graph.Node][]*graph.Node{}
	for _, n := range p.part.g.Nodes {
		if p.kind(n) == op.KindConstant {
			continue
		}
		r := d.find(n)
		if groups[r] == nil {
			order = append(order, r)
		}
		groups[r] = append(groups[r], n)
	}
	var out [][]*graph.Node
	for _, r := range order {
		out = append(out, groups[r])
	}
	return out
}

// compare returns the kernels and the bytes between them that the two ways to group leave.
func compare(m *graph.Model) (pairs, dominators int, pairBytes, dominatorBytes float64) {
	f := newFacts(m, nil)
	fresh := func() *planner {
		p := &planner{facts: f, part: newPartition(m.Graph), opt: &Options{}, refused: map[[2]*graph.Node]error{}}
		p.isolate()
		return p
	}
	p := fresh()
	p.plan()
	var mine [][]*graph.Node
	for _, q := range p.part.order {
		if p.kind(q.nodes[0]) != op.KindConstant {
			mine = append(mine, q.nodes)
		}
	}
	theirs := dominatedGroups(fresh())
	return len(mine), len(theirs), f.number(f.traffic(mine).Between), f.number(f.traffic(theirs).Between)
}

// check fails where grouping by post-dominators is better.
func checkDominators(t *testing.T, m *graph.Model) {
	t.Helper()
	a, b, x, y := compare(m)
	if a > b || x > y {
		t.Errorf("pairs leave %d kernels with %.0f bytes between, post-dominators %d with %.0f", a, x, b, y)
	}
}

// TestDominatorsOfDiamonds checks shapes in which a value is used twice and comes together again.
func TestDominatorsOfDiamonds(t *testing.T) {
	for _, c := range []struct {
		name, in string
		kernels  int // of post-dominators
	}{
		{"two chains", `g (float[64,64] x) => (float[64,64] y) { a = Tanh(x) b = Exp(a) c = Sqrt(b) d = Neg(a) e = Abs(d) y = Add(c, e) }`, 1},
		{"residual around elements", `g (float[64,64] x) => (float[64,64] y) { a = Tanh(x) b = Relu(a) y = Add(a, b) }`, 1},
		{"residual around a product", `g (float[64,64] x, float[64,64] w) => (float[64,64] y) { a = Tanh(x) b = MatMul(a, w) c = Relu(b) y = Add(a, c) }`, 2},
		{"gelu", `g (float[64,64] x) => (float[64,64] y) { a = Tanh(x) b = Erf(a) c = Add(b, a) d = Mul(a, c) y = Mul(d, a) }`, 1},
		{"layer norm", `g (float[64,64] x) => (float[64,64] y) { ax = Constant<value: tensor = int64[1] {-1}>() a = Tanh(x) m = ReduceMean(a, ax) d = Sub(a, m) q = Mul(d, d) v = ReduceMean(q, ax) s = Sqrt(v) y = Div(d, s) }`, 0},
		{"softmax", `g (float[64,64] x) => (float[64,64] y) { ax = Constant<value: tensor = int64[1] {-1}>() a = Tanh(x) m = ReduceMax(a, ax) d = Sub(a, m) e = Exp(d) s = ReduceSum(e, ax) y = Div(e, s) }`, 0},
		{"a value that leaves", `g (float[64,64] x) => (float[64,64] y, float[64,64] b) { a = Tanh(x) b = Exp(a) c = Neg(a) y = Add(b, c) }`, 0},
		{"transposed branch", `g (float[64,64] x) => (float[64,64] y) { a = Tanh(x) b = Transpose<perm=[1,0]>(a) y = Add(a, b) }`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := dominatorModel(t, c.in)
			if _, b, _, _ := compare(m); c.kernels > 0 && b != c.kernels {
				t.Errorf("post-dominators leave %d kernels, want %d", b, c.kernels)
			}
			checkDominators(t, m)
		})
	}
}

func dominatorModel(t *testing.T, text string) *graph.Model {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 8, opset_import: ["" : 18]>` + text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDominatorsOfModels compares on the models that come with the program, on public gradient cases and, if GRADTOOL_MODELS names
// a folder, on the networks there.
func TestDominatorsOfModels(t *testing.T) {
	for _, tm := range testmodels.All() {
		t.Run(tm.Name, func(t *testing.T) { checkDominators(t, tm.Build()) })
	}
	if root := os.Getenv("GRADTOOL_MODELS"); root != "" {
		dominatorFiles(t, filepath.Join(root, "*.onnx"), filepath.Join(root, "*", "model.onnx"))
	}
	dominatorFiles(t, filepath.Join(public.Path(t, "gradcases"), "*", "model.onnx"))
}

func dominatorFiles(t *testing.T, patterns ...string) {
	t.Helper()
	var paths []string
	for _, p := range patterns {
		list, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, list...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
			if err != nil {
				t.Skip(err)
			}
			defer c.Close()
			if err := m.Graph.Sort(); err != nil {
				t.Skip(err)
			}
			checkDominators(t, m)
		})
	}
}

// randomDAG makes a graph of element-wise nodes, reductions, transposes and products on tensors of a few shapes.
func randomDAG(rng *rand.Rand, elementwise bool) *graph.Model {
	m := &graph.Model{IRVersion: 8, Opsets: []graph.Opset{{Version: 18}}}
	m.Graph = m.NewGraph("g")
	g := m.Graph
	size := int64(8 << rng.IntN(5))
	matrix := graph.TensorOf(graph.Float, graph.ShapeOf(size, size))
	values := []*graph.Value{g.AddInput("x", matrix), g.AddInput("z", matrix)}
	node := func(name string, in []*graph.Value, attrs ...*graph.Attr) *graph.Value {
		n := g.NewNode("", name, in, []string{m.Fresh("v")}, attrs...)
		g.Append(n)
		return n.Out[0]
	}
	axes := node("Constant", nil, graph.TensorAttr("value", graph.Ints(nil, -1)))
	pick := func() *graph.Value { return values[max(0, len(values)-1-rng.IntN(6))] }
	for range 6 + rng.IntN(30) {
		x, y := pick(), pick()
		var v *graph.Value
		switch k := rng.IntN(12); {
		case k < 4:
			v = node([]string{"Tanh", "Relu", "Exp", "Neg"}[k], []*graph.Value{x})
		case k < 8 || elementwise:
			v = node([]string{"Add", "Mul", "Sub", "Max"}[k%4], []*graph.Value{x, y})
		case k == 8:
			r := node("ReduceMean", []*graph.Value{x, axes})
			v = node("Sub", []*graph.Value{x, r})
		case k == 9:
			v = node("Softmax", []*graph.Value{x}, graph.IntAttr("axis", -1))
		case k == 10:
			v = node("Transpose", []*graph.Value{x}, graph.IntsAttr("perm", 1, 0))
		default:
			v = node("MatMul", []*graph.Value{x, y})
		}
		values = append(values, v)
	}
	var ends []*graph.Value
	for _, v := range values[2:] {
		if v.NumUses() == 0 {
			ends = append(ends, v)
		}
	}
	if rng.IntN(2) == 0 { // all comes together in the end
		for len(ends) > 1 {
			ends = append(ends[2:], node("Add", []*graph.Value{ends[0], ends[1]}))
		}
	} else if v := pick(); v.NumUses() > 0 && v.Def != nil {
		ends = append(ends, v)
	}
	for _, v := range ends {
		v.Type = matrix
		g.AddOutput(v)
	}
	return m
}

func TestDominatorsOfRandomGraphs(t *testing.T) {
	for _, elementwise := range []bool{true, false} {
		worse := map[string]int{}
		better, total := 0, 0
		for seed := range uint64(200) {
			m := randomDAG(rand.New(rand.NewPCG(seed, 7)), elementwise)
			a, b, x, y := compare(m)
			total++
			if a > b {
				worse["kernels"]++
				t.Logf("seed %d: %d kernels against %d", seed, a, b)
			}
			if x > y {
				worse["bytes"]++
				t.Logf("seed %d: %.0f bytes against %.0f", seed, x, y)
			}
			if a < b {
				better++
			}
		}
		var list []string
		for k, n := range worse {
			list = append(list, fmt.Sprintf("%d with more %s", n, k))
		}
		slices.Sort(list)
		t.Logf("elementwise %v: %d graphs, %d with fewer kernels than by post-dominators", elementwise, total, better)
		if len(list) > 0 {
			t.Errorf("elementwise %v: of %d graphs %v than by post-dominators", elementwise, total, list)
		}
	}
}
