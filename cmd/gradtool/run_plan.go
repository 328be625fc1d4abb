package main

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/internal/size"
	"gradtool/memplan"
)

// planAgain is the advice where a plan does not fit.
const planAgain = "the model was changed after it was planned: plan it again"

// plan returns m's memory plan, if --plan asks for it, and adds the sizes that it is for to dims.
func (s *session) plan(e *engine, m *graph.Model, dims map[string]int64) (*memplan.Plan, error) {
	if !s.Bool("plan") {
		return nil, nil
	}
	if e.name != "interp" || e.wide {
		return nil, usagef("--plan is of the engine interp in the types of the model")
	}
	p, err := memplan.Read(m)
	if errors.Is(err, memplan.ErrNoPlan) {
		return nil, hint(err, "make one with \"gradtool plan\"")
	}
	if err != nil {
		return nil, badModel(err)
	}
	if n := len(m.Graph.Nodes); n != p.Steps {
		return nil, hint(fmt.Errorf("the memory plan is for %s, the model has %d", count(p.Steps, "node"), n), "%s", planAgain)
	}
	for _, name := range sortedKeys(p.Dims) {
		if n, given := dims[name]; given && n != p.Dims[name] {
			return nil, usagef("--dim %s=%d: the plan is for %s=%d", name, n, name, p.Dims[name])
		}
		if p.Dims[name] < 0 {
			return nil, badModel(fmt.Errorf("the memory plan is for %s=%d", name, p.Dims[name]))
		}
		dims[name] = p.Dims[name]
	}
	return p, nil
}

// useArena gives the engine the arena of the plan. m must have been prepared.
func (e *engine) useArena(p *memplan.Plan, m *graph.Model) (err error) {
	if p != nil {
		e.mem, err = memplan.NewArena(p, m.Graph)
		err = hint(err, "%s", planAgain)
	}
	return err
}

// reportArena says what the arena was used for.
func (s *session) reportArena(e *engine) {
	if e.mem == nil {
		return
	}
	s.summaryf("%s kept in an arena of %s, %s beside it", count(e.mem.Stored, "value"), size.Bytes(int64(e.mem.Size())), count(e.mem.Beside, "value"))
	s.report.set("arena", e.mem.Size())
	s.report.set("arena_values", e.mem.Stored)
	s.report.set("values_beside", e.mem.Beside)
}
