package legal

import (
	"math"
	"slices"

	"gradtool/graph"
)

// A softmax needs the maximum of a row before its first exponential. With a maximum that runs, one block of columns after the other can be worked
// off: what was added up under an older maximum is corrected by exp(older - newer) (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018). The division by the sum comes last, behind the products (Dao et al., "FlashAttention", 2022).

// Running says which values of a walk's body run along the columns, in which the body reduces.
type Running struct {
	Cols uint32 // dimensions of the columns
	// Most is the largest score of a row, Max the same but at least the least finite number, so that rows that are -inf so far give
	// exponentials of 0 and not NaN.
	Most, Max int
	// Sums are the values that add up exponentials along the columns.
	Sums []int
	// Tallies are the values that reduce along the columns what does not depend on the maximum.
	Tallies []int
	// Late tells which values depend on complete rows, Max aside.
	Late []bool
}

// nature is how a value of a softmax depends on the maximum of its row.
type nature uint8

const (
	free     nature = iota // not at all
	top                    // it is the maximum
	below                  // a score less the maximum
	weight                 // proportional to exp(-maximum)
	total                  // a sum of such values along the row
	tally                  // something else of the whole row
	late                   // of the row, depending on sums or tallies
	share                  // a weight times or over something late
	blank                  // whether a share is no number, which all of a row are then, or none
	unsuited               // in another way
)

// natures returns that of each value of a body that reduces over cols, if it has one maximum that suits.
func natures(k *Nest, cols uint32) (n []nature, most int, ok bool) {
	base := len(k.In)
	varies := k.Varies()
	for i, d := range k.Dims {
		if d == 1 {
			cols &^= 1 << i
		}
	}
	over := func(s *Stmt) uint32 {
		m := s.Over
		for i, d := range k.Dims {
			if d == 1 {
				m &^= 1 << i
			}
		}
		return m
	}
	most = -1
	for i := range k.Body {
		if s := &k.Body[i]; s.Op == ReduceMax && s.Elem == graph.Float && over(s) == cols {
			if most >= 0 {
				return nil, 0, false
			}
			most = base + i
		}
	}
	if most < 0 {
		return nil, 0, false
	}
	n = make([]nature, base+len(k.Body))
	zero := func(v int) bool { x, ok := k.constant(v); return ok && x == 0 }
	for i := range k.Body {
		v, s := base+i, &k.Body[i]
		row := varies[v]&cols == 0
		worst, all := free, true // all: operands are free, late or of a row's sums
		for _, a := range s.Args {
			worst = max(worst, n[a])
			all = all && (n[a] == free || n[a] == top || n[a] == total || n[a] == tally || n[a] == late)
		}
		of := func(j int) nature { return n[s.Args[j]] }
		flat := func(j int) bool {
			return (of(j) == total || of(j) == tally || of(j) == late) && varies[s.Args[j]]&cols == 0
		}
		switch {
		case v == most:
			n[v] = top
			if worst != free {
				n[v] = unsuited
			}
		case s.Op == Max && s.Args[0] == most && k.least(s.Args[1]):
			n[v] = top
		case worst == free && !s.Op.Reduces():
			n[v] = free
		case worst == unsuited:
			n[v] = unsuited
		case s.Op == Sub && of(0) == free && of(1) == top:
			n[v] = below
		case s.Op == Exp && of(0) == below:
			n[v] = weight
		case s.Op == Mul && (of(0) == weight && of(1) == free || of(0) == free && of(1) == weight), s.Op == Div && of(0) == weight && of(1) == free,
			s.Op == Neg && of(0) == weight, (s.Op == Add || s.Op == Sub) && of(0) == weight && of(1) == weight,
			s.Op == Select && of(0) == free && (of(1) == weight || zero(s.Args[1])) && (of(2) == weight || zero(s.Args[2])):
			n[v] = weight
		case s.Op == Sum && over(s) == cols && of(0) == weight:
			n[v] = total
		case s.Op.Reduces() && over(s) == cols && of(0) == free:
			n[v] = tally
		case row && all && !s.Op.Reduces():
			n[v] = late
		case s.Op == Mul && of(0) == weight && flat(1), s.Op == Mul && flat(0) && of(1) == weight, s.Op == Div && of(0) == weight && flat(1),
			s.Op == Mul && of(0) == share && of(1) == free, s.Op == Mul && of(0) == free && of(1) == share, s.Op == Div && of(0) == share && of(1) == free:
			n[v] = share
		case s.Op == Select && (of(0) == free || flat(0)) && of(1) == share && zero(s.Args[2]):
			n[v] = share
		case s.Op == Ne && s.Args[0] == s.Args[1] && k.normalized(s.Args[0], n) >= 0:
			n[v] = blank
		case s.Op == Select && of(0) == blank && zero(s.Args[1]) && of(2) == share && k.Body[s.Args[0]-base].Args[0] == s.Args[2]:
			n[v] = share
		default:
			n[v] = unsuited
		}
	}
	return n, most, true
}

