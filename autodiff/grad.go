package autodiff

import (
	"fmt"
	"math"
	"slices"

	"gradtool/autodiff/loss"
	"gradtool/graph"
	"gradtool/graph/op"
)

// GradOptions says what to differentiate with respect to what.
type GradOptions struct {
	Of   []*graph.Value // outputs to differentiate; nil: all float outputs
	Wrt  []*graph.Value // values to differentiate with respect to; nil: Params
	Loss *loss.Spec     // attached to the single output in Of; nil: none
	// Seeds makes cotangents inputs even where a lone scalar output would be seeded with 1.
	Seeds  bool
	HVP    bool     // add products of the Hessian with tangents
	Loop   LoopPlan // what loops keep for their reverse form
	Policy *Policy  // exceptions from the table of rules
}

// Grad is one gradient of a model.
type Grad struct {
	X   *graph.Value
	Out *graph.Value // the new graph output
	// Zero tells that nothing differentiated depends on X: the gradient is identically zero.
	Zero bool
	// With HVP, the input for the tangent of X, and the output of the derivative of the gradient along all tangents.
	Tangent, HVP *graph.Value
}

// GradResult tells what Gradient added.
type GradResult struct {
	Loss       *graph.Value   // the loss output, nil without one
	Target     *graph.Value   // its target input
	Cotangents []*graph.Value // the cotangent inputs, by output
	Grads      []Grad
	naming
	Added int // nodes added
}

// Gradient appends the backward graph to m: an input <y>_cotangent for each differentiated output y (a
// lone scalar output, or the loss, is seeded with 1 instead), and an output <x>_grad for each x. With opt.HVP it adds an
// input <x>_tangent and an output <x>_hvp for each x too: the derivative of <x>_grad along all the tangents, cotangents
// being constant, by the forward mode over the reverse (Pearlmutter, 1994). m
// must be sorted, canonical and inferred; model-local functions on a gradient path must have been inlined. On error m may
// hold nodes of the backward graph that nothing reads; a *BlockedError is returned before any is added.
func Gradient(m *graph.Model, info *op.Info, opt GradOptions) (*GradResult, error) {
	g := m.Graph
	op.InlineIfs(m, info) // which branch is taken decides what depends on what
	before, first := len(g.Nodes), m.NextID()
	b := op.NewBuilder(g, info)
	b.Role = graph.RoleBackward
	res := &GradResult{}
	of, wrt, err := choose(m, opt.Of, opt.Wrt)
	if err != nil {
		return nil, err
	}
	if err := opt.probe(b, of, wrt, false); err != nil {
		return nil, err
	}
	seeds, err := res.seed(b, of, opt)
	if err != nil {
		return nil, err
	}
	cts, err := ReverseWith(b, seeds, wrt, opt.Loop, opt.Policy)
	if err != nil {
		return nil, err
	}
	for i, x := range wrt {
		b.Prefix = x.Name + "_grad"
		ct, zero := cts[i], cts[i] == nil
		if zero {
			ct = b.FullLike(x, 0)
		}
		res.Grads = append(res.Grads, Grad{X: x, Out: res.output(b, ct, x.Name+"_grad"), Zero: zero})
	}
	if opt.HVP {
		if err := res.hessian(b, cts, opt.Policy); err != nil {
			return nil, err
		}
	}
	dropDead(g, first) // constants that a rule asked for in vain
	res.Added = len(g.Nodes) - before
	return res, b.Err
}

// seed adds the loss or the cotangent inputs and returns what the sweep starts from.
func (res *GradResult) seed(b *op.Builder, of []*graph.Value, opt GradOptions) ([]Seed, error) {
	if opt.Loss != nil {
		if len(of) != 1 {
			return nil, fmt.Errorf("a loss needs one output, there are %d differentiable ones; choose one", len(of))
		}
		a, err := loss.Attach(b, *opt.Loss, of[0])
		if err != nil {
			return nil, err
		}
		res.noteName(of[0].Name+"_target", a.Target.Name)
		res.Target = a.Target
		res.Loss = res.output(b, a.Loss, "loss")
		return []Seed{{of[0], a.Ct}}, nil
	}
	if len(of) == 1 && !opt.Seeds && of[0].Type.Shape != nil && len(of[0].Type.Shape) == 0 {
		return []Seed{{of[0], b.Like(of[0], 1)}}, nil
	}
	var seeds []Seed
	for _, y := range of {
		ct := res.input(b, y.Name+"_cotangent", y.Type)
		res.Cotangents = append(res.Cotangents, ct)
		seeds = append(seeds, Seed{y, ct})
	}
	return seeds, nil
}

