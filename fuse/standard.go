package fuse

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// Target says for whom [Rewrite] chooses operators.
type Target struct {
	Standard bool                    // put fused operators of the standard in the place of what spells them out
	Opset    int64                   // ai.onnx opset that the model will be written at: no newer operators
	Frozen   func(*graph.Value) bool // initializers that nobody trains, whose values may be changed; nil: none
	// Allow is asked before each rewrite; nil allows all.
	Allow   func(format string, args ...any) bool
	Explain bool // collect near misses
}

// Rewrite replaces nodes of m by fewer that compute the same up to rounding: fused operators of the standard, and convolutions
// that hold the batch normalization behind them. The model must be sorted, canonical and inferred.
func Rewrite(m *graph.Model, info *op.Info, t Target) (rewrite.Result, error) {
	set, err := rewrite.NewSet(t.tables()...)
	if err != nil {
		return rewrite.Result{}, fmt.Errorf("internal error: %w", err)
	}
	return set.Apply(m.Graph, info, rewrite.Options{Allow: t.Allow, Explain: t.Explain})
}

// tables returns the rules for the target.
func (t Target) tables() [][]rewrite.Rule {
	var out [][]rewrite.Rule
	if t.Standard {
		out = append(out, productRules(t.Opset), normRules(t.Opset), geluRules(t.Opset), attentionRules(t.Opset), rotaryRules(t.Opset), rotaryHalfRules(t.Opset), gradientRules(t.Opset))
	}
	if t.Frozen != nil {
		out = append(out, foldRules(t.Frozen))
	}
	return out
}

// one returns the single value that a rule's replacement is.
func one(v *graph.Value) []*graph.Value { return []*graph.Value{v} }

// since keeps the rules out whose operator the opset does not have.
func since(opset, first int64, rules ...rewrite.Rule) []rewrite.Rule {
	if opset < first {
		return nil
	}
	return rules
}

// productRules make Gemm of products of matrices, which adds the bias and reads transposed operands in place.
func productRules(opset int64) []rewrite.Rule {
	// Before opset 11 a Gemm must add something.
	return since(opset, 11,
		rewrite.Rule{
			Name: "gemm-bias", Doc: "x w + b = Gemm(x, w, b)", Effect: rewrite.Rounding,
			Root: plus(rewrite.P("MatMul", rewrite.Any("x"), rewrite.Any("w")), rewrite.Any("b")),
			When: func(m *rewrite.Match) error {
				if err := matrices(m); err != nil {
					return err
				}
				b, w := m.V("b").Type.Shape, m.V("w").Type.Shape
				switch {
				case b == nil || len(b) > 1:
					return rewrite.ErrUnlike
				case len(b) == 1 && !b[0].Equal(w[1]):
					return errors.New("the bias is not known to have one element per column")
				}
				return nil
			},
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				return one(b.Op("Gemm", []*graph.Value{m.V("x"), m.V("w"), m.V("b")}))
			},
		},
		rewrite.Rule{
			Name: "gemm-transposed-right", Doc: "x w^T = Gemm(x, w, transB=1)", Effect: rewrite.Rounding,
			Root: rewrite.P("MatMul", rewrite.Any("x"), rewrite.P("Transpose", rewrite.Any("w")).Shared().As("t")),
			When: transposed("w"),
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				return one(b.Op("Gemm", []*graph.Value{m.V("x"), m.V("w")}, graph.IntAttr("transB", 1)))
			},
		},
		rewrite.Rule{
			Name: "gemm-transposed-left", Doc: "x^T w = Gemm(x, w, transA=1)", Effect: rewrite.Rounding,
			Root: rewrite.P("MatMul", rewrite.P("Transpose", rewrite.Any("x")).Shared().As("t"), rewrite.Any("w")),
			When: transposed("x"),
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				return one(b.Op("Gemm", []*graph.Value{m.V("x"), m.V("w")}, graph.IntAttr("transA", 1)))
			},
		},
		rewrite.Rule{
			Name: "gemm-add", Doc: "Gemm(x, w) + b = Gemm(x, w, b)", Effect: rewrite.Rounding,
			Root: plus(rewrite.P("Gemm", rewrite.Any("x"), rewrite.Any("w")).As("n"), rewrite.Any("b")),
			When: func(m *rewrite.Match) error {
				b, n := m.V("b").Type.Shape, m.V("n").Type.Shape
				if b == nil || len(b) > 1 || len(n) != 2 || len(b) == 1 && !b[0].Equal(n[1]) {
					return rewrite.ErrUnlike
				}
				return nil
			},
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				k := b.Node("Gemm", []*graph.Value{m.V("x"), m.V("w"), m.V("b")}, 1, m.Node("n").Attrs...)
				k.SetAttr(graph.FloatAttr("beta", 1))
				return one(k.Out[0])
			},
		},
		gemmOperand("gemm-operand-left", 0, "transA"), gemmOperand("gemm-operand-right", 1, "transB"),
	)
}

