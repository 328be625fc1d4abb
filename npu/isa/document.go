package isa

import (
	"fmt"
	"strings"
)

// Document returns the reference of the instruction set in Markdown, made of the tables that the simulator, the encoder and
// the assembler work by.
func Document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("\n## Instructions\n\n| code | name | queue | meaning |\n|---|---|---|---|\n")
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	for op := OpNone + 1; op < NumOps; op++ {
		d := op.Intrinsic()
		queue := d.Queue.String()
		if d.Any {
			queue = "any"
		}
		fmt.Fprintf(&b, "| %d | [%s](#%s) | %s | %s |\n", uint8(op), d.Name, d.Name, queue, cell(d.Formula))
	}
	b.WriteString("\n## Each instruction\n")
	for op := OpNone + 1; op < NumOps; op++ {
		d := op.Intrinsic()
		fmt.Fprintf(&b, "\n### %s\n\n`%s`\n\n", d.Name, d.Formula)
		var facts []string
		switch types := d.types(); {
		case d.Form == FormVec || d.Form == FormReduce || d.Form == FormScan || d.Form == FormArg:
			if op != OpCvt {
				facts = append(facts, "Types: "+types+".")
			}
		}
		if d.Special {
			facts = append(facts, "Floats take the rate of special functions.")
		}
		if d.Doc != "" {
			facts = append(facts, d.Doc)
		}
		if len(facts) > 0 {
			b.WriteString(strings.Join(facts, " ") + "\n\n")
		}
		var names []string
		for _, f := range d.Form.Fields() {
			if !d.has(f.Name) {
				continue
			}
			names = append(names, "`"+f.Name+"`")
		}
		fmt.Fprintf(&b, "Operands (%s): %s.\n", d.Form, strings.Join(names, ", "))
	}
	b.WriteString("\n## Forms of operands\n\nA value that is 0 is not encoded and not written in assembly.\n")
	for f := range FormSync + 1 {
		fmt.Fprintf(&b, "\n### form %s\n\n| operand | kind | values | meaning |\n|---|---|---|---|\n", f)
		for _, fd := range f.Fields() {
			n := fd.Len
			if fd.Kind == "operand" {
				n = 1 + Dims + 2
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", fd.Name, fd.Kind, n, cell(fd.Doc))
		}
	}
	b.WriteString(documentTail)
	return b.String()
}

// types names the element types of an instruction.
func (d *Intrinsic) types() string {
	switch {
	case d.Op == OpSelect:
		return "either, written i32"
	case (d.F32 != nil || d.FCmp != nil) && d.I32 != nil:
		return "f32, i32"
	case d.I32 != nil:
		return "i32"
	}
	return "f32"
}

// has reports whether an instruction reads the operand of a name that its form has.
func (d *Intrinsic) has(name string) bool {
	switch d.Form {
	case FormVec:
		switch name {
		case "b":
			return d.Operands > 1
		case "c":
			return d.Operands > 2
		case "to":
			return d.Op == OpCvt
		}
	case FormReduce:
		return name != "b" || d.Op == OpDot
	case FormDMA:
		switch name {
		case "lo", "hi", "fill":
			return d.Op == OpLoad
		case "update":
			return d.Op == OpStore
		}
	case FormGather:
		switch name {
		case "fill":
			return d.Op == OpGather
		case "update":
			return d.Op == OpScatter
		}
	case FormRows:
		switch name {
		case "fill":
			return d.Op == OpRowsGet
		case "update":
			return d.Op == OpRowsPut
		}
	case FormSync:
		return name != "value" || d.Op == OpWait
	}
	return true
}

// String names the form as the documentation does.
func (f Form) String() string {
	names := [...]string{"dma", "gather", "matmul", "vector", "reduce", "scan", "arg", "iota", "rows", "sync"}
	if int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("form(%d)", uint8(f))
}

