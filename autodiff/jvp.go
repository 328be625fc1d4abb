package autodiff

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
)

// JVPOptions says what to differentiate along what.
type JVPOptions struct {
	Of     []*graph.Value // outputs to differentiate; nil: all float outputs
	Wrt    []*graph.Value // values that move; nil: Params
	Policy *Policy        // exceptions from the table of rules
}

// Derivative is the derivative of one output.
type Derivative struct {
	Y    *graph.Value
	Out  *graph.Value // the new graph output
	Zero bool         // Y depends on nothing that moves: the derivative is identically zero
}

// JVPResult tells what JVP added.
type JVPResult struct {
	Tangents []*graph.Value // the tangent inputs, by value that moves
	Outputs  []Derivative
	naming
	Added int // nodes added
}

// JVP appends forward-mode derivatives to m: an input <x>_tangent for each value x that moves, and for each output y the output
// <y>_tangent, the derivative of y along all the tangents together. m must be sorted, canonical and inferred; model-local functions
// on the way must have been inlined. A *BlockedError is returned before any node is added.
func JVP(m *graph.Model, info *op.Info, opt JVPOptions) (*JVPResult, error) {
	g := m.Graph
	op.InlineIfs(m, info) // which branch is taken decides what depends on what
	before, first := len(g.Nodes), m.NextID()
	b := op.NewBuilder(g, info)
	b.Role = graph.RoleTangent
	of, wrt, err := choose(m, opt.Of, opt.Wrt)
	if err != nil {
		return nil, err
	}
	if err := (&GradOptions{Policy: opt.Policy}).probe(b, of, wrt, true); err != nil {
		return nil, err
	}
	res := &JVPResult{}
	var tangents []Tangent
	for _, x := range wrt {
		t := res.input(b, x.Name+"_tangent", x.Type)
		res.Tangents = append(res.Tangents, t)
		tangents = append(tangents, Tangent{x, t})
	}
	ts, err := ForwardWith(b, tangents, of, opt.Policy)
	if err != nil {
		return nil, err
	}
	for i, y := range of {
		b.Prefix = y.Name + "_tangent"
		t, zero := ts[i], ts[i] == nil
		if zero {
			t = b.FullLike(y, 0)
		}
		res.Outputs = append(res.Outputs, Derivative{y, res.output(b, t, y.Name+"_tangent"), zero})
	}
	dropDead(g, first) // constants that a rule asked for in vain
	res.Added = len(g.Nodes) - before
	return res, b.Err
}

// choose returns the outputs and values to differentiate, by default the float outputs and the parameters.
func choose(m *graph.Model, of, wrt []*graph.Value) (ys, xs []*graph.Value, err error) {
	if of == nil {
		of = FloatOutputs(m)
	}
	if len(of) == 0 {
		return nil, nil, errors.New("the model has no float output to differentiate")
	}
	if wrt == nil {
		wrt = Params(m, of)
		if len(wrt) == 0 {
			return nil, nil, errors.New("no trainable initializer leads to the outputs; name what to differentiate with respect to, the inputs for example")
		}
	}
	return of, wrt, nil
}

// probe finds blockers before anything is added.
func (opt *GradOptions) probe(b *op.Builder, of, wrt []*graph.Value, forward bool) error {
	r := &reverse{b: b, g: b.G, plan: opt.Loop, policy: opt.Policy, forward: forward}
	var marks []Seed
	for _, y := range of {
		marks = append(marks, Seed{Y: y})
	}
	r.mark(marks, wrt)
	if blockers := r.preflight(wrt); len(blockers) > 0 {
		return &BlockedError{blockers}
	}
	return nil
}
