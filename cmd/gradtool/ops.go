package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
	"gradtool/internal/selector"
	"gradtool/internal/suggest"
	"gradtool/internal/table"
	"gradtool/internal/term"
)

func opsVerb() verb {
	return verb{
		name: "ops", group: groupRead, args: "[NAME...]", maxArgs: -1,
		summary: "list operators with what is known about each: inference, evaluation, derivative",
		about: `
The names select operators; * and ? stand for any text and any character. The derivative is one of
  VJP            a rule of its own
  decompose      rewritten in simpler operators first
  zero gradient  piecewise constant
  no gradient    its results are not real numbers
  unsupported    none, for the reason given`,
		examples: []string{"gradtool ops", "gradtool ops 'Reduce*'", "gradtool ops --grad", "gradtool ops --markdown > docs/OPS.md"},
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "grad", Usage: "only operators on which a gradient path can stand or break: leave out those without gradient"},
			&cli.BoolFlag{Name: "markdown", Usage: "print the document docs/OPS.md"},
			jsonFlag(),
		},
		run: runOps,
	}
}

// opRow is one operator as the table shows it.
type opRow struct {
	Domain     string `json:"domain"`
	Name       string `json:"name"`
	Versions   []int  `json:"versions"`
	Infer      bool   `json:"inference"`
	Eval       bool   `json:"evaluation"`
	Derivative string `json:"derivative"`
	Forward    string `json:"forward_mode,omitempty"`
	Tested     int    `json:"derivative_samples"` // on how many samples derivatives of both orders are tested
	Types      string `json:"float_types,omitempty"`
	Reason     string `json:"reason,omitempty"`
	kind       autodiff.Kind
	known      bool // the operator table has it
}

func (r opRow) key() op.Key { return op.Key{Domain: r.Domain, Name: r.Name} }

// opRows lists the operators of the schema tables and of the operator table, by domain and name; of the
// contributed domains only those that the operator table has.
func opRows() []opRow {
	var keys []op.Key
	seen := map[op.Key]bool{}
	add := func(k op.Key) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for _, s := range schema.All() {
		if s.Domain == "" {
			add(op.Key{Domain: "", Name: s.Name})
		}
	}
	for _, d := range op.All() {
		add(op.Key{Domain: d.Domain, Name: d.Name})
	}
	var out []opRow
	for _, k := range keys {
		out = append(out, rowOf(k))
	}
	return out
}

// replacement returns the operator that upgrading puts in the place of a deprecated one, "" for others.
func replacement(k op.Key) string {
	switch k {
	case op.Key{Name: "Scatter"}:
		return "ScatterElements"
	case op.Key{Name: "Upsample"}:
		return "Resize"
	}
	return ""
}

func rowOf(k op.Key) opRow {
	r := opRow{Domain: k.Domain, Name: k.Name, Versions: []int{}}
	for _, s := range schema.Versions(k.Domain, k.Name) {
		r.Versions = append(r.Versions, s.Since)
	}
	if d := op.Lookup(k); d != nil {
		r.known, r.Infer, r.Eval = true, d.Infer != nil, d.Eval != nil
	}
	rule := autodiff.Lookup(k)
	if rule == nil {
		r.Derivative, r.Reason = autodiff.Unsupported.String(), "there is no rule for it yet"
		if to := replacement(k); to != "" {
			r.Derivative, r.Reason = "upgraded", "deprecated: becomes "+to+" first"
		}
		return r
	}
	r.kind, r.Derivative, r.Reason = rule.Kind, rule.Kind.String(), rule.Reason
	r.Forward, r.Tested, r.Types = forwardOf(rule), testedSamples(k), floatTypes(k)
	return r
}

func runOps(s *session) error {
	rows, err := selectOps(opRows(), s.Args().Slice())
	if err != nil {
		return err
	}
	if s.Bool("grad") {
		var some []opRow
		for _, r := range rows {
			if r.kind != autodiff.NoGrad {
				some = append(some, r)
			}
		}
		rows = some
	}
	switch {
	case s.Bool("json"):
		s.report.set("operators", rows)
		return s.print(s.report.encode)
	case s.Bool("markdown"):
		return s.print(func(w io.Writer) error { return opsMarkdown(w, rows) })
	}
	t := table.New(table.Column{Title: "operator", Fixed: true}, table.Column{Title: "versions"}, table.Column{Title: "infer"},
		table.Column{Title: "eval"}, table.Column{Title: "derivative", Fixed: true}, table.Column{Title: "reason"})
	for _, r := range rows {
		t.Row(r.key().String(), versionList(r.Versions), yes(r.Infer), yes(r.Eval), r.Derivative, r.Reason)
	}
	return s.print(func(w io.Writer) error { return s.writeTable(w, t) })
}

// writeTable writes t as wide as the terminal, or as it needs where there is none.
func (s *session) writeTable(w io.Writer, t *table.Table) error {
	o := table.Options{Header: s.paintOut().Bold}
	if term.IsTerminal(s.stdout) {
		o.Width = term.Width(s.stdout)
	}
	return t.Write(w, o)
}

// selectOps returns the rows whose names match some pattern, all without patterns.
func selectOps(rows []opRow, patterns []string) ([]opRow, error) {
	if len(patterns) == 0 {
		return rows, nil
	}
	match := make([]bool, len(rows))
	var bad []error
	for _, p := range patterns {
		found := false
		var names []string
		for i, r := range rows {
			names = append(names, r.key().String())
			if selector.Glob(p, r.Name) || selector.Glob(p, r.key().String()) {
				match[i], found = true, true
			}
		}
		if !found {
			err := usagef("no operator matches %q", p)
			if near := suggest.Nearest(p, names); len(near) > 0 {
				err = hint(err, "did you mean %s?", orList(near))
			}
			bad = append(bad, err)
		}
	}
	if len(bad) > 0 {
		return nil, joinUsage(bad)
	}
	var out []opRow
	for i, r := range rows {
		if match[i] {
			out = append(out, r)
		}
	}
	return out, nil
}

func versionList(v []int) string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, " ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}
