package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/autodiff/loss"
	"gradtool/graph"
	"gradtool/internal/selector"
)

// gradFlags say what to differentiate with respect to what.
func gradFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "loss", Usage: "attach a loss; `KIND` is softmax-cross-entropy[,axis=K][,reduction=mean|sum][,ignore=I] or mse[,reduction=mean|sum]"},
	}, selectFlags(), ruleFlags(), []cli.Flag{
		&cli.StringFlag{Name: "loop", Usage: "what the reverse form of a Loop reads: `PLAN` is stack (values kept by each iteration, the default), recompute, checkpoint:K (values kept by each K-th) or auto"},
	})
}

// selectFlags pick values and outputs.
func selectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "wrt", Usage: "differentiate with respect to `NAMES`: params (default), inputs, a name, a glob, re:REGEXP or @FILE; repeatable"},
		&cli.StringSliceFlag{Name: "freeze", Usage: "but not with respect to `NAMES`"},
		&cli.StringSliceFlag{Name: "of", Usage: "differentiate the outputs `NAMES` (default: all float outputs)"},
	}
}

// gradOptions reads the selection flags against the model's names. Types must be inferred.
func (s *session) gradOptions(m *graph.Model) (autodiff.GradOptions, error) {
	of, err := s.selectOutputs(m)
	if err != nil {
		return autodiff.GradOptions{}, err
	}
	return s.gradOptionsWrt(m, of, autodiff.Params(m, of))
}

// gradOptionsWrt is gradOptions where --of is already read and --wrt is by default the given values.
func (s *session) gradOptionsWrt(m *graph.Model, of, wrt []*graph.Value) (autodiff.GradOptions, error) {
	opt := autodiff.GradOptions{Of: of}
	if text := s.String("loss"); text != "" {
		spec, err := loss.Parse(text)
		if err != nil {
			return opt, usagef("--loss: %v", err)
		}
		opt.Loss = &spec
	}
	var err error
	if text := s.String("loop"); text != "" {
		if opt.Loop, err = autodiff.ParseLoopPlan(text); err != nil {
			return opt, usagef("--loop: %v", err)
		}
	}
	if opt.Policy, err = s.policy(m); err != nil {
		return opt, err
	}
	opt.Wrt, err = s.selectWrt(m, of, wrt)
	return opt, err
}

// selectOutputs returns the outputs that --of names, by default the float ones.
func (s *session) selectOutputs(m *graph.Model) ([]*graph.Value, error) {
	if !s.IsSet("of") {
		of := autodiff.FloatOutputs(m)
		if len(of) == 0 {
			if len(m.Graph.Outputs) == 0 {
				return nil, errors.New("the model has no outputs, so there is nothing to differentiate")
			}
			return nil, fmt.Errorf("the model has no float output to differentiate: %s", typedNames(m.Graph.Outputs))
		}
		return of, nil
	}
	sel := selector.Selector{What: "output", Names: names(m.Graph.Outputs), ReadFile: os.ReadFile}
	chosen, err := sel.Select(s.StringSlice("of"))
	if err != nil {
		return nil, fmt.Errorf("--of: %w", err)
	}
	values := pick(m.Graph.Outputs, chosen)
	return values, differentiable(values, "--of")
}

// selectWrt returns the values that --wrt names, by default wrt, less those that --freeze names.
func (s *session) selectWrt(m *graph.Model, of, wrt []*graph.Value) ([]*graph.Value, error) {
	params, inputs := autodiff.Params(m, of), autodiff.FloatInputs(m)
	pool := slices.Concat(inputs, floatInits(m))
	sel := selector.Selector{
		What: "value", Names: names(pool), ReadFile: os.ReadFile,
		Keywords: []selector.Keyword{{Word: "params", Names: names(params)}, {Word: "inputs", Names: names(inputs)}},
	}
	for v := range m.Graph.Values() {
		if !slices.Contains(pool, v) {
			sel.Exact = append(sel.Exact, v.Name)
		}
	}
	if s.IsSet("wrt") {
		chosen, err := sel.Select(s.StringSlice("wrt"))
		if err != nil {
			return nil, fmt.Errorf("--wrt: %w", err)
		}
		wrt = pick(slices.Collect(m.Graph.Values()), chosen)
		if err := differentiable(wrt, "--wrt"); err != nil {
			return nil, err
		}
	} else if len(wrt) == 0 {
		return nil, hint(fmt.Errorf("the outputs depend on no trainable float initializer"),
			"name what to differentiate with respect to: --wrt inputs, or --wrt NAME")
	}
	if s.IsSet("freeze") {
		frozen, err := sel.Select(s.StringSlice("freeze"))
		if err != nil {
			return nil, fmt.Errorf("--freeze: %w", err)
		}
		wrt = slices.DeleteFunc(slices.Clone(wrt), func(v *graph.Value) bool { return slices.Contains(frozen, v.Name) })
		if len(wrt) == 0 {
			return nil, usagef("--freeze leaves nothing to differentiate with respect to")
		}
	}
	return wrt, nil
}

