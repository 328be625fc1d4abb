package isa

// Form is the shape of an instruction's operands.
type Form uint8

// The forms, one for each operand struct.
const (
	FormDMA Form = iota
	FormGather
	FormMatmul
	FormVec
	FormReduce
	FormScan
	FormArg
	FormIota
	FormRows
	FormSync
)

// New returns zero operands of a form.
func (f Form) New() Args {
	switch f {
	case FormDMA:
		return new(DMA)
	case FormGather:
		return new(Gather)
	case FormMatmul:
		return new(Matmul)
	case FormVec:
		return new(Vec)
	case FormReduce:
		return new(Reduce)
	case FormScan:
		return new(Scan)
	case FormArg:
		return new(Arg)
	case FormIota:
		return new(Iota)
	case FormRows:
		return new(Rows)
	case FormSync:
		return new(Sync)
	}
	return nil
}

// Intrinsic is the one description of an instruction.
type Intrinsic struct {
	Op    Op
	Name  string
	Queue Queue
	// Any says that the instruction may stand in every queue (signal, wait); Queue is meaningless then.
	Any  bool
	Form Form
	// Operands is the number of source operands of an element-wise instruction: 1 has a, 2 a and b, 3 a, b and c.
	Operands int
	// Special says that elements cost the rate of special functions.
	Special bool
	// F32 and I32 give the value of one element; nil where the instruction has no such type. A comparison of floats is
	// FCmp. The float functions take operands and give results to which flushing, if the machine flushes, is applied
	// around the call.
	F32  func(a, b, c float32) float32
	I32  func(a, b, c int32) int32
	FCmp func(a, b float32) bool
	// Formula is the meaning in one line; Doc adds the edge cases.
	Formula string
	Doc     string
}

