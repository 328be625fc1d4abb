package legal

import (
	"math"
	"slices"

	"gradtool/graph"
)

// nest builds a kernel.
type nest struct {
	l     *lowerer
	k     *Nest
	body  []Stmt
	loads []*Access
}

// reg is a value of a nest under construction: a load (from 0 up) or a statement (from stmtBase up).
type reg int

const stmtBase = 1 << 20

func (l *lowerer) nest(dims []int) *nest {
	return &nest{l: l, k: &Nest{Dims: slices.Clone(dims)}}
}

func (b *nest) elem(r reg) graph.DataType {
	if r >= stmtBase {
		return b.body[r-stmtBase].Elem
	}
	if b.loads[r] == nil {
		return graph.Float
	}
	return b.loads[r].Buf.Elem
}

// load reads v, broadcast to the nest's dimensions.
func (b *nest) load(v val) reg {
	n := len(b.k.Dims)
	coordinates := make([][]int, len(v.shape))
	for i := range v.shape {
		coordinates[i] = along(n, n-len(v.shape)+i)
		if v.shape[i] == 1 {
			coordinates[i] = still(n)
		}
	}
	return b.loadAt(v, coordinates, 0)
}

// loadAt reads v at the given coordinates; a coordinate out of range gives fill.
func (b *nest) loadAt(v val, coordinates [][]int, fill float64) reg {
	if v.imm != nil {
		if (val{buf: v.buf, shape: v.shape, stride: v.stride}).access(coordinates).Inside(b.k.Dims) || fill == *v.imm {
			return b.konst(v.dev(), *v.imm)
		}
		v = b.l.materialize(v)
	}
	a := v.access(coordinates)
	for i := range a.Axes {
		// A broadcast axis stays where it is unless leaving it matters.
		x := &a.Axes[i]
		if lo, hi := x.Range(make([]int, len(b.k.Dims)), b.k.Dims); x.Stride == 0 && lo >= 0 && hi < x.Size {
			x.Off = 0
			clear(x.Coef)
		}
	}
	a.Fill = fill
	b.loads = append(b.loads, a.tidy(b.k.Dims))
	return reg(len(b.loads) - 1)
}

func (b *nest) stmt(s Stmt, args ...reg) reg {
	for _, a := range args {
		s.Args = append(s.Args, int(a))
	}
	b.body = append(b.body, s)
	return reg(stmtBase + len(b.body) - 1)
}

func (b *nest) konst(elem graph.DataType, x float64) reg {
	for i, s := range b.body {
		if s.Op == ConstOp && s.Elem == elem && s.Imm == x {
			return reg(stmtBase + i)
		}
	}
	return b.stmt(Stmt{Op: ConstOp, Elem: elem, Imm: x})
}

// like returns the constant x of r's type.
func (b *nest) like(r reg, x float64) reg { return b.konst(b.elem(r), x) }

// do applies an operation.
func (b *nest) do(o Op, args ...reg) reg {
	elem := b.elem(args[0])
	switch {
	case o.Compares():
		elem = graph.Int32
	case o == Select:
		elem = b.elem(args[1])
	}
	return b.stmt(Stmt{Op: o, Elem: elem}, args...)
}

// scaled returns r * x.
func (b *nest) scaled(r reg, x float64) reg {
	if x == 1 {
		return r
	}
	return b.do(Mul, r, b.like(r, x))
}

// plus returns r + x.
func (b *nest) plus(r reg, x float64) reg {
	if x == 0 {
		return r
	}
	return b.do(Add, r, b.like(r, x))
}

// cast returns r in the type elem of the program.
func (b *nest) cast(r reg, elem graph.DataType) reg {
	if b.elem(r) == elem {
		return r
	}
	if x, ok := b.constant(r); ok {
		if elem == graph.Int32 {
			x = math.Trunc(x)
		}
		return b.konst(elem, x)
	}
	return b.stmt(Stmt{Op: Cast, Elem: elem}, r)
}

// constant returns the value of a constant.
func (b *nest) constant(r reg) (float64, bool) {
	if r >= stmtBase && b.body[r-stmtBase].Op == ConstOp {
		return b.body[r-stmtBase].Imm, true
	}
	return 0, false
}

// truth returns 1 where r is not zero, else 0.
func (b *nest) truth(r reg) reg { return b.do(Ne, r, b.like(r, 0)) }

// reduce reduces r over the given dimensions, of which those with one index are left out.
func (b *nest) reduce(o Op, r reg, dims ...int) reg {
	over := uint32(0)
	for _, d := range dims {
		if b.k.Dims[d] > 1 {
			over |= 1 << d
		}
	}
	if over == 0 {
		return r
	}
	return b.stmt(Stmt{Op: o, Elem: b.elem(r), Over: over}, r)
}

// store writes r to v, a view that the caller made for it, along the nest's dimensions.
func (b *nest) store(v val, r reg) {
	n := len(b.k.Dims)
	coordinates := make([][]int, len(v.shape))
	for i := range v.shape {
		coordinates[i] = along(n, n-len(v.shape)+i)
	}
	b.storeAt(v, coordinates, r)
}

func (b *nest) storeAt(v val, coordinates [][]int, r reg) {
	b.k.Out = append(b.k.Out, Store{To: v.access(coordinates).tidy(b.k.Dims), Value: int(r)})
}

// done numbers the values and adds the kernel to the program.
func (b *nest) done() {
	k := b.finish()
	b.l.add(k)
}

func (b *nest) finish() *Nest {
	k := b.k
	k.In = b.loads
	number := func(r int) int {
		if r >= stmtBase {
			return r - stmtBase + len(b.loads)
		}
		return r
	}
	for _, s := range b.body {
		for j, a := range s.Args {
			s.Args[j] = number(a)
		}
		k.Body = append(k.Body, s)
	}
	for i := range k.Out {
		k.Out[i].Value = number(k.Out[i].Value)
	}
	return k
}

// iota returns the index along dimension dim.
func (b *nest) iota(dim int) reg {
	if b.k.Dims[dim] == 1 {
		return b.konst(graph.Int32, 0)
	}
	return b.stmt(Stmt{Op: Iota, Elem: graph.Int32, Dim: dim})
}
