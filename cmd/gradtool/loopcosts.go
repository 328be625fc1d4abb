package main

import (
	"fmt"
	"io"
	"math"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/internal/size"
	"gradtool/internal/table"
)

// runLoopCosts is grad --loop-costs: it prints, for each Loop that is differentiated, what every plan costs.
func runLoopCosts(s *session) error {
	for _, flag := range []string{"output", "hvp", "jacobian", "loop"} {
		if s.IsSet(flag) {
			return usagef("--loop-costs compares plans and writes no model, it does not go with --%s", flag)
		}
	}
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	keep, err := s.keepCalls(m)
	if err != nil {
		return err
	}
	var uses []autodiff.LoopUse
	var res *autodiff.GradResult
	passes := derivativePasses("grad", gradDoc, keep, 0, appendGradient(func(m *graph.Model) (autodiff.GradOptions, error) {
		opt, err := s.gradOptions(m)
		opt.Loop.Record = &uses
		return opt, err
	}, &res))
	if err := s.runPasses(m, passes[:len(passes)-1]); err != nil { // the model is not written at any opset
		return err
	}
	if len(uses) == 0 {
		s.notef("there is no Loop to differentiate (a Scan always keeps what each iteration gives)")
	}
	rows := loopCosts(uses)
	if s.Bool("json") {
		s.report.set("loops", rows)
		return s.print(s.report.encode)
	}
	return s.print(func(w io.Writer) error {
		right := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
		t := table.New(table.Column{Title: "loop"}, right("iterations"), table.Column{Title: "plan", Fixed: true}, right("keeps"), right("runs again"), right("work"))
		for _, r := range rows {
			t.Row(r.Loop, r.Iterations, r.Plan, r.Keeps, r.Again, r.Factor)
		}
		return s.writeTable(w, t)
	})
}

// loopCost is a row of the table.
type loopCost struct {
	Loop       string `json:"loop"`
	Iterations string `json:"iterations"`
	Plan       string `json:"plan"`
	Keeps      string `json:"keeps"`
	Bytes      *int64 `json:"keeps_bytes,omitempty"`
	Again      string `json:"runs_again"`
	Factor     string `json:"forward_work,omitempty"`
	WorkEach   int64  `json:"flops_per_iteration,omitempty"`
}

func loopCosts(uses []autodiff.LoopUse) []loopCost {
	rows := []loopCost{}
	for _, u := range uses {
		trips := graph.Sym("T")
		if !u.Trips.IsUnknown() {
			trips = u.Trips
		}
		every := 8
		if n, ok := trips.Int(); ok {
			every = max(1, int(math.Ceil(math.Sqrt(float64(n)))))
		}
		for _, p := range []autodiff.LoopPlan{{}, {Every: every}, {Recompute: true}, {Auto: true}} {
			c := u.Cost(p)
			r := loopCost{Loop: u.Name, Iterations: trips.String(), Plan: planName(c.Plan), Keeps: c.Bytes.String() + " B", Again: c.Again.String(), WorkEach: int64(u.Work)}
			if c.Bytes.IsUnknown() {
				r.Keeps = "as shapes change"
			}
			if n, ok := c.Bytes.Int(); ok {
				r.Bytes, r.Keeps = &n, size.Bytes(n)
			}
			t, ok1 := trips.Int()
			again, ok2 := c.Again.Int()
			if ok1 && ok2 && t > 0 {
				r.Factor = fmt.Sprintf("%.4gx", 1+float64(again)/float64(t))
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// planName writes a plan, and for auto what it comes to.
func planName(p autodiff.LoopPlan) string {
	if !p.Auto {
		return p.String()
	}
	p.Auto = false
	return "auto: " + p.String()
}
