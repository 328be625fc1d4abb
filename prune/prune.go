package prune

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// Options says what Run may do. The zero value is the default.
type Options struct {
	// Frozen says which float initializers are constants because nobody trains them; nil: none.
	Frozen func(v *graph.Value) bool
	// Reassociate adds [ReassociatingRules], which round otherwise than what they replace.
	Reassociate bool
	// Allow is asked before each rewrite, with the words for it; nil allows all.
	Allow func(format string, args ...any) bool
	// Explain collects near misses.
	Explain bool
}

// Stats counts what was done.
type Stats struct {
	Dead       int // nodes that nothing read
	Identities int
	Inits      int // initializers that nothing read
	Functions  int // model-local functions that nothing called
	Folded     int // nodes that became constants
	Shapes     int // shape operands that became constants
	Merged     int // nodes equal to others
	Tied       int // initializers equal to others
	Ifs, Loops int // inlined
	Rules      []Count
	Misses     []string // near misses, with Options.Explain
}

// Count is how often a rule was applied.
type Count struct {
	Name string
	N    int
}

// Changed reports whether anything was done.
func (s Stats) Changed() bool {
	return s.Dead+s.Identities+s.Inits+s.Functions+s.Folded+s.Shapes+s.Merged+s.Tied+s.Ifs+s.Loops+len(s.Rules) > 0
}

// Rewrites returns how often rules were applied.
func (s Stats) Rewrites() int {
	n := 0
	for _, c := range s.Rules {
		n += c.N
	}
	return n
}

// String lists the counts that are not zero.
func (s Stats) String() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(s.Dead, "dead node", "dead nodes")
	add(s.Identities, "identity", "identities")
	add(s.Folded, "node folded", "nodes folded")
	add(s.Shapes, "shape made constant", "shapes made constant")
	add(s.Merged, "node merged", "nodes merged")
	add(s.Rewrites(), "rewrite", "rewrites")
	add(s.Ifs, "If inlined", "Ifs inlined")
	add(s.Loops, "Loop inlined", "Loops inlined")
	add(s.Tied, "equal initializer", "equal initializers")
	add(s.Inits, "unused initializer", "unused initializers")
	add(s.Functions, "unused function", "unused functions")
	return strings.Join(parts, ", ")
}

// Add adds what another step did.
func (s *Stats) Add(t Stats) {
	s.Dead += t.Dead
	s.Identities += t.Identities
	s.Inits += t.Inits
	s.Functions += t.Functions
	s.Folded += t.Folded
	s.Shapes += t.Shapes
	s.Merged += t.Merged
	s.Tied += t.Tied
	s.Ifs += t.Ifs
	s.Loops += t.Loops
	for _, c := range t.Rules {
		s.rule(c.Name, c.N)
	}
	s.Misses = append(s.Misses, t.Misses...)
}

func (s *Stats) rule(name string, n int) {
	for i := range s.Rules {
		if s.Rules[i].Name == name {
			s.Rules[i].N += n
			return
		}
	}
	s.Rules = append(s.Rules, Count{name, n})
}

// maxRounds bounds the rounds of inference and rewriting. Each but the last makes the model smaller.
const maxRounds = 40

// pruner is one run.
type pruner struct {
	m       *graph.Model
	opt     Options
	info    *op.Info
	set     *rewrite.Set
	stats   Stats
	trained map[*graph.Value]bool // see trains
	made    map[*graph.Value]bool // initializers that folding made
	stopped bool                  // Options.Allow refused
	grown   int64                 // bytes that constants took of ModelAllowance
	misses  []string              // of the last round
}

// Run prunes all graphs of m, function bodies included, until nothing more goes. The model must be sorted and in
// canonical form (see [op.Upgrade]). An error is a bug in a rule; the model is then not fit for use.
func Run(m *graph.Model, opt Options) (Stats, error) {
	tables := Rules()
	if opt.Reassociate {
		tables = append(tables, ReassociatingRules())
	}
	set, err := rewrite.NewSet(tables...)
	if err != nil {
		return Stats{}, err
	}
	p := &pruner{m: m, opt: opt, set: set, grown: readGrown(m), made: map[*graph.Value]bool{}}
	for range maxRounds {
		changed, err := p.round()
		if err != nil {
			return p.stats, err
		}
		if !changed || p.stopped {
			break
		}
	}
	p.stats.Misses = p.misses
	return p.stats, nil
}