// Intrinsics describes each instruction, at the index of its operation code. It is never written to.
var Intrinsics = numbered([NumOps]Intrinsic{
	OpLoad: {Name: "load", Queue: Load, Form: FormDMA, Formula: "local[i] = dram[i]",
		Doc: "Reads a box from DRAM, converts to the local type, and writes the padding around it. Rounding is not needed: f16 and bf16 widen exactly."},
	OpGather: {Name: "gather", Queue: Load, Form: FormGather, Formula: "local[r,:] = dram[index[r],:]",
		Doc: "Reads rows of a table in DRAM. The indices are read from the local memory when the instruction starts."},
	OpStore: {Name: "store", Queue: Store, Form: FormDMA, Formula: "dram[i] = update(dram[i], local[i])",
		Doc: "Writes a box to DRAM, converting from the local type: f32 to f16 or bf16 rounds to nearest even, i32 to u8 or i8 keeps the low byte. An update reads, combines and writes; elements that share an address combine in order of index."},
	OpScatter: {Name: "scatter", Queue: Store, Form: FormGather, Formula: "dram[index[r],:] = update(dram[index[r],:], local[r,:])",
		Doc: "Writes rows of a table in DRAM, in order of r, so equal indices combine in a defined order."},
	OpMatmul: {Name: "matmul", Queue: Matrix, Form: FormMatmul, Formula: "c[m,n] = (acc ? c[m,n] : +0) + sum_k a[m,k] * b[k,n]",
		Doc: "The terms are added one by one in the order of k (k0 outermost), each by one MAC of the numeric contract. f16 and bf16 operands widen to float32 first, exactly."},

	OpMov: {Name: "mov", Queue: Vector, Form: FormVec, Operands: 1, Formula: "a", F32: func(a, _, _ float32) float32 { return a }, I32: func(a, _, _ int32) int32 { return a },
		Doc: "Moves bits: NaN payloads stay, denormals are never flushed."},
	OpAdd: {Name: "add", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a + b", F32: func(a, b, _ float32) float32 { return a + b }, I32: func(a, b, _ int32) int32 { return a + b }},
	OpSub: {Name: "sub", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a - b", F32: func(a, b, _ float32) float32 { return a - b }, I32: func(a, b, _ int32) int32 { return a - b }},
	OpMul: {Name: "mul", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a * b", F32: func(a, b, _ float32) float32 { return a * b }, I32: func(a, b, _ int32) int32 { return a * b }},
	OpDiv: {Name: "div", Queue: Vector, Form: FormVec, Operands: 2, Special: true, Formula: "a / b", F32: func(a, b, _ float32) float32 { return a / b }, I32: divI32,
		Doc: "Floats: correctly rounded. Integers: truncated toward zero; x / 0 is 0."},
	OpMod: {Name: "mod", Queue: Vector, Form: FormVec, Operands: 2, Special: true, Formula: "a - trunc(a / b) * b, exact", F32: modF32, I32: modI32,
		Doc: "The result has the sign of a. Integers: x mod 0 is 0."},
	OpFma: {Name: "fma", Queue: Vector, Form: FormVec, Operands: 3, Formula: "a * b + c", F32: fmaF32, I32: func(a, b, c int32) int32 { return a*b + c },
		Doc: "Two roundings, or one where the machine's MAC is fused."},
	OpAddMax: {Name: "addmax", Queue: Vector, Form: FormVec, Operands: 3, Formula: "max(a + b, c)", F32: func(a, b, c float32) float32 { return max(float32(a+b), c) }, I32: func(a, b, c int32) int32 { return max(a+b, c) },
		Doc: "A bias and a rectifier in one pass over the accumulator."},
	OpMax: {Name: "max", Queue: Vector, Form: FormVec, Operands: 2, Formula: "max(a, b)", F32: func(a, b, _ float32) float32 { return max(a, b) }, I32: func(a, b, _ int32) int32 { return max(a, b) },
		Doc: "NaN if either is NaN; +0 is larger than -0."},
	OpMin: {Name: "min", Queue: Vector, Form: FormVec, Operands: 2, Formula: "min(a, b)", F32: func(a, b, _ float32) float32 { return min(a, b) }, I32: func(a, b, _ int32) int32 { return min(a, b) },
		Doc: "NaN if either is NaN; -0 is smaller than +0."},
	OpNeg:   {Name: "neg", Queue: Vector, Form: FormVec, Operands: 1, Formula: "-a", F32: func(a, _, _ float32) float32 { return -a }, I32: func(a, _, _ int32) int32 { return -a }},
	OpAbs:   {Name: "abs", Queue: Vector, Form: FormVec, Operands: 1, Formula: "|a|", F32: absF32, I32: absI32},
	OpSign:  {Name: "sign", Queue: Vector, Form: FormVec, Operands: 1, Formula: "a > 0 ? 1 : a < 0 ? -1 : a", F32: signF32, I32: signI32, Doc: "Zeros keep their sign, NaN stays NaN."},
	OpFloor: {Name: "floor", Queue: Vector, Form: FormVec, Operands: 1, Formula: "floor(a)", F32: floorF32},
	OpCeil:  {Name: "ceil", Queue: Vector, Form: FormVec, Operands: 1, Formula: "ceil(a)", F32: ceilF32},
	OpRound: {Name: "round", Queue: Vector, Form: FormVec, Operands: 1, Formula: "nearest integer, ties to even", F32: roundF32},
	OpTrunc: {Name: "trunc", Queue: Vector, Form: FormVec, Operands: 1, Formula: "integer toward zero", F32: truncF32},
	OpEq:    {Name: "eq", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a == b ? 1 : 0", FCmp: func(a, b float32) bool { return a == b }, I32: func(a, b, _ int32) int32 { return bit(a == b) }, Doc: "The result is i32."},
	OpNe:    {Name: "ne", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a != b ? 1 : 0", FCmp: func(a, b float32) bool { return a != b }, I32: func(a, b, _ int32) int32 { return bit(a != b) }, Doc: "The result is i32. ne(a, a) finds NaNs."},
	OpLt:    {Name: "lt", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a < b ? 1 : 0", FCmp: func(a, b float32) bool { return a < b }, I32: func(a, b, _ int32) int32 { return bit(a < b) }, Doc: "The result is i32."},
	OpLe:    {Name: "le", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a <= b ? 1 : 0", FCmp: func(a, b float32) bool { return a <= b }, I32: func(a, b, _ int32) int32 { return bit(a <= b) }, Doc: "The result is i32."},
	OpSelect: {Name: "select", Queue: Vector, Form: FormVec, Operands: 3, Formula: "c != 0 ? a : b", I32: func(a, b, c int32) int32 {
		if c != 0 {
			return a
		}
		return b
	}, Doc: "Moves bits of either type; c is i32. The type is written i32 in every case."},
	OpAnd: {Name: "and", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a & b", I32: func(a, b, _ int32) int32 { return a & b }},
	OpOr:  {Name: "or", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a | b", I32: func(a, b, _ int32) int32 { return a | b }},
	OpXor: {Name: "xor", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a ^ b", I32: func(a, b, _ int32) int32 { return a ^ b }},
	OpShl: {Name: "shl", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a << (b & 31)", I32: func(a, b, _ int32) int32 { return a << (uint32(b) & 31) }},
	OpShr: {Name: "shr", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a >> (b & 31), zeros from the left", I32: func(a, b, _ int32) int32 { return int32(uint32(a) >> (uint32(b) & 31)) }},
	OpSar: {Name: "sar", Queue: Vector, Form: FormVec, Operands: 2, Formula: "a >> (b & 31), the sign from the left", I32: func(a, b, _ int32) int32 { return a >> (uint32(b) & 31) }},

	OpRecip:   {Name: "recip", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "1 / a", F32: func(a, _, _ float32) float32 { return 1 / a }, Doc: "Correctly rounded."},
	OpSqrt:    {Name: "sqrt", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "sqrt(a)", F32: sqrtF32, Doc: "Correctly rounded."},
	OpRsqrt:   {Name: "rsqrt", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(1 / sqrt(f64(a)))", F32: rsqrtF32, Doc: "Root and quotient in binary64, then one rounding to float32."},
	OpExp:     {Name: "exp", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(exp64(a))", F32: wide(exp64)},
	OpExp2:    {Name: "exp2", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(exp2_64(a))", F32: wide(exp2_64)},
	OpExpm1:   {Name: "expm1", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(expm1_64(a))", F32: wide(expm1_64)},
	OpLog:     {Name: "log", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(log64(a))", F32: wide(log64)},
	OpLog2:    {Name: "log2", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(log2_64(a))", F32: wide(log2_64)},
	OpLog1p:   {Name: "log1p", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(log1p_64(a))", F32: wide(log1p_64)},
	OpPow:     {Name: "pow", Queue: Vector, Form: FormVec, Operands: 2, Special: true, Formula: "a to the power b", F32: powF32, Doc: "f32(exp64(b * log64(|a|))) with the sign and the special cases of IEEE 754 pow; powers 0, 1, 2, 0.5, -1 and -0.5 are products, roots and quotients."},
	OpSin:     {Name: "sin", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(sin64(a))", F32: wide(sin64)},
	OpCos:     {Name: "cos", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(cos64(a))", F32: wide(cos64)},
	OpTan:     {Name: "tan", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(sin64(a) / cos64(a))", F32: wide(tan64)},
	OpAsin:    {Name: "asin", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(atan64(a / sqrt((1 - a) * (1 + a))))", F32: wide(asin64)},
	OpAcos:    {Name: "acos", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(2 * atan64(sqrt((1 - a) / (1 + a))))", F32: wide(acos64)},
	OpAtan:    {Name: "atan", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(atan64(a))", F32: wide(atan64)},
	OpSinh:    {Name: "sinh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(sinh64(a))", F32: wide(sinh64)},
	OpCosh:    {Name: "cosh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(cosh64(a))", F32: wide(cosh64)},
	OpTanh:    {Name: "tanh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(tanh64(a))", F32: wide(tanh64)},
	OpAsinh:   {Name: "asinh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(asinh64(a))", F32: wide(asinh64)},
	OpAcosh:   {Name: "acosh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(acosh64(a))", F32: wide(acosh64)},
	OpAtanh:   {Name: "atanh", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(atanh64(a))", F32: wide(atanh64)},
	OpErf:     {Name: "erf", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(erf64(a))", F32: wide(erf64)},
	OpSigmoid: {Name: "sigmoid", Queue: Vector, Form: FormVec, Operands: 1, Special: true, Formula: "f32(1 / (1 + exp64(-a)))", F32: wide(sigmoid64)},
	OpCvt: {Name: "cvt", Queue: Vector, Form: FormVec, Operands: 1, Formula: "a in the type of the result",
		Doc: "To a narrower float rounds to nearest even. f32 to i32 truncates toward zero and saturates, NaN gives 0. i32 to f32 rounds to nearest even. Equal types round nothing. f16 and bf16 elements take two bytes and their addresses are multiples of two."},

	OpSum:  {Name: "sum", Queue: Vector, Form: FormReduce, Operands: 1, Formula: "sum of a", F32: func(a, b, _ float32) float32 { return a + b }, I32: func(a, b, _ int32) int32 { return a + b }, Doc: reduceDoc},
	OpProd: {Name: "prod", Queue: Vector, Form: FormReduce, Operands: 1, Formula: "product of a", F32: func(a, b, _ float32) float32 { return a * b }, I32: func(a, b, _ int32) int32 { return a * b }, Doc: reduceDoc},
	OpRMax: {Name: "rmax", Queue: Vector, Form: FormReduce, Operands: 1, Formula: "max of a", F32: func(a, b, _ float32) float32 { return max(a, b) }, I32: func(a, b, _ int32) int32 { return max(a, b) }, Doc: reduceDoc},
	OpRMin: {Name: "rmin", Queue: Vector, Form: FormReduce, Operands: 1, Formula: "min of a", F32: func(a, b, _ float32) float32 { return min(a, b) }, I32: func(a, b, _ int32) int32 { return min(a, b) }, Doc: reduceDoc},
	OpDot:  {Name: "dot", Queue: Vector, Form: FormReduce, Operands: 2, Formula: "sum of a * b", F32: func(a, b, _ float32) float32 { return a + b }, I32: func(a, b, _ int32) int32 { return a + b }, Doc: "The products are rounded to float32, then reduced as sum does. Operands may be equal: a sum of squares."},

	OpScanSum:  {Name: "scansum", Queue: Vector, Form: FormScan, Operands: 1, Formula: "dst[i] = a[0] + ... + a[i]", F32: func(a, b, _ float32) float32 { return a + b }, I32: func(a, b, _ int32) int32 { return a + b }, Doc: "In order along the innermost dimension, starting with a[0], or with 0 if exclusive."},
	OpScanProd: {Name: "scanprod", Queue: Vector, Form: FormScan, Operands: 1, Formula: "dst[i] = a[0] * ... * a[i]", F32: func(a, b, _ float32) float32 { return a * b }, I32: func(a, b, _ int32) int32 { return a * b }, Doc: "In order along the innermost dimension, starting with a[0], or with 1 if exclusive."},
	OpArgMax:   {Name: "argmax", Queue: Vector, Form: FormArg, Operands: 1, Formula: "index of the largest a", FCmp: func(a, b float32) bool { return a > b || a != a && b == b }, I32: func(a, b, _ int32) int32 { return bit(a > b) }, Doc: "A NaN is larger than all numbers; -0 equals +0."},
	OpArgMin:   {Name: "argmin", Queue: Vector, Form: FormArg, Operands: 1, Formula: "index of the smallest a", FCmp: func(a, b float32) bool { return a < b || a != a && b == b }, I32: func(a, b, _ int32) int32 { return bit(a < b) }, Doc: "A NaN is smaller than all numbers; -0 equals +0."},
	OpIota:     {Name: "iota", Queue: Vector, Form: FormIota, Formula: "dst[i] = start + sum_d i_d * step_d", Doc: "i32, wrapping."},
	OpRowsGet:  {Name: "vgather", Queue: Vector, Form: FormRows, Formula: "local[r,:] = table[index[r],:]"},
	OpRowsPut:  {Name: "vscatter", Queue: Vector, Form: FormRows, Formula: "table[index[r],:] = update(table[index[r],:], local[r,:])", Doc: "In order of r."},

	OpSignal: {Name: "signal", Any: true, Form: FormSync, Formula: "sem++ when all earlier instructions of this queue are complete", Doc: "A semaphore is signalled from one queue only."},
	OpWait:   {Name: "wait", Any: true, Form: FormSync, Formula: "hold this queue until sem >= value", Doc: "The count is not consumed: semaphores only grow, so several queues may wait for one count."},
})

// numbered gives each description the operation code that is its index.
func numbered(list [NumOps]Intrinsic) [NumOps]Intrinsic {
	for i := range list {
		list[i].Op = Op(i)
	}
	return list
}

const reduceDoc = "The inner red dimensions are counted as one index j. There are 16 partial results: element j goes to partial j mod 16, in order; a partial without an element is skipped; then for s = 8, 4, 2, 1 partial p takes in partial p + s. Where acc is set, the result is the old value of dst combined with that."