// gemmOperand is the rule that a Gemm reads an operand in place that is transposed for it.
func gemmOperand(name string, i int, attr string) rewrite.Rule {
	args := []*rewrite.Pattern{rewrite.Any("x"), rewrite.Any("w"), rewrite.Any("c").Opt()}
	names := [2]string{"x", "w"}
	args[i] = rewrite.P("Transpose", rewrite.Any(names[i])).Shared().As("t")
	return rewrite.Rule{
		Name: name, Doc: "Gemm of a transposed matrix = Gemm with " + attr + " the other way", Effect: rewrite.Rounding,
		Root: rewrite.P("Gemm", args...),
		When: transposed(names[i]),
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			attrs := []*graph.Attr{graph.IntAttr(attr, 1-flag(m.Root, attr))}
			for _, a := range m.Root.Attrs {
				if a.Name != attr {
					attrs = append(attrs, a)
				}
			}
			return one(b.Op("Gemm", []*graph.Value{m.V("x"), m.V("w"), m.V("c")}, attrs...))
		},
	}
}

// matrices checks that x and w are matrices of a type that Gemm takes.
func matrices(m *rewrite.Match) error {
	for _, name := range []string{"x", "w"} {
		t := m.V(name).Type
		if len(t.Shape) != 2 {
			return rewrite.ErrUnlike
		}
		if !t.Elem.IsDifferentiable() {
			return errors.New("the products are not of floats")
		}
	}
	return nil
}

// transposed checks that t is the transpose of the matrix of that name.
func transposed(name string) func(m *rewrite.Match) error {
	return func(m *rewrite.Match) error {
		if err := matrices(m); err != nil {
			return err
		}
		perm := m.Node("t").Ints("perm")
		if len(perm) == 2 && perm[0] == 0 {
			return rewrite.ErrUnlike
		}
		return nil
	}
}

// normRules make normalizations and softmax of what spells them out.
func normRules(opset int64) []rewrite.Rule {
	var out []rewrite.Rule
	norm := func(first int64, name, doc, target string, patterns []*rewrite.Pattern) {
		for i, p := range patterns {
			out = append(out, since(opset, first, rewrite.Rule{
				Name: fmt.Sprintf("%s-%d", name, i+1), Doc: doc, Effect: rewrite.Rounding, Root: p,
				When: rowNorm,
				Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
					x := m.V("x")
					d, _ := x.Type.Shape[len(x.Type.Shape)-1].Int()
					ones := op.NewArray(x.Type.Elem, []int{int(d)}, false)
					for i := range ones.Len() {
						ones.SetFloat(i, 1)
					}
					eps := m.Const("epsilon").Float(0)
					return one(b.Op(target, []*graph.Value{x, b.Const(ones.Tensor())}, graph.IntAttr("axis", -1), graph.FloatAttr("epsilon", float32(eps))))
				},
			})...)
		}
	}
	norm(17, "layer-norm", "(x - mean x) / sqrt(var x + epsilon) = LayerNormalization(x)", "LayerNormalization", layerNorm())
	norm(23, "rms-norm", "x / sqrt(mean x^2 + epsilon) = RMSNormalization(x)", "RMSNormalization", rmsNorm())
	for _, target := range []struct {
		name  string
		first int64
	}{{"LayerNormalization", 17}, {"RMSNormalization", 23}} {
		out = append(out, since(opset, target.first, scaleRule(target.name))...)
	}
	out = append(out, since(opset, 17, rewrite.Rule{
		Name: "layer-norm-bias", Doc: "LayerNormalization(x, s) + b = LayerNormalization(x, s, b)", Effect: rewrite.Rounding,
		Root: plus(rewrite.P("LayerNormalization", rewrite.Any("x"), rewrite.Any("s")).As("n"), rewrite.Any("b")),
		When: func(m *rewrite.Match) error {
			if len(m.Node("n").Out) > 1 || !m.V("b").Type.Shape.Equal(m.V("s").Type.Shape) {
				return rewrite.ErrUnlike
			}
			return nil
		},
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			return one(b.Op("LayerNormalization", []*graph.Value{m.V("x"), m.V("s"), m.V("b")}, m.Node("n").Attrs...))
		},
	})...)
	return append(out, since(opset, 13, rewrite.Rule{
		Name: "softmax", Doc: "e^(x - max x) / sum e^(x - max x) = Softmax(x)", Effect: rewrite.Rounding, Root: softmax(),
		When: func(m *rewrite.Match) error {
			a, ok := onlyAxis(m, m.Node("max"))
			b, ok2 := onlyAxis(m, m.Node("sum"))
			if !ok || !ok2 || a != b {
				return errors.New("maximum and sum are not over the same single axis, which stays")
			}
			return nil
		},
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			a, _ := onlyAxis(m, m.Node("max"))
			return one(b.Unary("Softmax", m.V("x"), graph.IntAttr("axis", a)))
		},
	})...)
}

