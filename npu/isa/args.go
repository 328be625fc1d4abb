package isa

import "math"

// Dims is the number of dimensions of a vector instruction.
const Dims = 6

// MoveDims is the number of dimensions of a DMA transfer.
const MoveDims = 5

// The operand structs below are the one description of what an instruction carries: encoder, assembler and documentation
// read their fields by reflection, in order; the tag gives the name in assembly and what the field means. A field with its
// zero value is not encoded. Counts are outermost first and 0 counts as 1; addresses are in bytes, strides are in elements
// of the operand's type, stride 0 repeats an element.

// Args is one of *DMA, *Gather, *Matmul, *Vec, *Reduce, *Scan, *Arg, *Iota, *Rows and *Sync.
type Args interface{ args() }

// DMA is a transfer between DRAM and a local memory of a box of elements with up to five dimensions.
type DMA struct {
	N       [MoveDims]int32 `isa:"n" doc:"elements of the box along each dimension"`
	DRAM    int64           `isa:"dram" doc:"DRAM address of the first element"`
	DS      [MoveDims]int64 `isa:"ds" doc:"DRAM strides"`
	Local   Local           `isa:"local" doc:"local address of the first element, padding included"`
	LS      [MoveDims]int32 `isa:"ls" doc:"local strides"`
	Type    DType           `isa:"type" doc:"element type in DRAM"`
	LType   DType           `isa:"ltype" doc:"element type in the local memory: the same, f32 for f16 and bf16, or i32 for u8 and i8"`
	Lo      [MoveDims]int32 `isa:"lo" doc:"load: elements of padding before the box, written with fill"`
	Hi      [MoveDims]int32 `isa:"hi" doc:"load: elements of padding behind the box"`
	Fill    Bits            `isa:"fill" doc:"load: bits of a padding element, of the local type"`
	Update  Update          `isa:"update" doc:"store: how DRAM is updated (f32 or i32 on both sides unless set)"`
	Purpose Purpose         `isa:"for" doc:"what the transfer is for; no effect"`
}

// Gather is a transfer of rows between a table in DRAM and a local memory, the row numbers being read from a local memory.
type Gather struct {
	Rows    int32   `isa:"rows" doc:"number of indices, and of rows on the local side"`
	Len     int32   `isa:"len" doc:"contiguous elements of a row"`
	Index   Local   `isa:"index" doc:"local address of the i32 indices"`
	IndexS  int32   `isa:"is" doc:"stride between indices"`
	DRAM    int64   `isa:"dram" doc:"DRAM address of row 0"`
	Pitch   int64   `isa:"pitch" doc:"elements between rows in DRAM"`
	Limit   int32   `isa:"limit" doc:"number of rows of the table; an index below 0 counts from its end"`
	Skip    bool    `isa:"skip" doc:"an index out of range gives a row of fill (gather) or is ignored (scatter); else it is an error"`
	Local   Local   `isa:"local" doc:"local address of the first row"`
	LPitch  int32   `isa:"lpitch" doc:"elements between rows in the local memory"`
	Type    DType   `isa:"type" doc:"element type on both sides: f32 or i32"`
	Fill    Bits    `isa:"fill" doc:"gather: bits of the elements of a skipped row"`
	Update  Update  `isa:"update" doc:"scatter: how a row is updated"`
	Purpose Purpose `isa:"for" doc:"what the transfer is for; no effect"`
}

// Matmul is C[m,n] (+)= sum over k of A[m,k] * B[k,n]. M, N and K are products of up to three counts each, so that a
// convolution reads its input in place: m = (image, row, column), k = (channel, kernel row, kernel column). Where the counts
// of K differ in meaning between A and B, the strides say so.
type Matmul struct {
	M    [3]int32 `isa:"m" doc:"counts of the rows of A and C"`
	N    [3]int32 `isa:"n" doc:"counts of the columns of B and C"`
	K    [3]int32 `isa:"k" doc:"counts of the contraction"`
	A    Local    `isa:"a" doc:"scratchpad address of A[0,0]"`
	AM   [3]int32 `isa:"am" doc:"strides of A along m"`
	AK   [3]int32 `isa:"ak" doc:"strides of A along k"`
	B    Local    `isa:"b" doc:"scratchpad address of B[0,0]"`
	BK   [3]int32 `isa:"bk" doc:"strides of B along k"`
	BN   [3]int32 `isa:"bn" doc:"strides of B along n"`
	C    Local    `isa:"c" doc:"accumulator address of C[0,0]; columns are contiguous f32"`
	CM   int32    `isa:"cm" doc:"elements between rows of C"`
	Type DType    `isa:"type" doc:"type of A and B: f32, bf16 or f16"`
	Acc  bool     `isa:"acc" doc:"add to C; else C is overwritten"`
	Flow Flow     `isa:"flow" doc:"dataflow; no effect on values"`
}

// Operand is a strided operand of a vector instruction, in the scratchpad or the accumulator, or an immediate value.
type Operand struct {
	Addr  Local       `isa:"" doc:"address"`
	S     [Dims]int32 `isa:"s" doc:"strides"`
	IsImm bool        `isa:"imm" doc:"the operand is the value, not memory"`
	Value Bits        `isa:"value" doc:"bits of the immediate"`
}

