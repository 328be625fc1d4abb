package legal

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
)

// Computes reports whether kernels compute with elements of type t: float, and int32 for all integers and truth values.
func Computes(t graph.DataType) bool { return t == graph.Float || t == graph.Int32 }

// Verify returns all violations of the rules in the package comment, joined.
func (p *Program) Verify() error {
	var errs []error
	written := map[*Buffer]bool{}
	for _, b := range p.Buffers {
		if b.Len < 1 && (b.Role == Temp || b.Role == Const) || !Computes(b.Elem) {
			errs = append(errs, fmt.Errorf("buffer b%d: %d elements of %s (rule 1)", b.ID, b.Len, b.Elem))
		}
		if b.Role == Input || b.Role == Const {
			written[b] = true
		}
	}
	for i, k := range p.Kernels {
		bad := func(rule int, format string, args ...any) {
			errs = append(errs, fmt.Errorf("kernel %d (%s): %s (rule %d)", i, k.Origin().Node, fmt.Sprintf(format, args...), rule))
		}
		for _, a := range k.Reads() {
			if a != nil && !written[a.Buf] {
				bad(2, "reads b%d, which nothing wrote", a.Buf.ID)
			}
		}
		for _, a := range k.Writes() {
			if a.Buf.Role == Input || a.Buf.Role == Const {
				bad(2, "writes the %s b%d", a.Buf.Role, a.Buf.ID)
			}
			written[a.Buf] = true
		}
		switch k := k.(type) {
		case *Nest:
			k.verify(bad)
		case *Contract:
			k.verify(bad)
		case *Walk:
			k.verify(bad)
		case *Gather:
			verifyAccess(k.Table, []int{k.TableRows, k.Width}, false, bad)
			verifyAccess(k.Index, []int{k.Rows}, false, bad)
			verifyAccess(k.Out, []int{k.Rows, k.Width}, true, bad)
		case *Scatter:
			verifyAccess(k.Table, []int{k.TableRows, k.Width}, true, bad)
			verifyAccess(k.Index, []int{k.Rows}, false, bad)
			verifyAccess(k.From, []int{k.Rows, k.Width}, false, bad)
		}
	}
	for _, b := range p.Outputs {
		if !written[b.Buf] && prod(b.Shape) > 0 {
			errs = append(errs, fmt.Errorf("output %q is never written (rule 2)", b.Name))
		}
	}
	return errors.Join(errs...)
}

type complaint func(rule int, format string, args ...any)

// verifyAccess checks one access over a box of the given dimensions.
func verifyAccess(a *Access, dims []int, write bool, bad complaint) {
	for _, x := range a.Axes {
		if len(x.Coef) != len(dims) || x.Size < 1 {
			bad(3, "an axis of b%d has %d coefficients for %d dimensions and size %d", a.Buf.ID, len(x.Coef), len(dims), x.Size)
			return
		}
	}
	least, most := a.Span(dims)
	if least < 0 || most >= a.Buf.Len {
		bad(3, "touches elements %d to %d of b%d, which has %d", least, most, a.Buf.ID, a.Buf.Len)
	}
	if !write {
		return
	}
	if !a.Inside(dims) {
		bad(3, "writes outside an axis of b%d", a.Buf.ID)
	}
	if !a.injective(dims) {
		bad(4, "writes elements of b%d twice", a.Buf.ID)
	}
}

// injective reports whether no two indices give one element: the strides of the dimensions, in order of size, each reach
// beyond all that the smaller ones cover.
func (a *Access) injective(dims []int) bool {
	type step struct{ stride, count int }
	var steps []step
	for i, n := range dims {
		if n == 1 {
			continue
		}
		s := 0
		for _, x := range a.Axes {
			s += x.Stride * x.Coef[i]
		}
		steps = append(steps, step{max(s, -s), n})
	}
	slices.SortFunc(steps, func(p, q step) int { return p.stride - q.stride })
	reach := 0
	for _, s := range steps {
		if s.stride <= reach {
			return false
		}
		reach += s.stride * (s.count - 1)
	}
	return true
}

func (k *Nest) verify(bad complaint) { k.verifyLoads(1, bad) }