// Running returns how the rows of the body run along the columns, nil if the body reduces nothing, and false if it cannot be walked through.
func (k *Walk) Running() (*Running, bool) {
	cols := reducedOver(k.Body)
	if cols == 0 {
		return nil, true
	}
	n, most, ok := natures(k.Body, cols)
	if !ok {
		return nil, false
	}
	r := &Running{Cols: cols, Most: most, Max: -1, Late: make([]bool, len(n))}
	base := len(k.Body.In)
	for v, x := range n {
		switch x {
		case total:
			r.Sums = append(r.Sums, v)
		case tally:
			r.Tallies = append(r.Tallies, v)
		case late:
			r.Late[v] = true
		case top:
			if v == most {
				continue
			}
			if r.Max >= 0 {
				return nil, false
			}
			r.Max = v
		case share, blank, unsuited:
			return nil, false
		}
	}
	// Nothing but the bounded maximum is made of the plain one.
	for i, s := range k.Body.Body {
		if slices.Contains(s.Args, most) && base+i != r.Max {
			return nil, false
		}
	}
	if r.Max < 0 {
		return nil, false
	}
	for _, s := range k.Sinks {
		if n[s.Value] != weight || s.Over != cols {
			return nil, false
		}
		for _, v := range s.values()[1:] {
			if x := n[*v]; x != total && x != tally && x != late && x != free {
				return nil, false
			}
		}
	}
	for _, o := range k.Body.Out {
		if x := n[o.Value]; x != free && x != total && x != tally && x != late && o.Value != r.Max {
			return nil, false
		}
	}
	return r, true
}

// least reports whether a value is the least finite number.
func (k *Nest) least(v int) bool {
	x, ok := k.constant(v)
	return ok && x == -math.MaxFloat32
}

// reducedOver returns the dimensions that a nest reduces.
func reducedOver(k *Nest) uint32 {
	m := uint32(0)
	for _, s := range k.Body {
		m |= s.Over
	}
	return m
}

// makeRun brings the softmax of a walk's body into the form that runs along cols: with a bounded maximum, and sinks of weights
// that are not yet divided by their sum. It reports whether that is possible. What depends on rows may be stored in the buffers stats only: it is
// not the same where rows are all -inf.
func (k *Walk) makeRun(cols uint32, stats map[*Buffer]bool) bool {
	n, most, ok := natures(k.Body, cols)
	if !ok {
		return false
	}
	b := k.Body
	base := len(b.In)
	for _, o := range b.Out {
		if n[o.Value] != free && !stats[o.To.Buf] {
			return false
		}
	}
	for v, x := range n {
		if x == unsuited && k.needs(v) {
			return false
		}
	}
	// Two statements behind the maximum; all others move up.
	at := most - base + 1
	moved := func(v int) int {
		if v > most {
			return v + 2
		}
		return v
	}
	for i := range b.Body {
		for j, a := range b.Body[i].Args {
			if b.Body[i].Args[j] = moved(a); a == most {
				b.Body[i].Args[j] = most + 2
			}
		}
	}
	for i := range b.Out {
		if b.Out[i].Value = moved(b.Out[i].Value); b.Out[i].Value == most {
			b.Out[i].Value = most + 2
		}
	}
	for i := range k.Sinks {
		k.Sinks[i].Value = moved(k.Sinks[i].Value)
	}
	b.Body = slices.Insert(b.Body, at, Stmt{Op: ConstOp, Elem: graph.Float, Imm: -math.MaxFloat32}, Stmt{Op: Max, Elem: graph.Float, Args: []int{most, most + 1}})
	n = slices.Insert(n, most+1, free, top)
	for i := range k.Sinks {
		s := &k.Sinks[i]
		if n[s.Value] == weight {
			continue
		}
		if n[s.Value] != share {
			return false
		}
		k.unshare(n, s)
	}
	k.tidy()
	r, ok := k.Running()
	return ok && r != nil
}

// needs reports whether a value is used by a statement, a store or a sink.
func (k *Walk) needs(v int) bool {
	for _, s := range k.Body.Body {
		if slices.Contains(s.Args, v) {
			return true
		}
	}
	return slices.ContainsFunc(k.Body.Out, func(o Store) bool { return o.Value == v }) ||
		slices.ContainsFunc(k.Sinks, func(s Sink) bool { return s.Value == v })
}

