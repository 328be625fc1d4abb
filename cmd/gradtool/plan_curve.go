package main

import (
	"fmt"
	"io"
	"math"

	"gradtool/graph"
	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/memplan"
)

// writeCurve prints budgets and what they cost. A budget is the peak of a plan; the lowest one is that of which an arena is known that
// keeps to it: made holds the places of the plan with the lowest peak, in m. Whatever other plans need, each budget above has that one.
func (b *budgeter) writeCurve(m *graph.Model, made *memplan.Made) error {
	least, err := b.reached(m, made.Arena)
	if err != nil {
		return err
	}
	least = min(least, b.base) // which is planned without barriers
	type point struct {
		Share  float64 `json:"percent"`
		Budget int64   `json:"budget"`
		Peak   int64   `json:"peak"`
		Cost   float64 `json:"cost_increase_percent"`
		FLOPs  float64 `json:"flops_increase_percent"`
		Again  int     `json:"recomputations"`
	}
	points := []point{}
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	t := table.New(num("budget"), num("bytes"), num("of own order, shared"), num("cost"), num("FLOPs"), num("recomputed"))
	base := b.problem.Base()
	for i, p := range b.front {
		if p.Peak < least && i < len(b.front)-1 {
			continue // nobody knows whether its values fit together in so many bytes
		}
		nodes, flops := b.problem.Again(p.Sequence)
		x := point{Budget: max(p.Peak, least), Peak: p.Peak, Cost: percent(b.problem.Cost(p.Sequence), base), Again: nodes}
		x.Share = 100 + percent(x.Budget, b.base)
		if work := b.problem.Work(); work > 0 {
			x.FLOPs = 100 * flops / work
		}
		points = append(points, x)
		// Rounded up, so that a share that is read here is enough where it is asked for.
		t.Row(size.Bytes(x.Budget), fmt.Sprint(x.Budget), fmt.Sprintf("%.1f %%", math.Ceil(10*x.Share)/10), fmt.Sprintf("+%.2f %%", x.Cost), fmt.Sprintf("+%.2f %%", x.FLOPs), fmt.Sprint(x.Again))
	}
	b.report.set("own_peak", b.own)
	b.report.set("own_peak_shared", b.shared)
	b.report.set("curve", points)
	return b.save(b.dataTarget(), func(w io.Writer) error { return t.Write(w, table.Options{}) })
}

// reached returns a budget that the plan in m, for which there is an arena of so many bytes, is found to keep to. The search for places
// within a budget may end before it has that arena; what it has then is a budget that it keeps to.
func (b *budgeter) reached(m *graph.Model, arena int64) (int64, error) {
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{KeepOrder: true, Effort: b.effort(memplan.DefaultEffort), Within: arena})
	if err != nil {
		return 0, err
	}
	return made.Arena, nil
}