// scaleRule lets a normalization without scale take the factor behind it.
func scaleRule(name string) rewrite.Rule {
	return rewrite.Rule{
		Name: name + "-scale", Doc: name + "(x, 1) s = " + name + "(x, s)", Effect: rewrite.Rounding,
		Root: times(rewrite.P(name, rewrite.Any("x"), rewrite.Const("one")).As("n"), rewrite.Any("s")),
		When: func(m *rewrite.Match) error {
			ones := m.Const("one")
			for i := range ones.Len() {
				if ones.Float(i) != 1 {
					return rewrite.ErrUnlike
				}
			}
			if len(m.Node("n").Out) > 1 || !m.V("s").Type.Shape.Equal(m.V("one").Type.Shape) {
				return errors.New("the factor is not known to have one element per column")
			}
			return nil
		},
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			return one(b.Op(name, []*graph.Value{m.V("x"), m.V("s")}, m.Node("n").Attrs...))
		},
	}
}

// rowNorm checks that means are over the last axis, which stays and whose size is known, and constants are what they must be.
func rowNorm(m *rewrite.Match) error {
	x := m.V("x").Type
	if len(x.Shape) == 0 || !x.Elem.IsDifferentiable() {
		return rewrite.ErrUnlike
	}
	want := map[string]float64{}
	for name, value := range map[string]float64{"two": 2, "one": 1, "minus_half": -0.5} {
		if m.V(name) != nil {
			want[name] = value
		}
	}
	if constants(m, want) != nil {
		return rewrite.ErrUnlike
	}
	if e := m.Const("epsilon"); e.Len() != 1 || !(e.Float(0) >= 0) {
		return errors.New("epsilon is not one number")
	}
	for _, name := range []string{"mean", "var"} {
		if n := m.Node(name); n != nil {
			if a, ok := onlyAxis(m, n); !ok || a != int64(len(x.Shape)-1) {
				return errors.New("the mean is not over the last axis, or that does not stay")
			}
		}
	}
	if d, ok := x.Shape[len(x.Shape)-1].Int(); !ok || d == 0 || d > 1<<16 {
		return errors.New("the size of the last axis is not known, or it is large")
	}
	return nil
}

// onlyAxis returns the axis of a reduction over one axis that keeps it, counted from the front.
func onlyAxis(m *rewrite.Match, n *graph.Node) (int64, bool) {
	axes := n.Operand(1)
	if n.Int("keepdims", 1) == 0 || axes == nil || n.In[0].Type.Shape == nil {
		return 0, false
	}
	a := m.Known(axes)
	if a == nil || a.I64 == nil || a.Len() != 1 {
		return 0, false
	}
	rank := int64(len(n.In[0].Type.Shape))
	axis := a.I64[0]
	if axis < 0 {
		axis += rank
	}
	return axis, axis >= 0 && axis < rank
}

// geluRules make Gelu of what spells it out.
func geluRules(opset int64) []rewrite.Rule {
	var out []rewrite.Rule
	add := func(name, approximate string, when func(*rewrite.Match) error, patterns []*rewrite.Pattern) {
		for i, p := range patterns {
			out = append(out, rewrite.Rule{
				Name: fmt.Sprintf("%s-%d", name, i+1), Doc: "the function of that name = Gelu(x)", Effect: rewrite.Rounding, Root: p,
				When: func(m *rewrite.Match) error {
					if !m.V("x").Type.Elem.IsDifferentiable() {
						return rewrite.ErrUnlike
					}
					return when(m)
				},
				Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
					return one(b.Unary("Gelu", m.V("x"), graph.StringAttr("approximate", approximate)))
				},
			})
		}
	}
	add("gelu-erf", "none", geluWhen, geluErf())
	add("gelu-tanh", "tanh", tanhWhen, geluTanh())
	return since(opset, 20, out...)
}