// differentiable reports the values that no derivative exists of, all of them.
func differentiable(values []*graph.Value, flag string) error {
	var bad []error
	for _, v := range values {
		if !v.Type.IsTensor() || !v.Type.Elem.IsDifferentiable() {
			bad = append(bad, fmt.Errorf("%s: %q is %s: only float tensors have derivatives", flag, v.Name, v.Type))
		}
	}
	return joinErrors(bad)
}

func floatInits(m *graph.Model) []*graph.Value {
	var out []*graph.Value
	for _, v := range m.Graph.Inits {
		if v.Type.IsTensor() && v.Type.Elem.IsDifferentiable() {
			out = append(out, v)
		}
	}
	return out
}

// pick returns the values whose names are listed, in the order of values, each name once.
func pick(values []*graph.Value, list []string) []*graph.Value {
	want := map[string]bool{}
	for _, n := range list {
		want[n] = true
	}
	var out []*graph.Value
	for _, v := range values {
		if want[v.Name] {
			delete(want, v.Name)
			out = append(out, v)
		}
	}
	return out
}

func names(values []*graph.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Name
	}
	return out
}

// typedNames lists values with their types, for messages.
func typedNames(values []*graph.Value) string {
	s := ""
	for i, v := range values {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%q is %s", v.Name, v.Type)
	}
	return s
}

// callsOffPath reports whether no call of a function stands between a float input or initializer and an
// output: then the gradient can do without its body. It goes by dependence alone, types may be unknown.
func callsOffPath(m *graph.Model) func(*graph.Function) bool {
	g := m.Graph
	active := map[*graph.Value]bool{}
	maybe := func(v *graph.Value) bool {
		return !v.Type.IsTensor() || v.Type.Elem == graph.Undefined || v.Type.Elem.IsDifferentiable()
	}
	for v := range g.Values() {
		if v.Def == nil && maybe(v) {
			active[v] = true
		}
	}
	for _, n := range g.Nodes {
		if slices.ContainsFunc(slices.Concat(n.In, n.Captures()), func(v *graph.Value) bool { return v != nil && active[v] }) {
			for _, v := range n.Out {
				if v != nil && maybe(v) {
					active[v] = true
				}
			}
		}
	}
	needed := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		needed[v] = true
	}
	onPath := map[*graph.Function]bool{}
	for _, n := range slices.Backward(g.Nodes) {
		if !slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && active[v] && needed[v] }) {
			continue
		}
		for _, v := range slices.Concat(n.In, n.Captures()) {
			if v != nil {
				needed[v] = true
			}
		}
		markCalls(m, n, onPath)
	}
	return func(f *graph.Function) bool { return !onPath[f] }
}

// markCalls notes the functions that n calls, in its subgraphs and through other functions too.
func markCalls(m *graph.Model, n *graph.Node, seen map[*graph.Function]bool) {
	if f := m.Function(n.Domain, n.Op, n.Overload); f != nil && !seen[f] {
		seen[f] = true
		for inner := range f.Body.AllNodes() {
			markCalls(m, inner, seen)
		}
	}
	for _, sub := range n.Subgraphs() {
		for inner := range sub.AllNodes() {
			if f := m.Function(inner.Domain, inner.Op, inner.Overload); f != nil && !seen[f] {
				markCalls(m, inner, seen)
			}
		}
	}
}

// forwardNodes counts the nodes of m's main graph by role: those without one are forward.
func countRoles(m *graph.Model) map[string]int {
	roles := map[string]int{}
	for _, n := range m.Graph.Nodes {
		role := n.Meta.Get(graph.MetaRole)
		if role == "" {
			role = graph.RoleForward
		}
		roles[role]++
	}
	return roles
}
