package op

import "gradtool/graph"

// Kind tells how the elements of an operator's results depend on those of its operands: what decides whether two nodes
// can be computed in one loop over their data. The order is that of TVM's pattern kinds (Chen et al., OSDI 2018).
type Kind uint8

// Kinds of operators.
const (
	KindOpaque      Kind = iota // nothing can be said, or nothing that helps
	KindElementwise             // element i of the result depends on element i of each operand, which may be broadcast
	KindView                    // the result is operand 0 under another shape
	KindInjective               // an element of the result is made of few elements of the operands, at computed places: movements
	KindReduce                  // along some axes, all elements of the operand take part; others are independent
	KindWindow                  // an element depends on a window of the operand: pooling, resizing
	KindContract                // sums of products: matrix products and convolutions
	KindScatter                 // elements are written to places that an operand names
	KindShape                   // depends on the operand's shape only
	KindConstant                // no operands, no randomness
)

// kinds lists operators whose kind no fact tells.
var kinds = map[string]Kind{
	"Constant": KindConstant,
	"Shape":    KindShape, "Size": KindShape,

	"Transpose": KindInjective, "Expand": KindInjective, "Tile": KindInjective, "Slice": KindInjective, "Concat": KindInjective,
	"Split": KindInjective, "Pad": KindInjective, "Gather": KindInjective, "GatherElements": KindInjective, "GatherND": KindInjective,
	"DepthToSpace": KindInjective, "SpaceToDepth": KindInjective, "Trilu": KindInjective, "ConstantOfShape": KindInjective,
	"Range": KindInjective, "EyeLike": KindInjective, "OneHot": KindInjective, "ReverseSequence": KindInjective, "CenterCropPad": KindInjective,
	"RotaryEmbedding": KindInjective, "BatchNormalization": KindElementwise, "QuantizeLinear": KindElementwise,
	"DequantizeLinear": KindElementwise,

	"ReduceSum": KindReduce, "ReduceMean": KindReduce, "ReduceMax": KindReduce, "ReduceMin": KindReduce, "ReduceProd": KindReduce,
	"ReduceL1": KindReduce, "ReduceL2": KindReduce, "ReduceLogSum": KindReduce, "ReduceLogSumExp": KindReduce, "ReduceSumSquare": KindReduce,
	"ArgMax": KindReduce, "ArgMin": KindReduce, "Softmax": KindReduce, "LogSoftmax": KindReduce, "Hardmax": KindReduce,
	"LayerNormalization": KindReduce, "RMSNormalization": KindReduce, "GroupNormalization": KindReduce, "InstanceNormalization": KindReduce,
	"MeanVarianceNormalization": KindReduce, "LpNormalization": KindReduce, "GlobalAveragePool": KindReduce, "GlobalMaxPool": KindReduce,
	"GlobalLpPool": KindReduce, "CumSum": KindReduce, "CumProd": KindReduce, "SoftmaxCrossEntropyLoss": KindReduce,
	"NegativeLogLikelihoodLoss": KindReduce,

	"MaxPool": KindWindow, "AveragePool": KindWindow, "LpPool": KindWindow, "Resize": KindWindow, "LRN": KindWindow,

	"MatMul": KindContract, "Gemm": KindContract, "Conv": KindContract, "ConvTranspose": KindContract, "Einsum": KindContract,
	"MatMulInteger": KindContract, "ConvInteger": KindContract, "QLinearMatMul": KindContract, "QLinearConv": KindContract,

	"ScatterElements": KindScatter, "ScatterND": KindScatter,
}

// KindOf returns the kind of the operator that n applies. Operators with subgraphs, random ones, calls of functions and
// those of other domains are opaque, and so is Dropout if it may be in training mode.
func KindOf(n *graph.Node) Kind {
	if graph.StdDomain(n.Domain) != "" {
		return KindOpaque
	}
	d := Of(n)
	switch {
	case n.Op == "Dropout" && n.Operand(2) == nil:
		return KindElementwise
	case d == nil && kinds[n.Op] == 0, d != nil && d.Facts&(Random|Control) != 0:
		return KindOpaque
	case n.Op == "BatchNormalization" && (n.Int("training_mode", 0) != 0 || len(n.Out) > 1):
		return KindReduce
	case d.Has(View):
		return KindView
	case d.Has(Elementwise):
		return KindElementwise
	}
	return kinds[n.Op]
}
