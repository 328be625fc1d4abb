package emit

import (
	"errors"
	"math"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// ErrSpace says that tiles do not fit on chip.
var ErrSpace = errors.New("no room on chip")

// Emitter makes the instructions of a program, kernel by kernel.
type Emitter struct {
	Machine *machine.Machine
	Addr    map[*legal.Buffer]int64 // DRAM address of each buffer
	List    []isa.Instr
	Node    int32 // source of the instructions to come
	// Bus is what a cycle of a transfer that runs under computing costs, in cycles: other kernels want the path to DRAM.
	Bus float64

	Plans []*Plan // of the kernels emitted, in order

	residents map[string]*Plan            // by shape of contraction: the plan that keeps its operands, nil if there is none
	needs     map[string]int              // by shape of contraction: how much of the scratchpad it needs
	held      map[*legal.Buffer]*Resident // what lies in the scratchpad beside the tiles

	written map[*legal.Buffer]int // number of the kernel that wrote a buffer last
	kernels int                   // emitted so far
	role    string
	scratch *pool
	accum   *pool
}

// New returns an emitter for a machine; addr says where buffers lie in DRAM.
func New(m *machine.Machine, addr map[*legal.Buffer]int64) *Emitter {
	return &Emitter{Machine: m, Addr: addr, residents: map[string]*Plan{}, needs: map[string]int{}, written: map[*legal.Buffer]int{},
		scratch: newPool(0, m.Scratchpad.Bytes), accum: newPool(0, m.Accumulator.Bytes)}
}

// Together emits a kernel and others that do not depend on it, nor it on them, in turns, so that one uses the units that the
// other leaves idle: each has its own part of the scratchpad. Node is told of each kernel before it is emitted.
func (e *Emitter) Together(k legal.Kernel, others []legal.Kernel, node func(k legal.Kernel)) error {
	whole, list := e.scratch, e.List
	one, two := whole.split(5, 8)
	defer func() { e.scratch = whole }()
	e.scratch, e.List = one, nil
	node(k)
	if err := e.Kernel(k); err != nil {
		return err
	}
	front := e.List
	e.scratch, e.List = two, nil
	for _, o := range others {
		node(o)
		if err := e.Kernel(o); err != nil {
			return err
		}
	}
	back := e.List
	e.List = list
	j := 0
	for i := range front {
		e.List = append(e.List, front[i])
		for ; j < len(back) && j*len(front) < (i+1)*len(back); j++ {
			e.List = append(e.List, back[j])
		}
	}
	return nil
}

func (e *Emitter) add(op isa.Op, args isa.Args) {
	e.List = append(e.List, isa.Instr{Op: op, Node: e.Node, Args: args})
}

// attempt runs f; if it fails, it leaves no trace.
func (e *Emitter) attempt(f func() error) error {
	mark, s, a := len(e.List), e.scratch.clone(), e.accum.clone()
	err := f()
	if err != nil {
		e.List = e.List[:mark]
		*e.scratch, *e.accum = s, a
	}
	return err
}

// region is memory on chip that is freed when its last holder lets go.
type region struct {
	pool  *pool
	at, n int
	holds int
}

func (e *Emitter) take(p *pool, words int) (*region, error) {
	at, ok := p.take(4 * words)
	if !ok {
		return nil, ErrSpace
	}
	return &region{pool: p, at: at, n: 4 * words, holds: 1}, nil
}

func (r *region) hold() {
	if r != nil {
		r.holds++
	}
}

func (r *region) drop() {
	if r == nil {
		return
	}
	if r.holds--; r.holds == 0 {
		r.pool.put(r.at, r.n)
	}
}

// local returns the address of the region.
func (e *Emitter) local(r *region) isa.Local {
	if r.pool == e.accum {
		return isa.AccBase + isa.Local(r.at)
	}
	return isa.Local(r.at)
}

// place is where a value of a tile is: at an address with strides, in elements, by dimension of the kernel, or nowhere, being
// one number.
type place struct {
	addr   isa.Local
	stride []int
	elem   graph.DataType
	imm    *isa.Bits
	mem    *region
}

func (p *place) drop() {
	if p != nil && p.mem != nil {
		p.mem.drop()
	}
}

// bits returns x as an immediate of type elem.
func bits(elem graph.DataType, x float64) *isa.Bits {
	b := isa.FloatBits(float32(x))
	if elem == graph.Int32 {
		b = isa.IntBits(int32(uint32(int64(min(max(x, math.MinInt32), math.MaxUint32)))))
	}
	return &b
}

func dtype(elem graph.DataType) isa.DType {
	switch elem {
	case graph.Int32:
		return isa.I32
	case graph.Float16:
		return isa.F16
	case graph.BFloat16:
		return isa.BF16
	}
	return isa.F32
}

// box is a tile of the loops: lo[i] <= index[i] < hi[i].
type box struct{ lo, hi []int }

func (b box) dims() []int {
	out := make([]int, len(b.lo))
	for i := range out {
		out[i] = b.hi[i] - b.lo[i]
	}
	return out
}

// purpose says what traffic of a buffer is for.
func (e *Emitter) purpose(b *legal.Buffer) isa.Purpose {
	switch b.Role {
	case legal.Input:
		return isa.Input
	case legal.Const:
		return isa.Weight
	case legal.Output:
		return isa.Output
	}
	if e.role == graph.RoleBackward {
		return isa.Gradient
	}
	return isa.Activation
}

// age returns the number of the kernel that wrote a buffer last, 0 if none did.
func (e *Emitter) age(b *legal.Buffer) int { return e.written[b] }
