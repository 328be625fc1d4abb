package legal

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
)

// Walk computes a square of values, each from sums of products, and uses it up in sums along its rows or columns, so that the square is nowhere
// as a whole: scores of attention, weights made of them, and what these are multiplied with.
//
// The dimensions are those of the square and, beside them, those over which the scores are sums and those of the results that the square has
// not. The scores are the values 0, 1, ... of the body, whose other dimensions are 1.
//
// A body that reduces has the form of a softmax ([Walk.Running]): all its reductions are along the dimensions that the sinks sum over.
type Walk struct {
	Origin0 Origin
	Dims    []int
	Square  uint32 // dimensions of the square, by bit
	Scores  []Score
	Body    *Nest
	Sinks   []Sink

	along uint32 // dimensions that sums of rows ran along, for whoever builds the walk
}

// Score is a sum of products over the dimensions Over, for each point of the square.
type Score struct {
	A, B *Access
	Over uint32
	Part string // as in Contract
}

// Sink sums products of a value of the body and B over dimensions of the square. Its epilogue, over the other dimensions of the square and those of
// B, has no reductions; its value 0 is the sum, times value Scale of the body, or divided by it, if that is not negative, and 0 where value Blank is not
// 0, if that is not negative.
type Sink struct {
	Value  int
	B      *Access
	Over   uint32
	Scale  int
	Divide bool
	Blank  int
	Post   *Nest
	Part   string // as in Contract
}

// Origin returns where the kernel comes from.
func (k *Walk) Origin() *Origin { return &k.Origin0 }

// Reads returns the operands of scores, the loads of the body, the operands of the sinks and the loads of their epilogues.
func (k *Walk) Reads() []*Access {
	var out []*Access
	for _, s := range k.Scores {
		out = append(out, s.A, s.B)
	}
	out = append(out, k.Body.In[len(k.Scores):]...)
	for _, s := range k.Sinks {
		out = append(append(out, s.B), s.Post.In[1:]...)
	}
	return out
}

// Writes returns what the body stores and what the epilogues of the sinks store.
func (k *Walk) Writes() []*Access {
	out := k.Body.Writes()
	for _, s := range k.Sinks {
		out = append(out, s.Post.Writes()...)
	}
	return out
}

// Plain reports whether the sink stores its sum as it is, in one place: then it can be added up there.
func (s *Sink) Plain() bool {
	return s.Scale < 0 && s.Blank < 0 && len(s.Post.Body) == 0 && len(s.Post.Out) == 1 && s.Post.Out[0].To.Buf.Stored == graph.Undefined
}

// Inner returns the dimensions outside of the square that the score or the sink has.
func (k *Walk) Inner(a *Access) uint32 { return a.Varies() &^ k.Square }

// Varies returns the dimensions of more than one index that value v of the body varies along.
func (k *Walk) Varies(v int) uint32 { return k.Body.Varies()[v] }

// walkOf returns a walk without sinks: the sums of a contraction and its epilogue, which it must have.
func walkOf(c *Contract) *Walk {
	c = c.Clone()
	w := &Walk{Origin0: c.Origin0, Dims: c.Dims, Body: c.Post}
	over := uint32(0)
	for i, kind := range c.Kind {
		if kind == K {
			over |= 1 << i
		}
	}
	w.Square = (uint32(1)<<len(c.Dims) - 1) &^ over
	w.Scores = []Score{{A: c.A, B: c.B, Over: over, Part: c.Part}}
	return w
}

