package autodiff

import "gradtool/graph/op"

// contribRules: operators of ONNX Runtime are differentiated through the standard ones that define them.
func contribRules() []Rule {
	rules := []Rule{
		{Name: "SimplifiedLayerNormalization", Kind: Decomposed, Check: op.CheckDecomposition},
		{Domain: "com.microsoft", Name: "BiasDropout", Kind: Decomposed, Stop: []int{3, 4}},
	}
	for _, name := range []string{
		"Gelu", "FastGelu", "BiasGelu", "QuickGelu", "BiasSplitGelu", "BiasAdd", "BiasSoftmax",
		"FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", "FusedGemm", "GemmFastGelu", "FusedConv", "MatMulNBits",
		"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "GroupNorm", "SkipGroupNorm", "EmbedLayerNormalization",
		"MultiHeadAttention", "Attention", "GroupQueryAttention", "RotaryEmbedding",
		"QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearReduceMean",
		"QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearConcat", "QLinearWhere", "QLinearConv", "QGemm",
		"MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QAttention", "QuantizeLinear", "DequantizeLinear",
		"Trilu", "GatherND", "Range", "Pad", "ExpandDims", "TorchEmbedding", "ComplexMul", "ComplexMulConj", "Rfft", "Irfft",
	} {
		rules = append(rules, Rule{Domain: "com.microsoft", Name: name, Kind: Decomposed, Check: op.CheckDecomposition})
	}
	return rules
}
