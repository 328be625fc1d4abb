package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Options says how rules are applied. The zero value applies all that fit.
type Options struct {
	// Allow is asked before each rewrite, with the words for it; nil allows all. After a refusal no more is rewritten.
	Allow func(format string, args ...any) bool
	// Known returns the elements of a value that rules may rely on; nil: those that inference knows.
	Known func(*graph.Value) *op.Array
	// Fixed reports whether a value is a constant that rules may rely on; nil: one that is Known.
	Fixed func(*graph.Value) bool
	// Explain collects near misses.
	Explain bool
}

// Miss is a place that a rule nearly fits.
type Miss struct {
	Rule *Rule
	Node *graph.Node
	Why  string
}

// String returns the rule, the node and the reason.
func (m Miss) String() string {
	return fmt.Sprintf("%s: node %s: %s", m.Rule.Name, m.Node.Label(), m.Why)
}

// Count is how often a rule was applied.
type Count struct {
	Rule *Rule
	N    int
}

// Result is what Apply did.
type Result struct {
	Counts   []Count // of the rules that were applied, in the order of their tables
	Rewrites int
	Misses   []Miss // in the order of the nodes, once nothing more fits
	Stopped  bool   // Options.Allow refused
}

// Apply rewrites g and the graphs nested in it until no rule fits. The graph must be sorted, and info be that of its
// model. An error means that a rule is wrong: it builds what does not fit, or rules undo each other's work.
func (s *Set) Apply(g *graph.Graph, info *op.Info, opt Options) (Result, error) {
	if opt.Known == nil {
		opt.Known = info.Const
	}
	if opt.Fixed == nil {
		opt.Fixed = func(v *graph.Value) bool { return opt.Known(v) != nil }
	}
	d := &driver{set: s, g: g, info: info, opt: opt, queued: map[*graph.Node]bool{}, gone: map[*graph.Node]bool{}, count: map[*Rule]int{}}
	d.match = Match{Info: info, Known: opt.Known, Fixed: opt.Fixed}
	for n := range g.AllNodes() {
		d.push(n)
	}
	d.free = max(20, len(d.queue))
	err := d.run()
	for _, r := range s.rules {
		if n := d.count[r]; n > 0 {
			d.result.Counts = append(d.result.Counts, Count{r, n})
		}
	}
	if err == nil && opt.Explain {
		d.explain()
	}
	return d.result, err
}

// driver is one run of Apply.
type driver struct {
	set    *Set
	g      *graph.Graph
	info   *op.Info
	opt    Options
	match  Match
	queue  []*graph.Node
	queued map[*graph.Node]bool
	gone   map[*graph.Node]bool
	count  map[*Rule]int
	free   int // rewrites before the search for cycles begins
	seen   map[uint64]bool
	recent []string // rules applied since then
	result Result
}

// maxRewrites bounds the rewrites by the number of nodes, for rules that make graphs grow without end.
const maxRewrites = 50

func (d *driver) push(n *graph.Node) {
	if n != nil && !d.queued[n] && !d.gone[n] {
		d.queued[n] = true
		d.queue = append(d.queue, n)
	}
}

func (d *driver) run() error {
	for len(d.queue) > 0 {
		n := d.queue[0]
		d.queue = d.queue[1:]
		d.queued[n] = false
		for !d.gone[n] && !d.result.Stopped {
			done, err := d.try(n)
			if err != nil {
				return err
			}
			if !done {
				break
			}
			if err := d.watch(); err != nil {
				return err
			}
		}
		if d.result.Stopped {
			return nil
		}
	}
	return nil
}

