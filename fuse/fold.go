package fuse

import (
	"errors"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// foldRules put the factor and offset of a batch normalization in inference mode into the convolution in front of it. That
// changes what the weights mean, so all of them must be frozen.
func foldRules(frozen func(*graph.Value) bool) []rewrite.Rule {
	fold := func(conv string, out func(n *graph.Node, w []int64) (channels int64, channel func(i int64) int64)) rewrite.Rule {
		return rewrite.Rule{
			Name: conv + "-batch-norm", Doc: "s (w * x + b - mean) / sqrt(var + epsilon) + t = w' * x + b'", Effect: rewrite.Rounding,
			Root: rewrite.P("BatchNormalization", rewrite.P(conv, rewrite.Any("x"), rewrite.Any("w"), rewrite.Any("b").Opt()).As("conv"),
				rewrite.Any("scale"), rewrite.Any("offset"), rewrite.Any("mean"), rewrite.Any("var")),
			When: func(m *rewrite.Match) error {
				if m.Root.Int("training_mode", 0) != 0 || len(m.Root.Out) > 1 {
					return errors.New("the normalization is in training mode")
				}
				for _, name := range []string{"w", "b", "scale", "offset", "mean", "var"} {
					v := m.V(name)
					if v == nil {
						continue
					}
					if !v.IsConst() || !frozen(v) {
						return errors.New("the weights are not frozen, see --frozen")
					}
				}
				w := m.V("w").Init
				if !w.Elem.IsDifferentiable() || len(w.Dims) < 2 {
					return rewrite.ErrUnlike
				}
				channels, _ := out(m.Node("conv"), w.Dims)
				for _, name := range []string{"b", "scale", "offset", "mean", "var"} {
					if v := m.V(name); v != nil && (len(v.Init.Dims) != 1 || v.Init.Dims[0] != channels) {
						return errors.New("the normalization has another number of channels")
					}
				}
				return nil
			},
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				dims := m.V("w").Init.Dims
				channels, channel := out(m.Node("conv"), dims)
				values := map[string]*op.Array{}
				for _, name := range []string{"w", "b", "scale", "offset", "mean", "var"} {
					if v := m.V(name); v != nil {
						a, err := op.FromTensor(v.Init, false)
						if err != nil {
							return nil // its data cannot be read
						}
						values[name] = a
					}
				}
				eps := m.Root.Float("epsilon", 1e-5)
				w := values["w"].Clone()
				bias := op.NewArray(w.Elem, []int{int(channels)}, false)
				factor := make([]float64, channels)
				for i := range factor {
					factor[i] = values["scale"].Float(i) / math.Sqrt(values["var"].Float(i)+eps)
					x := -values["mean"].Float(i)
					if values["b"] != nil {
						x += values["b"].Float(i)
					}
					bias.SetFloat(i, x*factor[i]+values["offset"].Float(i))
				}
				size := int64(1)
				for _, d := range dims[2:] {
					size *= d
				}
				for i := range w.Len() {
					w.SetFloat(i, w.Float(i)*factor[channel(int64(i)/size)])
				}
				g := b.G.Model.Graph
				fresh := func(name string, a *op.Array) *graph.Value {
					return g.AddInit(g.Model.Fresh(name), a.Round().Tensor())
				}
				name := m.V("w").Name
				conv := m.Node("conv")
				return one(b.Op(conv.Op, []*graph.Value{m.V("x"), fresh(name+".folded", w), fresh(name+".folded_bias", bias)}, conv.Attrs...))
			},
		}
	}
	return []rewrite.Rule{
		fold("Conv", func(_ *graph.Node, w []int64) (int64, func(int64) int64) { // w is [out, in/group, ...]
			return w[0], func(i int64) int64 { return i / w[1] }
		}),
		fold("ConvTranspose", func(n *graph.Node, w []int64) (int64, func(int64) int64) { // w is [in, out/group, ...]
			groups := max(n.Int("group", 1), 1)
			perGroup := max(w[0]/groups, 1)
			return w[1] * groups, func(i int64) int64 { return i/w[1]/perGroup*w[1] + i%w[1] }
		}),
	}
}
