package main

import (
	"fmt"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/pass"
	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/prune"
)

// fit drops gradients until the model fits --budget, and prunes what is left.
func (p *pruner) fit(c *pass.Ctx, m *graph.Model) error {
	amount, err := size.Parse(p.String("budget"))
	if err != nil {
		return usagef("--budget: %v", err)
	}
	for n := range m.Graph.AllNodes() {
		if n.Meta.Get(graph.MetaRole) == graph.RoleOptimizer {
			return hint(usagef("--budget: the model has an optimizer already"), "drop gradients before an optimizer reads them")
		}
	}
	info, err := op.Infer(m)
	if err != nil {
		return err
	}
	p.sparse, err = prune.Fit(m, info, amount.Of, p.parameterOf(m))
	if err != nil {
		err = fmt.Errorf("--budget: %w", err)
		if symbols := inputSymbols(m); len(symbols) > 0 && strings.Contains(err.Error(), "not known") {
			return hint(err, "give sizes to the symbolic dimensions: --dim %s=1", strings.Join(symbols, "=1 --dim "))
		}
		return err
	}
	opt := p.opt
	opt.Allow = c.Allow
	st, err := prune.Run(m, opt)
	p.stats.Add(st)
	return err
}

// parameterOf returns which outputs are gradients of parameters: <p>_grad, where p is an initializer.
func (p *pruner) parameterOf(m *graph.Model) func(*graph.Value) (string, bool) {
	params := map[string]bool{}
	for _, v := range floatInits(m) {
		params[v.Name] = true
	}
	return func(y *graph.Value) (string, bool) {
		name, rest, found := cutLast(y.Name, "_grad")
		if _, err := strconv.Atoi(strings.TrimPrefix(rest, "_")); rest != "" && err != nil {
			return "", false
		}
		return name, found && params[name]
	}
}

// tellSparse says which gradients are left.
func (p *pruner) tellSparse() {
	s := p.sparse
	if s == nil {
		return
	}
	whole, partly := 0, 0
	var updated, all int64
	for _, u := range s.Updates {
		all += u.Elems
		switch {
		case u.Parts == 1:
			whole++
			updated += u.Elems
		case u.Parts > 1:
			partly++
			updated += u.Elems / u.Parts
		}
	}
	share := 100.0
	if all > 0 {
		share = 100 * float64(updated) / float64(all)
	}
	p.summaryf("%s of %d kept, %d in part, %d dropped: %.1f %% of the numbers; %s at once, with all %s, without %s",
		count(whole, "gradient"), len(s.Updates), partly, len(s.Updates)-whole-partly, share, size.Bytes(s.Peak), size.Bytes(s.Full), size.Bytes(s.Forward))
	if p.Bool("explain") {
		t := table.New(table.Column{Title: "parameter"}, table.Column{Title: "update"}, table.Column{Title: "gradient", Right: true}, table.Column{Title: "kept for it", Right: true},
			table.Column{Title: "bytes per number", Right: true}, table.Column{Title: "at once", Right: true})
		for _, u := range s.Updates {
			t.Row(u.Param, updateText(u), size.Bytes(u.GradBytes), size.Bytes(u.SavedBytes), fmt.Sprintf("%.1f", float64(u.GradBytes+u.SavedBytes)/float64(max(u.Elems, 1))), atOnce(u))
		}
		_ = t.Write(p.messages, table.Options{})
	}
	var list []map[string]any
	for _, u := range s.Updates {
		list = append(list, map[string]any{"parameter": u.Param, "gradient": u.Grad, "elements": u.Elems, "parts": u.Parts, "axis": u.Axis,
			"gradient_bytes": u.GradBytes, "saved_bytes": u.SavedBytes, "peak_bytes": u.Peak})
	}
	p.report.set("updates", list)
	p.report.set("budget_bytes", s.Limit)
	p.report.set("peak_bytes", s.Peak)
	p.report.set("peak_bytes_full", s.Full)
	p.report.set("peak_bytes_forward", s.Forward)
}

func atOnce(u prune.Update) string {
	if u.Peak == 0 {
		return "not tried"
	}
	return size.Bytes(u.Peak)
}

// updateText says what is updated.
func updateText(u prune.Update) string {
	switch u.Parts {
	case 0:
		if u.Peak == 0 {
			return "none: far from the loss"
		}
		return "none"
	case 1:
		return "all"
	}
	return fmt.Sprintf("1/%d of axis %d", u.Parts, u.Axis)
}
