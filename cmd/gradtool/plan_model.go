package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
	"gradtool/memplan"
	"gradtool/memplan/offset"
)

// planModel plans the memory of a model.
func (s *session) planModel() error {
	path, err := s.inputPath()
	if err != nil {
		return hint(err, "or name a table of buffers with --buffers FILE, or a graph with --remat-graph FILE")
	}
	out, err := s.target(derivedName(path, "plan"))
	if err != nil {
		return err
	}
	dims, err := s.dims()
	if err != nil {
		return err
	}
	if err := s.checkDrawings(); err != nil {
		return err
	}
	memories, err := s.memories()
	if err != nil {
		return err
	}
	if s.IsSet("budget") || s.Bool("curve") {
		open, err := s.reopener(path)
		if err != nil {
			return err
		}
		b, err := s.newBudgeter(open, dims)
		if err != nil {
			return err
		}
		return b.planWithin(out, path)
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	if err := bindDims(m, dims); err != nil {
		return err
	}
	var made *memplan.Made
	begin := time.Now()
	if err := s.runPasses(m, planPasses(func() memplan.PlanOptions {
		return memplan.PlanOptions{KeepOrder: s.Bool("keep-order"), Effort: s.effort(memplan.DefaultEffort), Memories: memories}
	}, &made)); err != nil {
		if errors.Is(err, offset.ErrExhausted) || errors.Is(err, offset.ErrImpossible) {
			return hint(fmt.Errorf("%s: %w", path, err), "a larger --memory, or a last one without limit (--memory NAME), holds more; --explain without --memory says what is alive at the peak")
		}
		return planError(m, err)
	}
	took := time.Since(begin)
	plan := made.Plan(dims)
	if err := memplan.Check(m.Graph, plan); err != nil {
		return fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	if err := plan.Write(m); err != nil {
		return err
	}
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	if err := s.drawPlan(made, path); err != nil {
		return err
	}
	s.reportPlan(made, plan, took)
	if s.Bool("explain") {
		return s.explainPlan(made, plan)
	}
	return nil
}

// planPasses are the passes of plan. Nodes are planned in the form in which they are written. opt is asked when that begins.
func planPasses(opt func() memplan.PlanOptions, res **memplan.Made) []pass.Pass {
	return []pass.Pass{
		pass.Sort(), distinctPass(), pass.Inline(isCluster), pass.Upgrade(), pass.Infer(), opsetPass(0),
		{
			Name: "plan", Doc: "put nodes in an order that needs little memory, and values in their places", Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				made, err := memplan.Make(m.Graph, opt())
				if err != nil {
					return false, err
				}
				made.Apply()
				*res = made
				return true, nil
			},
		},
	}
}

// isCluster reports whether f is a cluster of verb fuse: one kernel, whose inner values take no memory.
func isCluster(f *graph.Function) bool { return f.Domain == "gradtool" }

// planError says what to do about sizes that are not known.
func planError(m *graph.Model, err error) error {
	var unbound *memplan.SymbolError
	if !errors.As(err, &unbound) {
		return err
	}
	var flags []string
	for _, name := range unbound.Symbols {
		flags = append(flags, "--dim "+name+"=SIZE")
	}
	text := "give them sizes: " + strings.Join(flags, " ")
	if terms, perr := memplan.PeakTerms(m.Graph, nil); perr == nil && len(terms) > 0 {
		text += "\nin its own order the model needs " + peakText(terms) + " bytes"
	}
	return hint(usagef("%v", err), "%s", text)
}

// peakText writes the largest of some sizes.
func peakText(terms []graph.Dim) string {
	var list []string
	for _, d := range terms {
		list = append(list, d.String())
	}
	if len(list) == 1 {
		return list[0]
	}
	return "max(" + strings.Join(list, ", ") + ")"
}

// percent returns how much larger a is than b, in percent.
func percent(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return 100 * (float64(a)/float64(b) - 1)
}

// memoriesText says what lies in each of several memories.
func memoriesText(m *memplan.Made) string {
	var parts []string
	moved := int64(0)
	for _, k := range m.Memories {
		moved += k.Moved
	}
	for _, k := range m.Memories {
		text := k.Name + " " + size.Bytes(k.Bytes)
		if k.Capacity > 0 {
			text += " of " + size.Bytes(k.Capacity)
		}
		share := 0.0
		if moved > 0 {
			share = 100 * float64(k.Moved) / float64(moved)
		}
		parts = append(parts, fmt.Sprintf("%s with %.1f %% of the bytes moved", text, share))
	}
	return strings.Join(parts, ", ")
}

// ownText says what the order given needs, without and with values that share bytes.
func ownText(given, shared int64) string {
	return fmt.Sprintf("own order %s, shared %s", size.Bytes(given), size.Bytes(shared))
}

// reportPlan says what was planned.
func (s *session) reportPlan(m *memplan.Made, p *memplan.Plan, took time.Duration) {
	outside := ""
	if n := len(p.Outside); n > 0 {
		outside = fmt.Sprintf(", %s outside of it", count(n, "value"))
	}
	where := fmt.Sprintf("arena %s, %.2f %% above the bound", size.Bytes(p.Arena), percent(p.Arena, p.Bound))
	if len(m.Memories) > 0 {
		where = memoriesText(m)
		r := s.report
		r.set("spilled_bytes", m.Spilled)
		r.set("spilled_bound", m.SpilledBound)
	}
	s.summaryf("%s, %s; %s, planned %s (%+.1f %%); %s%s; %s", count(p.Steps, "node"), count(len(p.Values), "value"),
		ownText(m.Given, m.Shared), size.Bytes(m.Peak), percent(m.Peak, m.Given), where, outside, size.Duration(took))
	for _, o := range p.Outside {
		s.verbosef("%q is not in the arena: %s", o.Name, o.Why)
	}
	r := s.report
	r.set("nodes", p.Steps)
	r.set("own_peak", m.Given)
	r.set("own_peak_shared", m.Shared)
	r.set("peak", m.Peak)
	r.set("floor", m.Floor)
	r.set("bound", p.Bound)
	r.set("arena", p.Arena)
	r.set("gap_percent", percent(p.Arena, p.Bound))
	r.set("proved", m.Proved)
	r.set("method", m.Method)
	r.set("plan", p)
}
