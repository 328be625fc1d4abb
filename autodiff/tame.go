package autodiff

import (
	"gradtool/graph"
)

// mask returns g where cond holds and 0 elsewhere, for an operator that hands g on to some of its operand's elements. A
// product with the condition as a number is several times faster than Where in runtimes, but makes NaN of an infinite g that is
// not handed on, as log(relu(x)) has at 0. It is taken where that makes no difference.
func (c *Ctx) mask(cond, g *graph.Value) *graph.Value {
	if c.Role == graph.RoleBackward && c.tangents == nil && mixed(c.Y(0), map[*graph.Node]bool{}) {
		return c.Mul(g, c.Cast(cond, g.Type.Elem))
	}
	return c.Where(cond, g, c.Like(g, 0))
}

// maxMixed bounds the nodes that mixed looks at.
const maxMixed = 1000

// mixed reports whether every way from y to the outputs leads, through operators whose derivatives are bounded, to one that
// sums over many elements: an infinite cotangent behind that is infinite or NaN for all elements of y alike, and no
// mask keeps it from the parameters.
func mixed(y *graph.Value, seen map[*graph.Node]bool) bool {
	if y == nil || y.IsOutput() || y.NumUses() == 0 {
		return false
	}
	for _, u := range y.Uses() {
		n := u.Node
		switch n.Meta.Get(graph.MetaRole) {
		case graph.RoleBackward, graph.RoleTangent:
			continue
		}
		if n.Graph != y.Graph {
			return false
		}
		if seen[n] {
			continue
		}
		seen[n] = true
		if len(seen) > maxMixed || graph.StdDomain(n.Domain) != "" {
			return false
		}
		switch n.Op {
		case "Conv", "ConvTranspose", "Gemm", "MatMul":
			if n.Op == "Gemm" && u.Index == 2 {
				return false
			}
		case "Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "Elu", "Selu", "Softplus",
			"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Concat", "Split", "Slice", "Pad", "Resize",
			"Add", "Sub", "Mul", "Neg", "Dropout", "BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization",
			"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceSum":
			for i, v := range n.Out {
				if v == nil || i > 0 && (v.NumUses() == 0 || n.Op != "Split") {
					continue
				}
				if !mixed(v, seen) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