// split cuts a dimension of the walk.
func (k *Walk) split(dim, n int) bool {
	if len(k.Dims) >= 31 || k.Square>>dim&1 == 0 || !k.Body.split(dim, n) {
		return false
	}
	mask := func(m uint32) uint32 {
		low := m & (1<<(dim+1) - 1)
		return low | m>>(dim+1)<<(dim+2) | (low>>dim&1)<<(dim+1)
	}
	for i := range k.Scores {
		s := &k.Scores[i]
		s.A.split(dim, n)
		s.B.split(dim, n)
		s.Over = mask(s.Over)
	}
	for i := range k.Sinks {
		s := &k.Sinks[i]
		s.B.split(dim, n)
		s.Over = mask(s.Over)
		if d := s.Post.Dims[dim]; d > 1 {
			if !s.Post.split(dim, n) {
				return false
			}
			continue
		}
		to := make([]int, len(s.Post.Dims))
		for d := range to {
			to[d] = d
			if d > dim {
				to[d]++
			}
		}
		s.Post.renumber(to, slices.Insert(slices.Clone(s.Post.Dims), dim+1, 1))
	}
	k.Square, k.along = mask(k.Square), mask(k.along)
	k.Dims = slices.Insert(k.Dims, dim+1, n)
	k.Dims[dim] /= n
	return true
}

// grow adds a dimension of n indices outside of the square and returns it.
func (k *Walk) grow(n int) int {
	d := len(k.Dims)
	k.Dims = append(k.Dims, n)
	for _, a := range append(k.Reads(), k.Writes()...) {
		for i := range a.Axes {
			a.Axes[i].Coef = append(slices.Clone(a.Axes[i].Coef), 0)
		}
	}
	k.Body.Dims = append(k.Body.Dims, 1)
	for i := range k.Sinks {
		k.Sinks[i].Post.Dims = append(k.Sinks[i].Post.Dims, 1)
	}
	return d
}

// tidy removes loads and statements of the body that no store and no sink needs.
func (k *Walk) tidy() {
	n := len(k.Body.Out)
	for i := range k.Sinks {
		for _, v := range k.Sinks[i].values() {
			k.Body.Out = append(k.Body.Out, Store{Value: *v})
		}
	}
	k.Body.Tidy()
	at := n
	for i := range k.Sinks {
		s := &k.Sinks[i]
		for _, v := range s.values() {
			*v = k.Body.Out[at].Value
			at++
		}
	}
	k.Body.Out = k.Body.Out[:n]
}

// values returns the values of the body that the sink uses.
func (s *Sink) values() []*int {
	out := []*int{&s.Value}
	for _, v := range []*int{&s.Scale, &s.Blank} {
		if *v >= 0 {
			out = append(out, v)
		}
	}
	return out
}

// dropStores removes stores to buffers that are not live, and sinks that store nothing.
func (k *Walk) dropStores(live map[*Buffer]bool) {
	k.Body.Out = slices.DeleteFunc(k.Body.Out, func(o Store) bool { return !live[o.To.Buf] })
	for _, s := range k.Sinks {
		s.Post.dropStores(live)
	}
	k.Sinks = slices.DeleteFunc(k.Sinks, func(s Sink) bool { return len(s.Post.Out) == 0 })
	k.tidy()
}

func (k *Walk) verify(bad complaint) {
	if len(k.Dims) > 32 || len(k.Scores) == 0 || len(k.Body.In) < len(k.Scores) {
		bad(8, "%d dimensions, %d scores, %d loads of the body", len(k.Dims), len(k.Scores), len(k.Body.In))
		return
	}
	for i, s := range k.Scores {
		if k.Body.In[i] != nil || s.Over&k.Square != 0 || (s.A.Varies()|s.B.Varies())&^(k.Square|s.Over) != 0 {
			bad(8, "score %d is no sum over dimensions beside the square", i)
		}
		verifyAccess(s.A, k.Dims, false, bad)
		verifyAccess(s.B, k.Dims, false, bad)
	}
	for i, d := range k.Body.Dims {
		if want := k.Dims[i]; k.Square>>i&1 != 0 && d != want || k.Square>>i&1 == 0 && d != 1 {
			bad(8, "dimension %d of the body is %d, of the walk %d", i, d, want)
			return
		}
	}
	k.Body.verifyLoads(len(k.Scores), bad)
	varies := k.Body.Varies()
	for i, s := range k.Sinks {
		if s.Value < 0 || s.Value >= len(varies) || s.Scale >= len(varies) || s.Blank >= len(varies) || s.Over&^k.Square != 0 || s.Over == 0 {
			bad(8, "sink %d sums value %d over dimensions %b", i, s.Value, s.Over)
			return
		}
		for _, v := range s.values()[1:] {
			if varies[*v]&s.Over != 0 {
				bad(8, "the sums of sink %d depend on value %d, which varies along what they sum over", i, *v)
			}
		}
		verifyAccess(s.B, k.Dims, false, bad)
		if len(s.Post.In) == 0 || s.Post.In[0] != nil || slices.ContainsFunc(s.Post.Body, func(s Stmt) bool { return s.Op.Reduces() }) {
			bad(8, "sink %d has an epilogue that is none", i)
			return
		}
		for d, n := range s.Post.Dims {
			want := 1
			if (k.Square&^s.Over|k.Inner(s.B))>>d&1 != 0 {
				want = k.Dims[d]
			}
			if n != want {
				bad(8, "dimension %d of the epilogue of sink %d is %d, not %d", d, i, n, want)
			}
		}
		s.Post.verify(bad)
	}
}

