package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/selector"
	"gradtool/internal/size"
	"gradtool/memplan"
	"gradtool/memplan/recompute"
	"gradtool/memplan/remat"
)

// budgetFlags are those of planning under a budget.
func budgetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "budget", Usage: "keep memory within `BYTES|%`, computing values again where that is needed; a share is one of the peak of the order given"},
		&cli.BoolFlag{Name: "curve", DisableDefaultText: true, Usage: "write no model but a table: what each budget costs"},
		&cli.StringFlag{Name: "policy", Value: "nothing", DefaultText: "nothing",
			Usage: "what is never computed again: `nothing|dots|names:NAMES`; dots are matrix products and convolutions, NAMES a pattern of value names"},
		&cli.StringFlag{Name: "costs", Usage: "take costs of nodes from `FILE`: CSV with the columns node and cost, or a profile that ONNX Runtime wrote"},
		&cli.StringFlag{Name: "barrier", Value: "data", DefaultText: "data",
			Usage: "what keeps a runtime from computing again too early: `data|shape|none`"},
	}
}

// budgeter is one run of plan with a budget.
type budgeter struct {
	*session
	open    func() (*graph.Model, io.Closer, error)
	dims    map[string]int64
	amount  size.Amount
	kind    recompute.Barrier
	costs   recompute.Costs
	order   []int              // of the nodes of the model as read, which they are searched in
	problem *recompute.Problem // of the model as read last
	front   []remat.Plan
	budget  int64
	limit   int64 // of the next try: what a plan may need so that its arena keeps to the budget
	again   bool  // the first search found no plan that has one, this is the second
	least   int64 // what its plans may cost at least: none is cheaper than one for a larger budget
	arena   int64 // the smallest so far
	chosen  remat.Plan
	applied recompute.Applied
	own     int64 // bytes of the order given, where nothing is shared
	shared  int64 // and where views and results in place are
	base    int64 // the same as an arena has them, rounded up: what shares are of
	idle    bool  // the order given keeps to the budget: nothing is computed again, and the model is planned as without one
	idled   bool  // that was tried
	flops   float64
	more    float64 // FLOPs that come on top
	solved  time.Duration
}

// newBudgeter reads the flags.
func (s *session) newBudgeter(open func() (*graph.Model, io.Closer, error), dims map[string]int64) (*budgeter, error) {
	b := &budgeter{session: s, open: open, dims: dims}
	var err error
	if s.IsSet("budget") {
		if b.amount, err = size.Parse(s.String("budget")); err != nil {
			return nil, usagef("--budget: %v", err)
		}
	}
	if b.kind, err = recompute.ParseBarrier(s.String("barrier")); err != nil {
		return nil, usagef("--%v", err)
	}
	if file := s.String("costs"); file != "" {
		if err := s.readFile(file, func(r io.Reader) (err error) { b.costs, err = recompute.ReadCosts(r); return err }); err != nil {
			return nil, err
		}
	}
	switch p := s.String("policy"); {
	case p == "nothing", p == "dots", strings.HasPrefix(p, "names:") && len(p) > len("names:"):
	default:
		return nil, usagef("--policy %q: want nothing, dots or names:NAMES", p)
	}
	return b, nil
}

// policy returns what --policy says about m.
func (b *budgeter) policy(m *graph.Model) (recompute.Policy, error) {
	p := recompute.Policy{Dots: b.String("policy") == "dots"}
	pattern, ok := strings.CutPrefix(b.String("policy"), "names:")
	if !ok {
		return p, nil
	}
	var values []*graph.Value
	for _, n := range m.Graph.Nodes {
		for _, v := range n.Out {
			if v != nil {
				values = append(values, v)
			}
		}
	}
	sel := selector.Selector{What: "value", Names: names(values), ReadFile: os.ReadFile}
	chosen, err := sel.Select([]string{pattern})
	if err != nil {
		return p, fmt.Errorf("--policy: %w", err)
	}
	keep := map[*graph.Node]bool{}
	for _, v := range pick(values, chosen) {
		keep[v.Def] = true
	}
	p.Keep = func(n *graph.Node) bool { return keep[n] }
	return p, nil
}

