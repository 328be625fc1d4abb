package legal

import (
	"errors"
	"fmt"
)

// Reasons why two kernels are not one.
var (
	errLong  = errors.New("together they have too many statements, accesses or dimensions")
	errWays  = errors.New("it is read in several ways, or not in all places")
	errOrder = errors.New("they walk through it in different orders")
	errDims  = errors.New("each runs over dimensions that the other has not")
	errSums  = errors.New("what reads it runs over more dimensions than the sums have")
	errFits  = errors.New("rows or sums that are needed whole leave no room on chip for tiles of both")
)

// Border is what lies between two kernels.
type Border struct {
	Buf *Buffer // what one makes and the other reads, or both read; nil if they have nothing in common
	// Shared says that both read it.
	Shared bool
}

// Between returns what kernels i and j, i being the first, have to do with each other, kernels of the program that the fuser looked at last.
func (f *Fuser) Between(i, j int) Border {
	p, c := f.p.Kernels[i], f.p.Kernels[j]
	from := f.touch[p]
	var made, read *Buffer
	for _, a := range c.Reads() {
		if a == nil {
			continue
		}
		if from.writes[a.Buf] && (made == nil || a.Buf.Len > made.Len) {
			made = a.Buf
		}
		if from.reads[a.Buf] && (read == nil || a.Buf.Len > read.Len) {
			read = a.Buf
		}
	}
	if made != nil {
		return Border{made, false}
	}
	return Border{read, read != nil}
}

// Why returns why kernels i and j are not one.
func (f *Fuser) Why(i, j int) string {
	b := f.Between(i, j)
	switch {
	case b.Shared:
		return f.whySiblings(i, j, b.Buf)
	case b.Buf != nil:
		return f.whyChain(i, j, b.Buf)
	case f.touch[f.p.Kernels[i]].Conflict(f.touch[f.p.Kernels[j]]):
		return "they write the same buffer"
	}
	return "they have nothing in common: one kernel would save nothing"
}

// kindOf says what a kernel is that no nest can be joined with from behind.
func kindOf(k Kernel) string {
	switch k.(type) {
	case *Contract:
		return "a product"
	case *Gather:
		return "a gather"
	case *Scatter:
		return "a scatter"
	case *Walk:
		return "a walk over tiles of scores"
	}
	return ""
}

func (f *Fuser) whyChain(i, j int, b *Buffer) string {
	p, c := f.p.Kernels[i], f.p.Kernels[j]
	n, ok := c.(*Nest)
	if k, is := c.(*Contract); is && k.A.Buf != b && k.B.Buf != b {
		return f.whyPlace(i, j, "it is read behind a product, which begins a kernel")
	}
	if !ok {
		if x := kindOf(p); x != "" && x == kindOf(c) {
			return "two products: each sets the order of its loops"
		}
		return kindOf(c) + " reads its operands from buffers, as often as its tiles ask for"
	}
	if len(f.writers[b]) != 1 {
		return fmt.Sprintf("it is made in parts, by %d kernels", len(f.writers[b]))
	}
	var err error
	switch p := p.(type) {
	case *Nest:
		_, err = f.join(p, n, b)
	case *Contract:
		_, err = f.joinPost(p, n, b)
	default:
		return kindOf(p) + " has no epilogue"
	}
	if err != nil {
		return err.Error()
	}
	return f.whyPlace(i, j, "what is made early would have to be kept for long")
}

func (f *Fuser) whySiblings(i, j int, b *Buffer) string {
	p, ok := f.p.Kernels[i].(*Nest)
	c, ok2 := f.p.Kernels[j].(*Nest)
	if !ok || !ok2 {
		if kindOf(f.p.Kernels[i]) == "a product" && kindOf(f.p.Kernels[j]) == "a product" {
			return "two products: each sets the order of its loops"
		}
		return "only element-wise work and reductions share what they read"
	}
	if _, err := f.join(p, c, b); err != nil {
		return err.Error()
	}
	return f.whyPlace(i, j, "it is a small part of what they read")
}

// whyPlace names a kernel that stands between two that would go together, or says why they were not put together.
func (f *Fuser) whyPlace(i, j int, other string) string {
	if f.canMove(i, j) || f.canMove(j, i) {
		return other
	}
	t := f.touch[f.p.Kernels[j]]
	for x := j - 1; x > i; x-- {
		if k := f.p.Kernels[x]; t.Conflict(f.touch[k]) {
			return fmt.Sprintf("%q stands between them: it needs what the first makes, and the second needs it", k.Origin().Node)
		}
	}
	return other
}

// Look makes the fuser know the kernels of p without joining any.
func (f *Fuser) Look(p *Program) {
	f.begin(p)
	for i, k := range p.Kernels {
		f.enter(k, i)
	}
}

// begin forgets what is known.
func (f *Fuser) begin(p *Program) {
	f.p = p
	f.touch, f.index, f.outputs = map[Kernel]Touch{}, map[Kernel]int{}, map[*Buffer]bool{}
	f.writers, f.readers = map[*Buffer][]Kernel{}, map[*Buffer][]Kernel{}
	for _, b := range p.Outputs {
		f.outputs[b.Buf] = true
	}
}