// Vec is an element-wise vector instruction: dst[i] = op(a[i], b[i], c[i]) over a box. Dst may be exactly one of the
// operands (same address and strides); other overlaps of dst and an operand are errors.
type Vec struct {
	N    [Dims]int32 `isa:"n" doc:"elements along each dimension"`
	Dst  Operand     `isa:"dst" doc:"result"`
	A    Operand     `isa:"a" doc:"first operand"`
	B    Operand     `isa:"b" doc:"second operand"`
	C    Operand     `isa:"c" doc:"third operand"`
	Type DType       `isa:"type" doc:"type of the operands: f32 or i32 (cvt: any but u8 and i8)"`
	To   DType       `isa:"to" doc:"cvt: type of the result"`
}

// Reduce is a reduction of a (times b) over the inner dimensions.
type Reduce struct {
	N    [Dims]int32 `isa:"n" doc:"elements along each dimension"`
	Red  int32       `isa:"red" doc:"number of inner dimensions that are reduced; strides of dst there are ignored"`
	Dst  Operand     `isa:"dst" doc:"result"`
	A    Operand     `isa:"a" doc:"operand"`
	B    Operand     `isa:"b" doc:"rdot: second operand"`
	Type DType       `isa:"type" doc:"f32 or i32"`
	Acc  bool        `isa:"acc" doc:"combine with what dst holds"`
}

// Scan is a running reduction along the innermost dimension, in order; a negative stride runs backward.
type Scan struct {
	N         [Dims]int32 `isa:"n" doc:"elements along each dimension"`
	Dst       Operand     `isa:"dst" doc:"result"`
	A         Operand     `isa:"a" doc:"operand"`
	Type      DType       `isa:"type" doc:"f32 or i32"`
	Exclusive bool        `isa:"exclusive" doc:"element i is the reduction of the elements before i"`
}

// Arg finds the place of the largest or smallest element over the inner dimensions.
type Arg struct {
	N    [Dims]int32 `isa:"n" doc:"elements along each dimension"`
	Red  int32       `isa:"red" doc:"number of inner dimensions that are searched"`
	Dst  Operand     `isa:"dst" doc:"i32 results: the number of the element in the order of the inner dimensions"`
	A    Operand     `isa:"a" doc:"operand"`
	Type DType       `isa:"type" doc:"f32 or i32"`
	Last bool        `isa:"last" doc:"the last of equal elements, else the first"`
}

// Iota fills dst with start plus the sum of index times step over the dimensions.
type Iota struct {
	N     [Dims]int32 `isa:"n" doc:"elements along each dimension"`
	Dst   Operand     `isa:"dst" doc:"i32 result"`
	Start int32       `isa:"start" doc:"value at index 0"`
	Step  [Dims]int32 `isa:"step" doc:"increment along each dimension"`
}

// Rows gathers or scatters rows between two places of the local memories.
type Rows struct {
	Rows   int32  `isa:"rows" doc:"number of indices"`
	Len    int32  `isa:"len" doc:"elements of a row"`
	Index  Local  `isa:"index" doc:"address of the i32 indices"`
	IndexS int32  `isa:"is" doc:"stride between indices"`
	Table  Local  `isa:"table" doc:"address of row 0 of the table"`
	Pitch  int32  `isa:"pitch" doc:"elements between rows of the table"`
	TS     int32  `isa:"ts" doc:"stride of the elements of a row of the table"`
	Limit  int32  `isa:"limit" doc:"number of rows of the table; an index below 0 counts from its end"`
	Skip   bool   `isa:"skip" doc:"an index out of range gives a row of fill (vgather) or is ignored (vscatter); else it is an error"`
	Local  Local  `isa:"local" doc:"address of the first of the rows that are not in the table"`
	LPitch int32  `isa:"lpitch" doc:"elements between those rows"`
	LStep  int32  `isa:"lstep" doc:"stride of the elements of those rows"`
	Type   DType  `isa:"type" doc:"f32 or i32"`
	Fill   Bits   `isa:"fill" doc:"vgather: bits of the elements of a skipped row"`
	Update Update `isa:"update" doc:"vscatter: how a row is updated"`
}

// Sync names a semaphore.
type Sync struct {
	Sem   int32 `isa:"sem" doc:"number of the semaphore"`
	Value int32 `isa:"value" doc:"wait: the count to reach"`
}

func (*DMA) args()    {}
func (*Gather) args() {}
func (*Matmul) args() {}
func (*Vec) args()    {}
func (*Reduce) args() {}
func (*Scan) args()   {}
func (*Arg) args()    {}
func (*Iota) args()   {}
func (*Rows) args()   {}
func (*Sync) args()   {}

// At returns an operand at a local address. Strides are outermost first and may be fewer than Dims: they are those of the
// inner dimensions.
func At(a Local, strides ...int32) Operand {
	o := Operand{Addr: a}
	copy(o.S[Dims-len(strides):], strides)
	return o
}

// Float returns a float32 immediate.
func Float(x float32) Operand { return Operand{IsImm: true, Value: FloatBits(x)} }

// Counts returns the counts of a vector instruction: inner dimensions last.
func Counts(n ...int32) [Dims]int32 {
	var c [Dims]int32
	copy(c[Dims-len(n):], n)
	return c
}

// Float returns the value of an immediate float operand.
func (o Operand) Float() float32 { return math.Float32frombits(uint32(o.Value)) }