// planWithin plans a model that keeps to a budget.
func (b *budgeter) planWithin(out target, path string) error {
	var made *memplan.Made
	var plan *memplan.Plan
	begin := time.Now()
	for b.limit = -1; ; {
		m, closer, err := b.open()
		if err != nil {
			return err
		}
		done, err := func() (bool, error) {
			defer closer.Close()
			if err := b.inspect(m); err != nil {
				return false, err
			}
			if err := bindDims(m, b.dims); err != nil {
				return false, err
			}
			if err := b.runPasses(m, b.passes(&made)); err != nil {
				var low *recompute.BudgetError
				if errors.As(err, &low) && !(low.Proved && low.Lowest > b.budget) && !b.again { // nobody knows that there are none
					b.again, b.front = true, nil
					return false, nil
				}
				return false, b.budgetError(m, err)
			}
			if b.Bool("curve") {
				return true, b.writeCurve(m, made)
			}
			plan = made.Plan(b.dims)
			if plan.Arena > b.budget && b.idle { // gaps in the arena
				b.idle = false
				return false, nil
			}
			if plan.Arena > b.budget { // gaps in the arena: ask for less
				b.limit = b.chosen.Peak - 1
				if b.arena == 0 || plan.Arena < b.arena {
					b.arena = plan.Arena
				}
				return false, nil
			}
			if err := memplan.Check(m.Graph, plan); err != nil {
				return false, fmt.Errorf("the plan is wrong, please report this: %w", err)
			}
			if err := plan.Write(m); err != nil {
				return false, err
			}
			if err := b.saveModel(out, m); err != nil {
				return false, err
			}
			if err := b.drawPlan(made, path); err != nil {
				return false, err
			}
			b.tell(made, plan, time.Since(begin))
			if b.Bool("explain") {
				return true, b.explainPlan(made, plan)
			}
			return true, nil
		}()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
	}
}

// budgetError is planError; a budget that cannot be kept to is reported without the name of a pass.
func (b *budgeter) budgetError(m *graph.Model, err error) error {
	var low *recompute.BudgetError
	if !errors.As(err, &low) {
		return planError(m, err)
	}
	if b.arena > 0 {
		return hint(fmt.Errorf("budget %s: plans that need less were found, but what lives in them does not fit together: the smallest arena takes %s",
			size.Exact(b.budget), size.Exact(b.arena)), "ask for --budget %d", b.arena)
	}
	if slices.ContainsFunc(m.Functions, isCluster) {
		return hint(low, "clusters are not computed again: make a plan of the model without them, then fuse that (\"gradtool inline --clusters\" undoes fuse)")
	}
	if pieces := b.inPieces(low); pieces != "" {
		return hint(low, "%s", pieces)
	}
	if stacked(m, low) {
		return hint(low, "\"gradtool grad --loop-costs\" shows what gradients of loops keep of each iteration with --loop checkpoint:K or recompute")
	}
	if parts := b.byParts(low); parts != "" {
		return hint(low, "%s", parts)
	}
	return hint(low, "--curve shows the budgets that have plans")
}

// passes are those of plan, with one that computes values again and leaves the nodes in the order that they shall have.
func (b *budgeter) passes(res **memplan.Made) []pass.Pass {
	list := planPasses(func() memplan.PlanOptions {
		opt := memplan.PlanOptions{KeepOrder: b.Bool("keep-order") || !b.idle, Effort: b.effort(memplan.DefaultEffort)}
		if !b.idle {
			opt.Within = b.budget
		}
		return opt
	}, res)
	at := slices.IndexFunc(list, func(p pass.Pass) bool { return p.Name == "infer" })
	return slices.Insert(list, at+1, pass.Pass{
		Name: "recompute", Doc: "compute values again that would be kept too long", Required: true,
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) { return true, b.recompute(m) },
	})
}