// round infers and applies everything once.
func (p *pruner) round() (bool, error) {
	before := p.total()
	p.misses = nil
	p.stats.Add(Clean(p.m))
	p.reinfer()
	for _, step := range []func() error{p.control, p.fold, p.shapes, p.rules, p.layouts, p.merge, p.tie} {
		if p.stopped {
			break
		}
		if err := step(); err != nil {
			return false, err
		}
	}
	p.stats.Add(Clean(p.m))
	return p.total() != before, nil
}

// total counts all that was done so far.
func (p *pruner) total() int {
	s := &p.stats
	return s.Dead + s.Identities + s.Inits + s.Functions + s.Folded + s.Shapes + s.Merged + s.Tied + s.Ifs + s.Loops + s.Rewrites()
}

// allow asks for one more rewrite.
func (p *pruner) allow(format string, args ...any) bool {
	if p.stopped {
		return false
	}
	if p.opt.Allow != nil && !p.opt.Allow(format, args...) {
		p.stopped = true
		return false
	}
	return true
}

// label is a node in a message that may not be written.
type label struct{ n *graph.Node }

func (l label) String() string { return l.n.Label() }

func (p *pruner) miss(format string, args ...any) {
	if p.opt.Explain {
		p.misses = append(p.misses, fmt.Sprintf(format, args...))
	}
}

// rules applies the tables of rules.
func (p *pruner) rules() error {
	for _, g := range roots(p.m) {
		r, err := p.set.Apply(g, p.info, rewrite.Options{Allow: p.allow, Known: p.known, Fixed: p.isConstant, Explain: p.opt.Explain})
		for _, c := range r.Counts {
			p.stats.rule(c.Rule.Name, c.N)
		}
		if err != nil {
			return err
		}
		for _, m := range r.Misses {
			p.misses = append(p.misses, m.String())
		}
	}
	return nil
}

// Docs returns what the rules that Stats counts do, by name.
func Docs() map[string]string {
	out := map[string]string{ruleLayout: "f(Transpose(x)) = Transpose(f(x)), where that saves nodes"}
	for _, table := range append(Rules(), ReassociatingRules()) {
		for _, r := range table {
			out[r.Name] = r.Doc
		}
	}
	return out
}

// Rules returns the tables of rules that keep every bit, but for what their Effect says.
func Rules() [][]rewrite.Rule {
	return [][]rewrite.Rule{arithmeticRules(), gradientRules(), logicRules(), castRules(), shapeRules(), moveRules(), chainRules(), reduceRules(), splatRules(), expandRules(), productRules(), integerChainRules()}
}

// trains reports whether v depends on the elements of an initializer that training may change, or on something that is not
// a constant at all.
func (p *pruner) trains(v *graph.Value) bool {
	if t, ok := p.trained[v]; ok {
		return t
	}
	t := false
	switch n := v.Def; {
	case v.Init != nil:
		t = !v.IsConst() || v.Graph == p.m.Graph && v.Type.Elem.IsDifferentiable() && !p.made[v] && (p.opt.Frozen == nil || !p.opt.Frozen(v))
	case n == nil:
		t = true
	case op.Of(n).Has(op.ShapeOnly):
	case len(n.Subgraphs()) > 0:
		t = true
	default:
		t = slices.ContainsFunc(n.In, func(x *graph.Value) bool { return x != nil && p.trains(x) })
	}
	p.trained[v] = t
	return t
}

// known returns the elements of v if inference knows them and no training changes them.
func (p *pruner) known(v *graph.Value) *op.Array {
	a := p.info.Const(v)
	if a == nil || !a.IsTensor() {
		return nil
	}
	if p.trains(v) {
		return nil
	}
	return a
}