const documentHead = `# The instruction set of the reference NPU

Generated from the tables of package npu/isa by its tests (` + "`go test ./npu/isa -run TestDocument -update`" + `): do not edit.

## The machine

Four units run at the same time, each with a queue of instructions that it carries out in order: load (DRAM to chip), store (chip to
DRAM), matrix (a systolic array of multiply-accumulate cells) and vector. An instruction sees all effects of earlier instructions
of its queue. Between queues only semaphores order: signal adds one to a semaphore once all earlier instructions of its queue are
complete, wait holds its queue until a semaphore has reached a count. Counts only grow. A program in which two instructions
touch a word, one of them writing, without an order between them is wrong, and the simulator says so.

Three memories, all little-endian: DRAM, addressed in bytes; the scratchpad and the accumulator on chip, addressed by 32 bits
of which bit 31 picks the accumulator (in assembly sp:0x40 and acc:0x40). Elements on chip are 4 bytes, float32 or int32, but
for 16-bit floats that matmul and cvt read. Integers and booleans of a model are int32; floats of 16 bits are widened by the load.

Sizes, rates, latencies and the switches of the arithmetic are in a machine description; ref-small, ref-edge and ref-server are built in
(` + "`gradtool lower --machine`" + `). A JSON file describes others.

## Arithmetic

The contract: what an instruction computes is the same, bit for bit, whatever the machine's sizes and rates, but for the switches below. Which
instructions a model becomes, and with them the order of sums, depends on sizes ([LOWER.md](LOWER.md#bits)). The bits of a NaN are open; every
NaN counts as equal.

* Floats are IEEE 754 binary32, rounded to nearest, ties to even.
* A MAC is c + a * b: the product is rounded, then the sum; once, if the machine says numerics.fused.
* With numerics.flush_denormals, denormal operands count as zero and denormal results of arithmetic become zero, keeping their
  sign, in the array and the vector unit; moves, selections and conversions leave bits alone.
* matmul adds its terms one by one in the order of k, the outermost count of k first, starting from +0 or from the old c.
* Reductions have 16 partial results, combined pairwise at the end (see sum).
* Special functions are computed in binary64 by the series of npu/isa/special.go and rounded once to binary32: within half a unit in
  the last place, but for rare arguments whose result lies within 1e-13 of a tie.
* Integers are 32 bits and wrap.

## Time

` + "`gradtool profile`" + ` simulates it. A unit works on one instruction at a time. DMA transfers cost their bursts at the bandwidth of DRAM, and a
latency that overlaps up to the number of outstanding transfers. A weight-stationary matmul costs, for each fold of rows x cols of
B, the rows of A that stream through, the loading of the next weights passing under it; an array without overlap costs folds * (T + 2
rows + cols - 2) - 1. Bank b of a memory holds the words w with w mod banks = b; elements of one access that share a bank cost a cycle each.
With array.transposer, blocks of an operand of matmul may be fetched along either dimension. The vector unit takes lanes elements a cycle
in the order of the counts, innermost first, or special elements of special functions. Units that together ask for more of DRAM, scratchpad
or accumulator than there is slow down in proportion.
`

const documentTail = `
## Binary form

An instruction is a sequence of little-endian 32-bit words:

| word | contents |
|---|---|
| 0 | operation code in bits 7:0, length in words in bits 15:8, else 0 |
| 1 | number of the source node + 1, 0 for none |
| 2, 3 | a mask: bit i says that value i of the form follows, low word first |
| ... | the values that are not 0, in the order of the form's operands: a word each, two for 64-bit values (kind i64), low word first |

An array is a value for each element; an operand of a vector instruction is an address, six strides, the flag that it is an immediate,
and the immediate's bits. Values that are 0 do not follow, so that an instruction has one form. Enumerations are numbered in
this order: types f32, i32, f16, bf16, u8, i8; flows ws, os; updates set, add, mul, max, min; purposes activation, input, weight,
gradient, output, state, spill.

## Files

A program is an ELF64 file of machine type 0x6e75, which readelf opens. The note of type 2 that follows the header holds the SHA-256 of the
file, its own bytes being zero; a file that does not match it is refused. The note of type 1 holds the manifest, JSON of the schema
gradtool.npu/1: the machine and its hash, the hash of the model, inputs, outputs and state with shape, type and address, what integer
inputs are below of where they are indices, the source nodes, the cost. Each queue's code and each segment of initialised DRAM is a PT_LOAD segment; data lie at their DRAM
addresses, code at 2^56 + queue * 2^40.
`
