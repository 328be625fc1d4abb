package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/selector"
)

// ruleFlags make exceptions from the derivative rules.
func ruleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "stop-grad", Usage: "take the values `NAMES` as constants, or with op:OPERATOR all results of that operator; repeatable"},
		&cli.StringSliceFlag{Name: "straight-through", Usage: "let derivatives pass through the piecewise constant operator `op:OPERATOR`, Round for example, as if it were the identity; repeatable"},
		&cli.StringSliceFlag{Name: "rules", Usage: "take derivative rules from the ONNX `FILE`, whose functions <Op>_vjp and <Op>_jvp are those of operator <Op> of the same domain; repeatable"},
		&cli.StringFlag{Name: "ties", Value: "even", Usage: "what equal elements get of a maximum's or minimum's derivative: `even|all`, equal shares or the whole each"},
		&cli.StringFlag{Name: "singular", Value: "zero", Usage: "the derivative of square roots and norms at zero: `zero|formula`, the latter infinite or NaN"},
	}
}

// policy reads the flags that make exceptions from the rules; nil without any.
func (s *session) policy(m *graph.Model) (*autodiff.Policy, error) {
	p := &autodiff.Policy{Stop: map[*graph.Value]bool{}, StopOps: map[op.Key]bool{}, Straight: map[op.Key]bool{}, Custom: s.rules}
	var patterns []string
	var bad []error
	if err := s.oneOf("ties", "even", "all"); err != nil {
		bad = append(bad, err)
	}
	if err := s.oneOf("singular", "zero", "formula"); err != nil {
		bad = append(bad, err)
	}
	if s.String("ties") == "all" {
		p.Ties = autodiff.TiesAll
	}
	if s.String("singular") == "formula" {
		p.Singular = autodiff.SingularFormula
	}
	for _, text := range s.StringSlice("stop-grad") {
		name, isOp := strings.CutPrefix(text, "op:")
		if !isOp {
			patterns = append(patterns, text)
			continue
		}
		k := opKey(name)
		if !applies(m, k) {
			bad = append(bad, fmt.Errorf("--stop-grad %s: the model has no such operator", text))
		}
		p.StopOps[k] = true
	}
	for _, text := range s.StringSlice("straight-through") {
		k := opKey(strings.TrimPrefix(text, "op:"))
		switch {
		case !autodiff.PassesStraight(k):
			bad = append(bad, hint(usagef("--straight-through %s: not a piecewise constant operator that keeps its operand's shape", text),
				"there are %s", strings.Join(autodiff.StraightOps(), ", ")))
		case !applies(m, k):
			bad = append(bad, fmt.Errorf("--straight-through %s: the model has no such operator", text))
		}
		p.Straight[k] = true
	}
	if len(bad) > 0 {
		return nil, joinErrors(bad)
	}
	if len(patterns) > 0 {
		var values []*graph.Value
		for g := range m.Graph.Graphs() {
			for v := range g.Values() {
				if v.Name != "" && !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
		sel := selector.Selector{What: "value", Names: names(values), ReadFile: os.ReadFile}
		chosen, err := sel.Select(patterns)
		if err != nil {
			return nil, fmt.Errorf("--stop-grad: %w", err)
		}
		for _, v := range pick(values, chosen) {
			p.Stop[v] = true
		}
	}
	return p, nil
}

// opKey reads an operator's name, with its domain in front where that is not ai.onnx.
func opKey(name string) op.Key {
	if i := strings.LastIndex(name, "."); i >= 0 {
		return op.Key{Domain: graph.StdDomain(name[:i]), Name: name[i+1:]}
	}
	return op.Key{Name: name}
}

// applies reports whether a node of m applies the operator.
func applies(m *graph.Model, k op.Key) bool {
	for n := range m.Graph.AllNodes() {
		if op.KeyOf(n) == k {
			return true
		}
	}
	return false
}

// keepCalls reads the files of derivative rules and says which functions need not be inlined: those that have a rule, and those
// that no derivative passes through.
func (s *session) keepCalls(m *graph.Model) (func(*graph.Function) bool, error) {
	ruled, err := s.keepRuled()
	off := callsOffPath(m)
	return func(f *graph.Function) bool { return ruled(f) || off(f) }, err
}

// keepRuled reads the files of derivative rules and says which functions have one.
func (s *session) keepRuled() (func(*graph.Function) bool, error) {
	s.rules = map[op.Key]*autodiff.Rule{}
	ruled := func(f *graph.Function) bool {
		return s.rules[op.Key{Domain: graph.StdDomain(f.Domain), Name: f.Name}] != nil
	}
	for _, path := range s.StringSlice("rules") {
		f, closer, err := s.openModel(path)
		if err != nil {
			return ruled, fmt.Errorf("--rules: %w", err)
		}
		s.closers = append(s.closers, closer)
		rules, err := autodiff.CustomRules(f)
		if err != nil {
			return ruled, fmt.Errorf("--rules %s: %w", path, err)
		}
		for k, r := range rules {
			s.rules[k] = r
		}
	}
	return ruled, nil
}

// oneOf reports a flag whose value is none of those allowed.
func (s *session) oneOf(flag string, allowed ...string) error {
	if v := s.String(flag); v != "" && !slices.Contains(allowed, v) {
		return usagef("--%s %q: want %s", flag, v, orList(allowed))
	}
	return nil
}