// recompute brings the model within the limit.
func (b *budgeter) recompute(m *graph.Model) error {
	if err := b.measure(m); err != nil {
		return err
	}
	var err error
	opt := recompute.Options{Costs: b.costs}
	if opt.Policy, err = b.policy(m); err != nil {
		return err
	}
	if !b.idled && !b.Bool("curve") {
		b.idled, b.idle = true, b.base <= b.amount.Of(b.base)
	}
	if b.idle {
		b.budget = b.amount.Of(b.base)
		if b.problem, err = recompute.New(m, opt); err != nil {
			return err
		}
		b.flops, b.chosen = b.problem.Work(), remat.Plan{Sequence: b.problem.Graph.Order, Peak: b.base}
		return nil
	}
	if !b.Bool("keep-order") {
		opt.Given = slices.Clone(m.Graph.Nodes)
		if err := b.arrange(m.Graph); err != nil {
			return err
		}
	}
	if b.problem, err = recompute.New(m, opt); err != nil {
		return err
	}
	if b.front == nil {
		begin := time.Now()
		moves := int(b.effort(recompute.DefaultMoves))
		if b.again { // another effort finds other plans
			moves *= 4
		}
		if b.front, err = b.problem.Front(b.base, moves); err != nil {
			return err
		}
		low := b.front[len(b.front)-1]
		b.front = append(slices.DeleteFunc(b.front[:len(b.front)-1], func(f remat.Plan) bool { return f.Cost < b.least }), low)
		b.solved += time.Since(begin)
		b.budget = b.amount.Of(b.base)
		b.limit = b.budget
	}
	if b.Bool("curve") {
		_, err = b.problem.Apply(b.front[len(b.front)-1].Sequence, b.kind)
		return err
	}
	if b.chosen, err = b.problem.Choose(b.front, b.limit); err != nil {
		if !b.again && b.limit == b.budget {
			b.least = b.front[len(b.front)-1].Cost
		}
		return err
	}
	if !b.again && b.limit == b.budget {
		b.least = b.chosen.Cost
	}
	_, b.more = b.problem.Again(b.chosen.Sequence)
	b.flops = b.problem.Work()
	b.applied, err = b.problem.Apply(b.chosen.Sequence, b.kind)
	return err
}

// arrange puts the nodes in an order that needs little memory: the same each time that the model is read.
func (b *budgeter) arrange(g *graph.Graph) error {
	if len(b.order) != len(g.Nodes) {
		at := make(map[*graph.Node]int, len(g.Nodes))
		for i, n := range g.Nodes {
			at[n] = i
		}
		made, err := memplan.Make(g, memplan.PlanOptions{Effort: 1})
		if err != nil {
			return err
		}
		for _, n := range made.Order {
			b.order = append(b.order, at[n])
		}
	}
	nodes := make([]*graph.Node, len(g.Nodes))
	for i, k := range b.order {
		nodes[i] = g.Nodes[k]
	}
	g.Nodes = nodes
	return nil
}

// measure notes what the order given needs.
func (b *budgeter) measure(m *graph.Model) error {
	plain, err := memplan.Analyze(m.Graph, nil, memplan.Options{NoViews: true, NoInPlace: true})
	if err != nil {
		return err
	}
	given, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		return err
	}
	b.own, b.shared, b.base = plain.Peak, given.Peak, given.RoundedPeak()
	return nil
}

// tell says what was planned.
func (b *budgeter) tell(m *memplan.Made, p *memplan.Plan, took time.Duration) {
	share := 0.0
	if b.flops > 0 {
		share = 100 * b.more / b.flops
	}
	b.summaryf("%s, budget %s, planned %s, arena %s; %s computed again (FLOPs +%.2f %%), %s of barriers; %s", ownText(b.own, b.shared), size.Bytes(b.budget), size.Bytes(m.Peak), size.Bytes(p.Arena), count(b.applied.Again, "node"), share, count(b.applied.Barriers, "node"), size.Duration(took))
	r := b.report
	r.set("own_peak", b.own)
	r.set("own_peak_shared", b.shared)
	r.set("budget", b.budget)
	r.set("peak", m.Peak)
	r.set("model_peak", b.chosen.Peak)
	r.set("arena", p.Arena)
	r.set("recomputations", b.applied.Again)
	r.set("barrier_nodes", b.applied.Barriers)
	r.set("flops", b.flops)
	r.set("flops_increase_percent", share)
	r.set("cost_increase_percent", percent(b.problem.Cost(b.chosen.Sequence), b.problem.Base()))
	r.set("solve_seconds", b.solved.Seconds())
	r.set("plan", p)
}