// hessian adds the derivatives of the gradients along tangents.
func (res *GradResult) hessian(b *op.Builder, cts []*graph.Value, p *Policy) error {
	var tangents []Tangent
	var of []*graph.Value
	for i := range res.Grads {
		g := &res.Grads[i]
		g.Tangent = res.input(b, g.X.Name+"_tangent", g.X.Type)
		tangents = append(tangents, Tangent{g.X, g.Tangent})
		if !g.Zero {
			of = append(of, cts[i])
		}
	}
	b.Role = graph.RoleTangent
	ts, err := ForwardWith(b, tangents, of, p)
	if err != nil {
		return err
	}
	for i := range res.Grads {
		g := &res.Grads[i]
		var t *graph.Value
		if !g.Zero {
			t, ts = ts[0], ts[1:]
		}
		b.Prefix = g.X.Name + "_hvp"
		if t == nil {
			t = b.FullLike(g.X, 0)
		}
		g.HVP = res.output(b, t, g.X.Name+"_hvp")
	}
	return b.Err
}

// FloatOutputs returns the outputs that can be differentiated: tensors of a float type.
func FloatOutputs(m *graph.Model) []*graph.Value {
	var out []*graph.Value
	for _, v := range m.Graph.Outputs {
		if v.Type.IsTensor() && v.Type.Elem.IsDifferentiable() && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// FloatInputs returns the inputs, other than those that are parameters too, that can be differentiated
// with respect to.
func FloatInputs(m *graph.Model) []*graph.Value {
	var out []*graph.Value
	for _, v := range m.Graph.Inputs {
		if v.Init == nil && v.Type.IsTensor() && v.Type.Elem.IsDifferentiable() {
			out = append(out, v)
		}
	}
	return out
}

// Params returns the trainable parameters: the float initializers that the outputs depend on through a
// differentiable path. Running statistics and class weights are none, and neither is the 2 in x^2.
func Params(m *graph.Model, of []*graph.Value) []*graph.Value {
	var all []*graph.Value
	for _, v := range m.Graph.Inits {
		if v.Type.Elem.IsDifferentiable() && !isExponent(v) && !isFixed(v) {
			all = append(all, v)
		}
	}
	return Reached(m, of, all)
}

// Reached returns those of the values that the outputs depend on through a differentiable path.
func Reached(m *graph.Model, of, values []*graph.Value) []*graph.Value {
	r := &reverse{g: m.Graph}
	var seeds []Seed
	for _, y := range of {
		seeds = append(seeds, Seed{Y: y})
	}
	r.mark(seeds, values)
	return slices.DeleteFunc(slices.Clone(values), func(v *graph.Value) bool { return !r.useful[v] })
}

// isFixed reports whether v is read only through operands that are data by nature; see [Rule].
func isFixed(v *graph.Value) bool {
	fixed, others := fixedUses(v)
	return fixed > 0 && others == 0
}

// AlsoFixed reports whether v, besides being a parameter, is read through an operand that is data by nature, such as the
// running variance of a normalization. Exporters that merge equal tensors make such values of ones and zeros; their
// gradients add up both ways.
func AlsoFixed(v *graph.Value) bool {
	fixed, others := fixedUses(v)
	return v.Init != nil && fixed > 0 && others > 0
}

// fixedUses counts the operands through which v is read, by itself or by an Identity as exporters put for merged tensors;
// those that are data by nature apart.
func fixedUses(v *graph.Value) (fixed, others int) {
	for _, u := range v.Uses() {
		if u.Node != nil {
			if u.Node.Is("Identity") && u.Node.Out[0] != nil {
				f, o := fixedUses(u.Node.Out[0])
				fixed, others = fixed+f, others+o
				continue
			}
			if rule := Lookup(op.KeyOf(u.Node)); rule != nil && slices.Contains(rule.Fixed, u.Index) {
				fixed++
				continue
			}
		}
		others++
	}
	return fixed, others
}

// isExponent reports whether v is a whole number that is read as a Pow's exponent only. Exporters write x^2 so; a
// derivative with respect to the 2 is not wanted, and is NaN wherever x is negative.
func isExponent(v *graph.Value) bool {
	if len(v.Uses()) == 0 || v.Init == nil || v.Init.Len() != 1 {
		return false
	}
	for _, u := range v.Uses() {
		if u.Node == nil || u.Index != 1 || op.KeyOf(u.Node) != (op.Key{Name: "Pow"}) {
			return false
		}
	}
	a, err := op.FromTensor(v.Init, true)
	return err == nil && a.Float(0) == math.Trunc(a.Float(0))
}
