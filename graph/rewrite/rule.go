package rewrite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Effect says in what the results of a rule may differ from those of what it replaces.
type Effect uint8

// Effects of rules.
const (
	Exact    Effect = iota // in nothing
	ZeroSign               // in the sign of zeros
	Finite                 // where an operand is infinite or not a number
	Kernel                 // in nothing by the formula; kernels of runtimes for the other operator may round otherwise
	Rounding               // in the rounding of the last bits
)

// String returns what the results differ in, "" for Exact.
func (e Effect) String() string {
	switch e {
	case ZeroSign:
		return "sign of zeros"
	case Finite:
		return "infinite operands"
	case Kernel:
		return "rounding in some runtimes"
	case Rounding:
		return "rounding"
	}
	return ""
}

// ErrUnlike is what a condition returns where the pattern matched something that the rule is not about. Other errors are
// near misses, which [Options.Explain] collects.
var ErrUnlike = errors.New("not what the rule is about")

// Rule is an entry of a table of rules.
type Rule struct {
	Name    string
	Doc     string // the identity, as a formula
	Benefit int    // of two rules that fit a node the one of higher benefit is applied
	Effect  Effect
	Root    *Pattern
	// When returns why the rule does not apply, nil if it does. Nil: it always does.
	When func(m *Match) error
	// Emit builds the replacement and returns the values that take the place of the root's results, nil for results that
	// nobody reads. New nodes are put in front of the root. Returning no values at all declines.
	Emit func(b *op.Builder, m *Match) []*graph.Value
}

// Set is the rules of a stage.
type Set struct {
	rules []*Rule
	index map[op.Key][]entry
}

// entry is a rule with the pattern it has once Commute is spelled out.
type entry struct {
	rule    *Rule
	pattern *Pattern
}

// NewSet returns the rules of the given tables. It fails if one is incomplete or two have the same name.
func NewSet(tables ...[]Rule) (*Set, error) {
	s := &Set{index: map[op.Key][]entry{}}
	names := map[string]bool{}
	var errs []error
	for _, t := range tables {
		for i := range t {
			r := &t[i]
			switch {
			case r.Name == "" || r.Doc == "" || r.Root == nil || r.Root.key.Name == "" || r.Emit == nil:
				errs = append(errs, fmt.Errorf("rule %q is not complete", r.Name))
				continue
			case names[r.Name]:
				errs = append(errs, fmt.Errorf("two rules are called %q", r.Name))
			}
			names[r.Name] = true
			s.rules = append(s.rules, r)
			for _, p := range r.Root.alternatives() {
				s.index[p.key] = append(s.index[p.key], entry{r, p})
			}
		}
	}
	for _, list := range s.index {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(b.rule.Benefit, a.rule.Benefit) })
	}
	return s, errors.Join(errs...)
}

// Rules returns the rules in the order of their tables.
func (s *Set) Rules() []*Rule { return slices.Clone(s.rules) }