func (k *Walk) text(b *strings.Builder) {
	bits := func(m uint32) string {
		var out []string
		for i := range k.Dims {
			if m>>i&1 != 0 {
				out = append(out, fmt.Sprintf("i%d", i))
			}
		}
		return strings.Join(out, " ")
	}
	fmt.Fprintf(b, "walk %s square %s %s", dimsText(k.Dims, nil), bits(k.Square), k.Origin0.Node)
	for i, s := range k.Scores {
		fmt.Fprintf(b, "\n    v%d = sum over %s of %s * %s", i, bits(s.Over), s.A, s.B)
	}
	k.Body.text(b)
	for _, s := range k.Sinks {
		fmt.Fprintf(b, "\n    sink over %s of v%d * %s", bits(s.Over), s.Value, s.B)
		switch {
		case s.Scale >= 0 && s.Divide:
			fmt.Fprintf(b, ", / v%d", s.Scale)
		case s.Scale >= 0:
			fmt.Fprintf(b, ", * v%d", s.Scale)
		}
		if s.Blank >= 0 {
			fmt.Fprintf(b, ", 0 where v%d", s.Blank)
		}
		var post strings.Builder
		s.Post.text(&post)
		b.WriteString(strings.ReplaceAll(post.String(), "\n", "\n    "))
	}
}

// run executes the walk as the nest and the products that it is made of.
func (k *Walk) run(mem [][]float64) {
	n := len(k.Dims)
	var scores [][]float64
	for _, s := range k.Scores {
		var sums []float64
		each(k.Dims, k.Square, func(index []int) {
			total, at := 0.0, slices.Clone(index)
			each(k.Dims, s.Over, func(over []int) {
				for i := range at {
					at[i] = index[i] + over[i]
				}
				total += s.A.read(mem, at) * s.B.read(mem, at)
			})
			sums = append(sums, rounded(graph.Float, total))
		})
		scores = append(scores, sums)
	}
	vals, strides := k.Body.values(mem, scores...)
	value := func(v int, index []int) float64 {
		at := 0
		for i, s := range strides[v] {
			at += s * index[i]
		}
		return vals[v][at]
	}
	for _, s := range k.Sinks {
		var sums []float64
		each(s.Post.Dims, 1<<n-1, func(index []int) {
			total, at := 0.0, slices.Clone(index)
			each(k.Dims, s.Over, func(over []int) {
				for i := range at {
					at[i] = index[i] + over[i]
				}
				total += value(s.Value, at) * s.B.read(mem, at)
			})
			switch {
			case s.Scale >= 0 && s.Divide:
				total /= value(s.Scale, index)
			case s.Scale >= 0:
				total *= value(s.Scale, index)
			}
			if s.Blank >= 0 && value(s.Blank, index) != 0 {
				total = 0
			}
			sums = append(sums, rounded(graph.Float, total))
		})
		s.Post.run(mem, sums)
	}
}