// try applies the first rule that fits n.
func (d *driver) try(n *graph.Node) (bool, error) {
	for _, e := range d.set.index[op.KeyOf(n)] {
		if d.misfit(e, n) != nil {
			continue
		}
		if d.opt.Allow != nil && !d.opt.Allow("%s at %s", e.rule.Name, n.Label()) {
			d.result.Stopped = true
			return false, nil
		}
		done, err := d.rewrite(e.rule, n)
		if err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// misfit returns why the entry's rule does not fit n, ErrUnlike if it is not about n at all, nil if it fits; d.match is then
// where.
func (d *driver) misfit(e entry, n *graph.Node) error {
	m := &d.match
	if !m.node(e.pattern, n) {
		return ErrUnlike
	}
	if e.rule.When != nil {
		if err := e.rule.When(m); err != nil {
			return err
		}
	}
	if v := m.external(); v != nil {
		if v.IsOutput() {
			return fmt.Errorf("inner value %q is a graph output", v.Name)
		}
		return fmt.Errorf("inner value %q is read elsewhere", v.Name)
	}
	if keepsName(n) {
		return fmt.Errorf("the result %q is an output, for which an Identity is the least", n.Out[0].Name)
	}
	return nil
}

// keepsName reports whether n is an Identity that is there for the name of an output: nothing can take its place.
func keepsName(n *graph.Node) bool {
	if !n.Is("Identity") || len(n.In) != 1 || n.In[0] == nil || len(n.Out) != 1 || n.Out[0] == nil {
		return false
	}
	return n.Out[0].IsOutput() && !canTake(n.Out[0], n.In[0])
}

// canTake reports whether y, an output, can become what x is, so that x's node defines y.
func canTake(y, x *graph.Value) bool { return x.Def != nil && x.Graph == y.Graph && !x.IsOutput() }

// rewrite applies r, which fits at n.
func (d *driver) rewrite(r *Rule, n *graph.Node) (bool, error) {
	g := n.Graph
	first := g.Model.NextID()
	b := op.NewBuilder(g, d.info)
	b.Before, b.Prefix = n, n.Name
	b.Role = n.Meta.Get(graph.MetaRole)
	b.InClusterOf(n)
	if b.From = n.Meta.Get(graph.MetaFrom); b.From == "" {
		b.From = n.Name
	}
	outs := r.Emit(b, &d.match)
	fresh := func(v *graph.Value) bool { return v != nil && v.Def != nil && v.ID >= first && v.Graph == g }
	var made []*graph.Node
	for i := slices.Index(g.Nodes, n) - 1; i >= 0 && g.Nodes[i].ID >= first; i-- {
		made = append(made, g.Nodes[i])
	}
	if outs == nil || b.Err != nil {
		g.Remove(made...)
		if b.Err != nil {
			return false, fmt.Errorf("internal error: rule %s at node %s: %w", r.Name, n.Label(), b.Err)
		}
		return false, nil
	}
	for i, y := range n.Out {
		if err := fits(y, outs, i); err != nil {
			return false, fmt.Errorf("internal error: rule %s at node %s: result %d %w", r.Name, n.Label(), i, err)
		}
	}
	taken := map[*graph.Value]*graph.Value{}
	named := false
	around := slices.Clone(n.In)
	for i, y := range n.Out {
		if y == nil || y.NumUses() == 0 {
			continue
		}
		z := outs[i]
		if w := taken[z]; w != nil {
			z = w
		}
		around = append(around, z)
		switch {
		case fresh(z) && taken[z] == nil && !slices.Contains(n.Out, z):
			y.TakeOver(z)
			taken[z] = y
			if !named && n.Name != "" { // which goes
				y.Def.Name, named = n.Name, true
			}
		case !y.IsOutput():
			y.ReplaceUses(z)
		case canTake(y, z) && z.Def != n:
			y.TakeOver(z)
			taken[z] = y
		default:
			c := b.Unary("Identity", z)
			c.Def.Name = n.Name // which goes
			made = append(made, c.Def)
			y.TakeOver(c)
		}
		around = append(around, y)
	}
	d.count[r]++
	d.result.Rewrites++
	if d.seen != nil {
		d.recent = append(d.recent, r.Name)
	}
	d.drop(n)
	for _, m := range made {
		d.drop(m)
		d.push(m)
	}
	for _, v := range around {
		if v == nil {
			continue
		}
		d.push(v.Def)
		for _, u := range v.Uses() {
			d.push(u.Node)
		}
	}
	return true, nil
}

// fits returns an error if outs[i] cannot take y's place.
func fits(y *graph.Value, outs []*graph.Value, i int) error {
	if y == nil || y.NumUses() == 0 {
		return nil
	}
	if i >= len(outs) || outs[i] == nil {
		return fmt.Errorf("(%s) is read but has no replacement", y.Name)
	}
	a, b := y.Type, outs[i].Type
	clash := a.Kind != graph.KindUnknown && b.Kind != graph.KindUnknown && a.Kind != b.Kind
	clash = clash || a.Elem != graph.Undefined && b.Elem != graph.Undefined && a.Elem != b.Elem
	if a.Shape != nil && b.Shape != nil {
		clash = clash || len(a.Shape) != len(b.Shape)
		for k := 0; !clash && k < len(a.Shape); k++ {
			p, known := a.Shape[k].Int()
			q, known2 := b.Shape[k].Int()
			clash = known && known2 && p != q
		}
	}
	if clash {
		return fmt.Errorf("(%s) is %s, its replacement %s", y.Name, a, b)
	}
	return nil
}

// drop removes n if nobody reads its results, then what only it read.
func (d *driver) drop(n *graph.Node) {
	if d.gone[n] || slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && v.NumUses() > 0 }) {
		return
	}
	reads := append(slices.Clone(n.In), n.Captures()...)
	inside := []*graph.Node{n}
	for _, sub := range n.Subgraphs() {
		inside = slices.AppendSeq(inside, sub.AllNodes())
	}
	for _, m := range inside {
		d.gone[m] = true
	}
	n.Graph.Remove(n)
	for _, v := range reads {
		if v == nil {
			continue
		}
		for _, u := range v.Uses() {
			d.push(u.Node) // it may be read once now
		}
		if v.Def != nil {
			d.push(v.Def)
			d.drop(v.Def)
		}
	}
}

// watch ends the run if rules undo each other's work or make the graph grow without end.
func (d *driver) watch() error {
	if d.result.Rewrites < d.free {
		return nil
	}
	if d.seen == nil {
		d.seen = map[uint64]bool{}
	}
	h := fingerprint(d.g)
	if !d.seen[h] && d.result.Rewrites < d.free*maxRewrites {
		d.seen[h] = true
		return nil
	}
	names := slices.Clone(d.recent)
	slices.Sort(names)
	return fmt.Errorf("internal error: rules undo each other's work: %s", strings.Join(slices.Compact(names), ", "))
}

// explain collects the near misses.
func (d *driver) explain() {
	for n := range d.g.AllNodes() {
		last := (*Rule)(nil)
		for _, e := range d.set.index[op.KeyOf(n)] {
			if err := d.misfit(e, n); err != nil && err != ErrUnlike && e.rule != last {
				d.result.Misses = append(d.result.Misses, Miss{e.rule, n, err.Error()})
				last = e.rule
			}
		}
	}
}