// unshare makes a sink of a share one of the weight that the share is made of, which is scaled afterwards. It adds statements.
func (k *Walk) unshare(n []nature, s *Sink) {
	b := k.Body
	add := func(o Op, elem graph.DataType, args ...int) int {
		b.Body = append(b.Body, Stmt{Op: o, Elem: elem, Args: args})
		return len(b.In) + len(b.Body) - 1
	}
	off := func(flag int) {
		if s.Blank >= 0 {
			flag = add(Or, graph.Int32, s.Blank, flag)
		}
		s.Blank = flag
	}
	var visit func(v int) int
	visit = func(v int) int {
		st := b.Body[v-len(b.In)]
		switch {
		case st.Op == Select && n[st.Args[0]] == free:
			w := visit(st.Args[1])
			return add(Select, graph.Float, st.Args[0], w, st.Args[2])
		case st.Op == Select && n[st.Args[0]] != blank:
			w := visit(st.Args[1])
			b.Body = append(b.Body, Stmt{Op: ConstOp, Elem: graph.Int32})
			off(add(Eq, graph.Int32, st.Args[0], len(b.In)+len(b.Body)-1))
			return w
		case st.Op == Select:
			w := visit(st.Args[2])
			l := b.normalized(st.Args[2], n)
			t := add(Mul, graph.Float, l, s.Scale)
			if s.Divide {
				t = add(Div, graph.Float, l, s.Scale)
			}
			off(add(Ne, graph.Int32, t, t))
			return w
		}
		for j, a := range st.Args {
			o := st.Args[1-j]
			switch {
			case n[a] == weight && n[o] != free:
				s.Scale, s.Divide = o, st.Op == Div
				return a
			case n[a] == share:
				args := []int{visit(a), o}
				if j == 1 {
					args = []int{o, args[0]}
				}
				return add(st.Op, st.Elem, args...)
			}
		}
		return v
	}
	s.Value = visit(s.Value)
}

// normalized returns the sum of exponentials if value v is an exponential over it or times its inverse, else -1. If the sum is 0 or no number, then all of
// the row is none, and otherwise nothing of it.
func (k *Nest) normalized(v int, n []nature) int {
	base := len(k.In)
	if v < base {
		return -1
	}
	s := &k.Body[v-base]
	if len(s.Args) != 2 || n[s.Args[0]] != weight || k.Body[s.Args[0]-base].Op != Exp {
		return -1
	}
	l := s.Args[1]
	switch {
	case s.Op == Div:
	case s.Op == Mul && l >= base && k.Body[l-base].Op == Rcp:
		l = k.Body[l-base].Args[0]
	default:
		return -1
	}
	if n[l] != total || k.Body[l-base].Args[0] != s.Args[0] {
		return -1
	}
	return l
}

// reducedSquare returns the rows or columns that the epilogue reduces a square of at least so many bytes over, 0 if it does not.
func (k *Contract) reducedSquare(least int) uint32 {
	if k.Post == nil {
		return 0
	}
	cols := reducedOver(k.Post)
	if 4*k.Post.Extent(^uint32(0)) < least {
		return 0
	}
	for i, kind := range k.Kind {
		if cols>>i&1 != 0 && kind != M && kind != N {
			return 0
		}
	}
	return cols
}

// Softmax reports whether the contraction's epilogue is a softmax, or the beginning of one, along rows or columns of a square of at least so many
// bytes, and so may become that of a walk.
func (k *Contract) Softmax(least int) bool {
	cols := k.reducedSquare(least)
	if cols == 0 {
		return false
	}
	n, _, ok := natures(k.Post, cols)
	if !ok {
		return false
	}
	for _, x := range n {
		if x == unsuited {
			return false
		}
	}
	return true
}

// Sums reports whether the contraction's epilogue sums products of its sums along rows or columns of a square of at least so many bytes, as the
// derivative of a softmax does, and so may become that of a walk.
func (k *Contract) Sums(least int) bool {
	cols := k.reducedSquare(least)
	if cols == 0 {
		return false
	}
	found := false
	for _, s := range k.Post.Body {
		if s.Op.Reduces() && (s.Op != Sum || s.Over != cols) {
			return false
		}
		found = found || s.Op.Reduces() && s.Args[0] >= len(k.Post.In) && k.Post.Body[s.Args[0]-len(k.Post.In)].Op == Mul
	}
	return found
}
