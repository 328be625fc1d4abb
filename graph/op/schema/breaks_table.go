package schema

import (
	"cmp"
	"slices"
	"sync"
)

// breaks returns the table of breaks in order. It was compiled by comparing the text of every pair of neighbouring
// versions in the ONNX changelog, and the adapters of the ONNX version converter. Changes that the form shows, as a
// moved attribute or a narrower type constraint, are not listed; neither are clarifications of what was undefined.
var breaks = sync.OnceValue(func() []Break {
	t := slices.Concat(broadcastBreaks(), negativeAxisBreaks(), poolBreaks(), modeBreaks(), valueBreaks())
	slices.SortStableFunc(t, func(a, b Break) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return t
})

// onnx builds breaks of the ai.onnx domain that share version, reason and condition.
func onnx(version int, what string, bites func(*Node) bool, names ...string) []Break {
	out := make([]Break, len(names))
	for i, name := range names {
		out[i] = Break{Name: name, Version: version, What: what, bites: bites}
	}
	return out
}

func broadcastBreaks() []Break {
	return slices.Concat(
		onnx(7, "operands broadcast by NumPy's rules instead of the attributes broadcast and axis", shapesDiffer,
			"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"),
		onnx(7, "the slope broadcasts to the shape of X instead of along the channels", shapesDiffer, "PRelu"),
		onnx(7, "C broadcasts to the shape of the product instead of by the attribute broadcast", nil, "Gemm"),
		onnx(8, "operands broadcast by NumPy's rules instead of being of one shape", shapesDiffer,
			"Max", "Mean", "Min", "Sum"),
	)
}

func negativeAxisBreaks() []Break {
	const fromBack = "negative axes count from the back"
	const indices = "negative indices count from the back"
	return slices.Concat(
		onnx(11, fromBack, negative("axis"),
			"ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Hardmax", "LogSoftmax", "Softmax", "Split", "TopK"),
		onnx(11, fromBack, negative("axes"),
			"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
			"ReduceProd", "ReduceSum", "ReduceSumSquare", "Squeeze", "Unsqueeze"),
		onnx(11, fromBack, anyOf(negative("scan_input_axes"), negative("scan_output_axes")), "Scan"),
		onnx(11, indices, negativeInput(1), "Gather"),
		onnx(11, indices, negativeInput(0), "OneHot"),
		onnx(11, "negative axes count from the back, and negative steps slice backward",
			anyOf(negativeInput(3), negativeInput(4)), "Slice"),
	)
}

func poolBreaks() []Break {
	const padded = "windows that start in the padding after the input are left out"
	return slices.Concat(
		onnx(11, "an odd total padding, by auto_pad or output_shape, has its extra element on the other side",
			anyOf(oneOf("auto_pad", "SAME_UPPER", "SAME_LOWER"), set("output_shape", nil)), "ConvTranspose"),
		onnx(19, "elements beyond the padded input no longer count in the average",
			allOf(set("count_include_pad", int64(0)), partialWindow(false)), "AveragePool"),
		onnx(22, padded, partialWindow(true), "AveragePool", "MaxPool"),
	)
}

// modeBreaks lists where training or inference is chosen in another way.
func modeBreaks() []Break {
	return slices.Concat(
		onnx(7, "training or inference is chosen by the outputs instead of the attribute is_test, whose default is training",
			nil, "BatchNormalization", "Dropout"),
		onnx(9, "the attribute spatial is gone, statistics are per channel", set("spatial", int64(1)), "BatchNormalization"),
		onnx(14, "training is chosen by the attribute training_mode instead of the outputs, and outputs 1 and 2 are defined",
			anyOf(outputs(1), set("training_mode", int64(0))), "BatchNormalization"),
		onnx(10, "the mask is of booleans", outputs(1), "Dropout"),
		onnx(12, "training is chosen by an operand, and the mask is defined in inference too", outputs(1), "Dropout"),
	)
}

func valueBreaks() []Break {
	return slices.Concat(
		onnx(13, "the operator works along axis instead of over all axes from it on", notLastAxis,
			"Hardmax", "LogSoftmax", "Softmax"),
		onnx(9, "the batch axis and the operand sequence_lens are gone", nil, "Scan"),
		onnx(9, "text is read and written", func(n *Node) bool {
			return len(n.In) == 0 || n.In[0].Type == Type{} || n.In[0].Type == TensorOf(String)
		}, "Cast"),
		onnx(11, "coordinates are mapped by half_pixel instead of asymmetric, and nearest rounds instead of flooring",
			nil, "Resize"),
		onnx(13, "coordinate_transformation_mode lost tf_half_pixel_for_nn",
			oneOf("coordinate_transformation_mode", "tf_half_pixel_for_nn"), "Resize"),
		onnx(19, "coordinate_transformation_mode gained half_pixel_symmetric",
			oneOf("coordinate_transformation_mode", "half_pixel_symmetric"), "Resize"),
		onnx(13, "scale and zero point may be per axis", notScalar(1), "DequantizeLinear", "QuantizeLinear"),
		onnx(16, "boxes are shifted by half a pixel unless coordinate_transformation_mode is output_half_pixel",
			unless("coordinate_transformation_mode", "output_half_pixel"), "RoiAlign"),
		onnx(18, "reduction gained max and min", oneOf("reduction", "max", "min"), "ScatterElements", "ScatterND"),
		onnx(18, "the number of parts is an attribute instead of the number of outputs, and the last part may be smaller",
			func(n *Node) bool { return !hasOperand(n.In, 1) }, "Split"),
		onnx(19, "mode gained wrap", oneOf("mode", "wrap"), "Pad"),
		onnx(20, "the axis is an operand, whose default is the last but one instead of 1", nil, "DFT"),
		onnx(20, "modes bilinear and bicubic became linear and cubic, and any number of spatial axes is allowed",
			func(n *Node) bool {
				return unless("mode", "nearest")(n) || len(n.In) == 0 || len(n.In[0].Dims) != 4
			}, "GridSample"),
		onnx(21, "scale and bias are per channel instead of per group", nil, "GroupNormalization"),
		onnx(21, "quantization may be by blocks", func(n *Node) bool {
			return !hasOperand(n.In, 1) || n.In[1].Dims == nil || len(n.In[1].Dims) > 1
		}, "DequantizeLinear", "QuantizeLinear"),
	)
}