// verifyLoads checks a nest of which the first sums loads may be sums of products.
func (k *Nest) verifyLoads(sums int, bad complaint) {
	if len(k.Dims) > 32 || slices.Min(append([]int{1}, k.Dims...)) < 1 {
		bad(3, "dimensions %v", k.Dims)
		return
	}
	elems := make([]graph.DataType, 0, len(k.In)+len(k.Body))
	for i, a := range k.In {
		if a == nil {
			if i >= sums {
				bad(5, "load %d reads nothing", i)
			}
			elems = append(elems, graph.Float)
			continue
		}
		verifyAccess(a, k.Dims, false, bad)
		elems = append(elems, a.Buf.Elem)
	}
	for i, s := range k.Body {
		v := len(k.In) + i
		if s.Op == None || s.Op >= numOps || len(s.Args) != ops[s.Op].args {
			bad(5, "value %d: %s of %d operands", v, s.Op, len(s.Args))
			return
		}
		for _, a := range s.Args {
			if a < 0 || a >= v {
				bad(5, "value %d reads value %d", v, a)
				return
			}
		}
		if s.Op.Reduces() != (s.Over != 0) {
			bad(6, "value %d: %s over dimensions %b", v, s.Op, s.Over)
		}
		if s.Op == Iota && (s.Dim < 0 || s.Dim >= len(k.Dims)) {
			bad(5, "value %d counts along dimension %d of %d", v, s.Dim, len(k.Dims))
			return
		}
		if want := s.elemOf(elems); want != s.Elem {
			bad(5, "value %d: %s has type %s, declared %s", v, s.Op, want, s.Elem)
		}
		elems = append(elems, s.Elem)
	}
	varies := k.Varies()
	for _, o := range k.Out {
		verifyStore(k, o, elems, varies, bad)
	}
}

func verifyStore(k *Nest, o Store, elems []graph.DataType, varies []uint32, bad complaint) {
	if o.Value < 0 || o.Value >= len(elems) {
		bad(5, "stores value %d", o.Value)
		return
	}
	if elems[o.Value] != o.To.Buf.Elem {
		bad(5, "stores %s in b%d of %s", elems[o.Value], o.To.Buf.ID, o.To.Buf.Elem)
	}
	if extra := varies[o.Value] &^ o.To.Varies(); extra != 0 {
		bad(6, "b%d takes a value that varies along dimensions %b besides its own", o.To.Buf.ID, extra)
	}
	// A dimension along which the store stands still is written once.
	dims := slices.Clone(k.Dims)
	for i := range dims {
		if o.To.Varies()>>i&1 == 0 {
			dims[i] = 1
		}
	}
	verifyAccess(o.To, dims, true, bad)
}

// elemOf returns the element type that the statement has by its operands.
func (s *Stmt) elemOf(of []graph.DataType) graph.DataType {
	switch {
	case s.Op == ConstOp, s.Op == Iota, s.Op == Cast:
		return s.Elem
	case s.Op.Compares():
		if of[s.Args[0]] != of[s.Args[1]] {
			return graph.Undefined
		}
		return graph.Int32
	case s.Op == Select:
		if of[s.Args[0]] != graph.Int32 || of[s.Args[1]] != of[s.Args[2]] {
			return graph.Undefined
		}
		return of[s.Args[1]]
	case len(s.Args) == 2 && of[s.Args[0]] != of[s.Args[1]]:
		return graph.Undefined
	}
	return of[s.Args[0]]
}

func (k *Contract) verify(bad complaint) {
	if len(k.Kind) != len(k.Dims) {
		bad(7, "%d kinds for %d dimensions", len(k.Kind), len(k.Dims))
		return
	}
	outer := slices.Clone(k.Dims)
	for i, kind := range k.Kind {
		bit := uint32(1) << i
		a, b := k.A.Varies()&bit != 0, k.B.Varies()&bit != 0
		if kind == K {
			outer[i] = 1
		}
		if kind == N && a || kind == M && b {
			bad(7, "dimension %d of kind %c moves the wrong operand", i, kind)
		}
	}
	verifyAccess(k.A, k.Dims, false, bad)
	verifyAccess(k.B, k.Dims, false, bad)
	if k.Post == nil {
		verifyAccess(k.C, outer, true, bad)
		return
	}
	if !slices.Equal(k.Post.Dims, outer) || len(k.Post.In) == 0 || k.Post.In[0] != nil {
		bad(7, "an epilogue over %v for sums over %v", k.Post.Dims, outer)
		return
	}
	k.Post.verify(bad)
}
