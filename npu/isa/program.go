package isa

import "gradtool/npu/machine"

// Program is a compiled step: the instruction streams of the four queues, what DRAM holds at the start, and where inputs
// and outputs are.
type Program struct {
	Machine *machine.Machine
	Name    string
	// SourceHash is the SHA-256 in hexadecimal of the model that was lowered, "" where unknown.
	SourceHash string
	Nodes      []Source
	Queues     [NumQueues][]Instr
	// DRAMBytes is the size of the DRAM image: all addresses are below it.
	DRAMBytes int64
	Segments  []Segment // disjoint, by address
	Inputs    []Tensor
	Outputs   []Tensor
	// State pairs an input with the output that holds its next value.
	State []Pair
	// Fallbacks lists nodes that were not lowered; a program with any does not run.
	Fallbacks []string
	// Cost is a summary of the simulated time, nil where it was not computed.
	Cost *Cost
}

// Cost summarises the simulated time and traffic of a program on its machine.
type Cost struct {
	Cycles    int64 `json:"cycles"`
	MACs      int64 `json:"macs"`
	DRAMRead  int64 `json:"dram_read_bytes"`
	DRAMWrite int64 `json:"dram_write_bytes"`
}

// Source is a node of the model as reports and errors name it.
type Source struct {
	Name    string `json:"name"`
	Op      string `json:"op"`
	Role    string `json:"role"` // forward, backward, loss, optimizer, recompute
	Cluster string `json:"cluster,omitempty"`
}

// Segment is initialised DRAM: weights and constants in the form of the device.
type Segment struct {
	Name string
	Addr int64
	Data []byte
}

// Tensor is an input or output of a program. The elements lie contiguous from Addr, of type Device.
type Tensor struct {
	Name string `json:"name"`
	// Type is the ONNX element type by name (float, int64, bool, float16, ...): what the caller sees.
	Type   string  `json:"type"`
	Device DType   `json:"device"`
	Shape  []int64 `json:"shape"`
	Addr   int64   `json:"addr"`
	// Default says that a segment holds a value for an input that the caller does not give.
	Default bool `json:"default,omitempty"`
	// Below, if not 0, is a number above every integer that makes sense here: the least size of the axes that the input indexes. It is
	// for who makes values up.
	Below int64 `json:"below,omitempty"`
}

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Pair names an input and the output that holds its next value.
type Pair struct {
	Input  string `json:"input"`
	Output string `json:"output"`
}
