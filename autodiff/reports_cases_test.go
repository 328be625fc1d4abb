package autodiff

import (
	"math"

	"gradtool/graph/op"
)

// reports lists the situations: first operators without a gradient elsewhere, then gradients that were wrong or could not
// be built, then points at which conventions differ.
func reports() []report {
	v := func(x ...float64) op.Arg { return op.Arg{Values: x} }
	inf := math.Inf(1)
	opset := func(n string) string { return `<ir_version: 8, opset_import: ["" : ` + n + `]>` }
	return []report{
		{name: "onnxruntime#22407", what: "Atan in a model of three nodes",
			model: `(float[N,3] x) => (float[N,3] y) { a = Neg(x) b = Atan(a) y = Exp(b) }`},
		{name: "onnxruntime#17710", what: "one transposed convolution",
			model: `(float[1,2,3,3] x, float[2,3,3,3] w, float[3] b) => (float[1,3,7,7] y) { y = ConvTranspose<strides: ints = [2,2]>(x, w, b) }`},
		{name: "onnxruntime#16866", what: "a U-shaped network with upsampling",
			model: `(float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,4,4,4] y) {
				down = AveragePool<kernel_shape: ints = [2,2], strides: ints = [2,2]>(x)
				c = Conv<pads: ints = [1,1,1,1]>(down, w)
				scales = Constant<value_floats: floats = [1.0,1.0,2.0,2.0]>()
				up = Resize<mode: string = "linear">(c, "", scales)
				y = Concat<axis: int = 1>(x, up) }`},
		{name: "onnxruntime#14412", what: "ReduceMin over an axis of a matrix of distances",
			model: `(float[N,3] a, float[M,3] b) => (float[N] y) {
				one = Constant<value_ints: ints = [1]>()
				zero = Constant<value_ints: ints = [0]>()
				last = Constant<value_ints: ints = [2]>()
				aa = Unsqueeze(a, one) bb = Unsqueeze(b, zero)
				d = Sub(aa, bb) sq = Mul(d, d)
				s = ReduceSum<keepdims: int = 0>(sq, last)
				r = Sqrt(s)
				y = ReduceMin<axes: ints = [1], keepdims: int = 0>(r) }`},
		{name: "onnxruntime#14139", what: "a GRU, whole sequence and last state",
			model: `(float[3,N,2] x, float[1,9,2] w, float[1,9,3] r, float[1,18] b, float[1,N,3] h) => (float[3,1,N,3] y, float[1,N,3] last) {
				y, last = GRU<hidden_size: int = 3, linear_before_reset: int = 1>(x, w, r, b, "", h) }`},
		{name: "onnxruntime#10517", what: "an If that depends on a shape",
			model: `(float[N,3] x, float[3] w) => (float[N,3] y) {
				s = Shape(x) zero = Constant<value_int: int = 0>() n = Gather(s, zero)
				one = Constant<value_int: int = 1>() many = Greater(n, one)
				y = If(many)<then_branch: graph = t () => (float[N,3] a) { a = Mul(x, w) }, else_branch: graph = e () => (float[N,3] b) { b = Exp(x) }> }`},
		{name: "onnxruntime#11268", what: "an If on a run-time condition whose branches capture different values",
			model: `(float[2] x, float[2] w, bool c) => (float[2] y) {
				y = If(c)<then_branch: graph = t () => (float[2] a) { a = Mul(x, w) }, else_branch: graph = e () => (float[2] b) { b = Exp(w) }> }`},
		{name: "onnxruntime#18265", what: "LeakyRelu",
			model: `(float[N,3] x) => (float[N,3] y) { y = LeakyRelu<alpha: float = 0.2>(x) }`},
		{name: "onnxruntime#20781", what: "a product with a matrix of 4 bits, by operand and scales",
			head:  `<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>`,
			model: `(float[N,16] x, uint8[2,1,8] q, float[2] s) => (float[N,2] y) { y = com.microsoft.MatMulNBits<K: int = 16, N: int = 2, bits: int = 4, block_size: int = 16>(x, q, s) }`},
		{name: "onnxruntime#9375", what: "functions of the model, one calling the other",
			head:  `<ir_version: 8, opset_import: ["" : 17, "local" : 1]>`,
			model: `(float[N,3] x, float[3] w) => (float[N,3] y) { y = local.outer(x, w) }`,
			functions: `<domain: "local", opset_import: ["" : 17]> inner (a) => (b) { b = Tanh(a) }
				<domain: "local", opset_import: ["" : 17, "local" : 1]> outer (a, w) => (b) { c = local.inner(a) b = Mul(c, w) }`},
		{name: "onnxruntime#21827", what: "SimplifiedLayerNormalization, which an optimizer had left in the model",
			model: `(float[N,4] x, float[4] s) => (float[N,4] y) { y = SimplifiedLayerNormalization<axis: int = -1, epsilon: float = 0.001>(x, s) }`},
		{name: "onnxruntime-training-examples#185", what: "Reciprocal",
			model: `(float[N,3] x) => (float[N,3] y) { e = Exp(x) y = Reciprocal(e) }`},
		{name: "onnxruntime#13649", what: "quantize and dequantize: straight through inside the range of codes, nothing outside",
			model: `(float[4] x) => (float[4] y) <float s = {0.5}, int8 z = {0}> { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }`,
			in:    []op.Arg{v(0.3, -7.1, 100, -100)}, want: map[string][]float64{"x": {1, 1, 0, 0}}},
		{name: "onnxruntime#13777", what: "DynamicQuantizeLinear, which sets its range itself: straight through for what is no extreme",
			model: `(float[4] x) => (float[4] y) { q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z) }`,
			in:    []op.Arg{v(-1, 0.25, 0.5, 3)}, want: map[string][]float64{}},

		{name: "onnxruntime#13738", what: "MatMul of batches whose sizes are symbols, broadcast against a matrix",
			model: `(float[B,T,3] x, float[3,4] w, float[T,B] z) => (float[B,T,4] y, float[B,B] u) { y = MatMul(x, w) s = ReduceSum<keepdims: int = 0>(y, axes) u = MatMul(s, z) axes = Constant<value_ints: ints = [2]>() }`},
		{name: "onnxruntime#18344", what: "three layers of Gemm at opset 10", head: opset("10"),
			model: `(float[N,3] x, float[4,3] w1, float[4] b1, float[4,4] w2, float[4] b2, float[2,4] w3, float[2] b3) => (float[N,2] y) {
				h1 = Gemm<transB: int = 1>(x, w1, b1) a1 = Tanh(h1) h2 = Gemm<transB: int = 1>(a1, w2, b2) a2 = Sigmoid(h2) y = Gemm<transB: int = 1>(a2, w3, b3) }`},
		{name: "onnxruntime#7506", what: "Gemm with two operands", head: opset("12"),
			model: `(float[N,3] x, float[3,2] w) => (float[N,2] y) { y = Gemm<alpha: float = 0.5>(x, w) }`},
		{name: "onnxruntime#19370", what: "training-mode statistics as results, differentiated too",
			model: `(float[3,2] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[3,2] y, float[2] m1, float[2] v1) { y, m1, v1 = BatchNormalization<training_mode: int = 1, momentum: float = 0.7>(x, s, b, m, v) }`},
		{name: "onnxruntime#19427", what: "LayerNormalization with one result",
			model: `(float[N,4] x, float[4] s, float[4] b) => (float[N,4] y) { y = LayerNormalization(x, s, b) }`},
		{name: "onnxruntime#7217", what: "Max of equal operands: both get half",
			model: `(float[3] a, float[3] b) => (float[3] y) { y = Max(a, b) }`,
			in:    []op.Arg{v(1, 1, 1), v(1, 1, 1)}, want: map[string][]float64{"a": {0.5, 0.5, 0.5}, "b": {0.5, 0.5, 0.5}}},
		{name: "onnxruntime#11279", what: "a branch of Where in half precision, the other from float32: gradients keep the types of their operands",
			model: `(bool[3] c, float16[3] a, float[3] b) => (float16[3] y) { h = Cast<to: int = 10>(b) y = Where(c, a, h) }`,
			in:    []op.Arg{v(1, 0, 1), v(1, 2, 3), v(4, 5, 6)}, want: map[string][]float64{"a": {1, 0, 1}, "b": {0, 1, 0}}},
		{name: "onnxruntime#22465", what: "attention with a mask of tokens that Equal, Expand and Where make, as DistilBERT has it",
			model: `(float[1,T,4] q, float[1,T,4] k, float[1,T,4] x, int64[1,T] mask) => (float[1,T,4] y) {
				kt = Transpose<perm: ints = [0,2,1]>(k) scores = MatMul(q, kt)
				zero = Constant<value_int: int = 99>() hidden = Equal(mask, zero)
				one = Constant<value_ints: ints = [1]>() row = Unsqueeze(hidden, one)
				s = Shape(scores) wide = Expand(row, s)
				low = Constant<value_float: float = -3.4e38>() masked = Where(wide, low, scores)
				p = Softmax<axis: int = -1>(masked) y = MatMul(p, x) }`,
			in: []op.Arg{{}, {}, {}, v(1, 99)}},
		{name: "onnxruntime#19351", what: "Shape and Reshape at opset 19", head: `<ir_version: 9, opset_import: ["" : 19]>`,
			model: `(float[N,6] x, float[3,2] w) => (float[N,2,2] y) {
				s = Shape<start: int = 0, end: int = 1>(x) rest = Constant<value_ints: ints = [2,3]>() shape = Concat<axis: int = 0>(s, rest)
				r = Reshape(x, shape) y = MatMul(r, w) }`},
		{name: "onnxruntime#19008", what: "a loss over the outputs of several heads",
			model: `(float[N,3] x, float[3,2] w1, float[3,2] w2, float[N,2] t) => (float loss) {
				a = MatMul(x, w1) b = MatMul(x, w2) sb = Sigmoid(b)
				d1 = Sub(a, t) d2 = Sub(sb, t) q1 = Mul(d1, d1) q2 = Abs(d2)
				l1 = ReduceMean<keepdims: int = 0>(q1) l2 = ReduceMean<keepdims: int = 0>(q2) loss = Add(l1, l2) }`},
		{name: "onnxruntime#13057", what: "the gradient consists of operators that any runtime has",
			model: `(float[N,4] x, float[4,3] w) => (float[N,3] y) { h = MatMul(x, w) y = LogSoftmax<axis: int = -1>(h) }`},
		{name: "pytorch#88740", what: "forces: the gradient of an energy by positions, differentiated again",
			model: `(float[3,2] p, float[2,2] w) => (float e) { h = MatMul(p, w) t = Tanh(h) s = Mul(t, t) e = ReduceSum<keepdims: int = 0>(s) }`, order: 2},
		{name: "MNN#1801", what: "an LSTM in both directions, with lengths",
			model: `(float[3,2,2] x, float[2,8,2] w, float[2,8,2] r, float[2,16] b, int32[2] n) => (float[3,2,2,2] y, float[2,2,2] h, float[2,2,2] c) {
				y, h, c = LSTM<hidden_size: int = 2, direction: string = "bidirectional">(x, w, r, b, n) }`,
			in: []op.Arg{{}, {}, {}, {}, v(3, 2)}},

		{name: "pytorch#2421", what: "a norm at the zero vector, spelled out and as an operator: 0",
			model: `(float[2] x, float[2] z) => (float y, float[1] u) { q = Mul(x, x) s = ReduceSum<keepdims: int = 0>(q) y = Sqrt(s) u = ReduceL2(z) }`,
			in:    []op.Arg{v(0, 0), v(0, 0)}, want: map[string][]float64{"x": {0, 0}, "z": {0, 0}}},
		{name: "jax#21723", what: "the square of a norm at the zero vector: 0",
			model: `(float[2] x) => (float y) { n = ReduceL2<keepdims: int = 0>(x) y = Mul(n, n) }`,
			in:    []op.Arg{v(0, 0)}, want: map[string][]float64{"x": {0, 0}}},
		{name: "pytorch#27134", what: "a^b at a = 0: nothing for b, no NaN",
			model: `(float[2] a, float[2] b) => (float[2] y) { y = Pow(a, b) }`,
			in:    []op.Arg{v(0, 2), v(1, 1)}, want: map[string][]float64{"a": {1, 1}, "b": {0, 2 * math.Ln2}}},
		{name: "pytorch#95180", what: "second order of a^2 at a = 0",
			model: `(float[2] a) => (float[2] y) <float b = {2}> { y = Pow(a, b) }`,
			in:    []op.Arg{v(0, 3)}, order: 2, want: map[string][]float64{"a": {2, 2}}},
		{name: "tensorflow#2295", what: "a^b at a = 0 for b below and above 1",
			model: `(float[3] a) => (float[3] y) <float[3] b = {0,2,3}> { y = Pow(a, b) }`,
			in:    []op.Arg{v(0, 0, 0)}, want: map[string][]float64{"a": {0, 0, 0}}},
		{name: "jax#1052", what: "row norms under a Where: nothing leaks from rows that are zero",
			model: `(float[3,2] x) => (float[3] y) {
				q = Mul(x, x) one = Constant<value_ints: ints = [1]>() s = ReduceSum<keepdims: int = 0>(q, one) zero = Constant<value_float: float = 0.0>()
				some = Greater(s, zero) n = Sqrt(s) y = Where(some, n, zero) }`,
			in: []op.Arg{v(1, 2, 3, 4, 0, 0)}, want: map[string][]float64{"x": {1 / math.Sqrt(5), 2 / math.Sqrt(5), 0.6, 0.8, 0, 0}}},
		{name: "jax#347", what: "sin x / x with the value at 0 replaced",
			model: `(float[2] x) => (float[2] y) <float zero = {0}, float one = {1}> { c = Equal(x, zero) s = Sin(x) d = Div(s, x) y = Where(c, one, d) }`,
			in:    []op.Arg{v(0, 2)}, want: map[string][]float64{"x": {0, (2*math.Cos(2) - math.Sin(2)) / 4}}},
		{name: "jax#5798", what: "logarithms of zero in the branch not taken",
			model: `(float[2] x) => (float[2] y) <float zero = {0}> { c = Greater(x, zero) l = Log(x) y = Where(c, l, zero) }`,
			in:    []op.Arg{v(0, 2)}, want: map[string][]float64{"x": {0, 0.5}}},
		{name: "jax#5798, twice", what: "the same in second order, and an exponential that overflows",
			model: `(float[2] x, float[2] z) => (float[2] y, float[2] u) <float zero = {0}, float big = {50}> {
				c = Greater(x, zero) l = Log(x) y = Where(c, l, zero) d = Greater(z, big) e = Exp(z) u = Where(d, z, e) }`,
			in: []op.Arg{v(0, 2), v(1000, 0)}, order: 2, want: map[string][]float64{"x": {0, -0.25}, "z": {0, 1}}},
		{name: "tinygrad#12409", what: "x sqrt(x) with zero replaced",
			model: `(float[2] x) => (float[2] y) { zero = Constant<value_float: float = 0.0>() c = Equal(x, zero) r = Sqrt(x) p = Mul(x, r) y = Where(c, zero, p) }`,
			in:    []op.Arg{v(0, 4)}, want: map[string][]float64{"x": {0, 3}}},
		{name: "pytorch#41508", what: "a softmax row with everything masked, replaced by zeros: it gets nothing, other rows theirs",
			model: `(float[2,2] x, bool[2,2] keep) => (float[2] y) <float low = {-inf}, float[2] w = {0, 1}, int64[1] last = {1}> {
				m = Where(keep, x, low) p = Softmax<axis: int = -1>(m) bad = IsNaN(p) zero = Constant<value_float: float = 0.0>()
				q = Where(bad, zero, p) r = Mul(q, w) y = ReduceSum<keepdims: int = 0>(r, last) }`,
			in: []op.Arg{v(1, 2, 0, 0), v(0, 0, 1, 1)}, want: map[string][]float64{"x": {0, 0, -0.25, 0.25}}},
		{name: "pytorch#131060", what: "the same with a logarithm",
			model: `(float[2,2] x) => (float[2] y) <float low = {-inf}, float[2] w = {0, 1}, int64[1] last = {1}> {
				p = LogSoftmax<axis: int = -1>(x) bad = IsNaN(p) zero = Constant<value_float: float = 0.0>()
				q = Where(bad, zero, p) r = Mul(q, w) y = ReduceSum<keepdims: int = 0>(r, last) }`,
			in: []op.Arg{v(-inf, -inf, 0, 0)}, want: map[string][]float64{"x": {0, 0, -0.5, 0.5}}},
		{name: "pytorch#7002", what: "clamp at its bounds: 1",
			model: `(float[4] x) => (float[4] y) <float a = {0}, float b = {6}> { y = Clip(x, a, b) }`,
			in:    []op.Arg{v(0, 6, -1, 3)}, want: map[string][]float64{"x": {1, 1, 0, 1}}},
		{name: "pytorch#184572", what: "relu, maximum and clamp at 0: 0, one half, 1",
			model: `(float[1] a, float[1] b, float[1] c) => (float[1] x, float[1] y, float[1] z) <float zero = {0}> { x = Relu(a) y = Max(b, zero) z = Clip(c, zero) }`,
			in:    []op.Arg{v(0), v(0), v(0)}, want: map[string][]float64{"a": {0}, "b": {0.5}, "c": {1}}},
		{name: "pytorch#56734", what: "the maximum of equal elements: shared",
			model: `(float[3] x) => (float[1] y) { y = ReduceMax(x) }`,
			in:    []op.Arg{v(0.6, 0.6, 0.3)}, want: map[string][]float64{"x": {0.5, 0.5, 0}}},
		{name: "mxnet#9172", what: "GatherND with equal indices: contributions add up",
			model: `(float[2,2] x, int64[3,2] i) => (float[3] y) { y = GatherND(x, i) }`,
			in:    []op.Arg{v(1, 2, 3, 4), v(0, 0, 1, 1, 1, 1)}, want: map[string][]float64{"x": {1, 0, 0, 2}}},
		{name: "pytorch#188843", what: "scattered updates where the indices are fewer than the data",
			model: `(float[4,3] x, float[1,2] u, int64[1,2] i) => (float[4,3] y) { y = ScatterElements<axis: int = 0>(x, i, u) }`,
			in:    []op.Arg{{}, {}, v(3, 1)}, want: map[string][]float64{"x": {1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1}, "u": {1, 1}}},
		{name: "jax#83", what: "reverse mode through a loop that ends when a condition says so",
			model: `(float[2] x, float[2] w) => (float[2] y) <bool yes = {1}> {
				y = Loop("", yes, x)<body: graph = b (int64 i, bool c, float[2] s) => (bool go, float[2] n) {
					t = Mul(s, w) n = Add(t, x) three = Constant<value_int: int = 3>() go = Less(i, three) }> }`},
	}
}
