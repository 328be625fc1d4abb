package emit

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/npu/legal"
)

// Check returns what is wrong with the plan of a kernel of the given dimensions: tiles out of range, loops that are missing or
// cut nothing, first tiles smaller than the others, an epilogue's reduction that is cut.
func (p *Plan) Check(k legal.Kernel) error {
	dims, whole := dimsOf(k)
	if len(p.Tile) != len(dims) {
		return fmt.Errorf("tiles of %d dimensions for a kernel of %d", len(p.Tile), len(dims))
	}
	for i, t := range p.Tile {
		cut := t < dims[i]
		switch {
		case t < 1 || t > dims[i]:
			return fmt.Errorf("dimension %d of %d is cut into tiles of %d", i, dims[i], t)
		case cut != slices.Contains(p.Order, i):
			return fmt.Errorf("dimension %d: tiles of %d of %d, and loops over %v", i, t, dims[i], p.Order)
		case cut && whole>>i&1 != 0:
			return fmt.Errorf("dimension %d is cut, which the epilogue reduces", i)
		case p.First != nil && (p.First[i] < t || p.First[i] > dims[i]):
			return fmt.Errorf("dimension %d of %d: a first tile of %d before tiles of %d", i, dims[i], p.First[i], t)
		}
	}
	return nil
}

// dimsOf returns the dimensions of a kernel, and those that no tile may cut.
func dimsOf(k legal.Kernel) (dims []int, uncut uint32) {
	switch k := k.(type) {
	case *legal.Nest:
		return k.Dims, 0
	case *legal.Contract:
		return k.Dims, whole(k)
	case *legal.Walk:
		return k.Dims, (uint32(1)<<len(k.Dims) - 1) &^ k.Square
	}
	return nil, 0
}

// Text returns a kernel as a nest of loops over operations on tiles.
func (p *Plan) Text(k legal.Kernel) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", k.Origin().Node, k.Origin().Op)
	depth := 1
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
	}
	loops := func(over []int, dims []int) {
		for _, i := range over {
			first := ""
			if p.First != nil && p.First[i] != p.Tile[i] {
				first = fmt.Sprintf(", the first %d", p.First[i])
			}
			line("for i%d in 0..%d step %d%s", i, dims[i], p.Tile[i], first)
			depth++
		}
	}
	switch k := k.(type) {
	case *legal.Nest:
		loops(p.Order, k.Dims)
		nestText(line, k, p.Tile)
	case *legal.Contract:
		tile := slices.Clone(p.Tile)
		size := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
		for i, kind := range k.Kind {
			size[kind] *= tile[i]
			if kind == legal.K {
				tile[i] = 1
			}
		}
		outer, across, inner := p.loops(k)
		loops(outer, k.Dims)
		loops(across, k.Dims)
		out := depth
		loops(inner, k.Dims)
		load := func(name string, a *legal.Access, keep bool) {
			how := "load"
			if keep {
				how = "load once"
			}
			line("%s %s = %s", how, name, boxText(a, p.Tile))
		}
		load("a", k.A, p.KeepA)
		load("b", k.B, p.KeepB)
		line("%d x matmul acc += a * b, %d x %d x %d", size[legal.Batch], size[legal.M], size[legal.N], size[legal.K])
		depth = out
		if k.Post == nil {
			line("store acc to %s", boxText(k.C, tile))
			break
		}
		for i, n := range p.Post {
			if n < tile[i] {
				line("for i%d in the tile step %d", i, n)
				depth++
			}
		}
		nestText(line, k.Post, p.Post)
	case *legal.Walk:
		loops(p.Order, k.Dims)
		load := func(a *legal.Access) string {
			if p.stays(k, a) {
				return boxText(a, p.Tile) + " once"
			}
			return boxText(a, p.Tile)
		}
		for i, s := range k.Scores {
			line("v%d = %s * %s", i, load(s.A), load(s.B))
		}
		nestText(line, k.Body, p.Tile)
		for i := range k.Sinks {
			s := &k.Sinks[i]
			how := "in the accumulator"
			if p.spilled(k, s) {
				how = "in DRAM"
			}
			line("acc%d += v%d * %s, %s", i, s.Value, load(s.B), how)
		}
		for i := range k.Sinks {
			for _, o := range k.Sinks[i].Post.Out {
				line("store acc%d to %s", i, boxText(o.To, p.Tile))
			}
		}
	case *legal.Gather:
		line("for rows in 0..%d: load indices, gather rows of %d from b%d, store to b%d", k.Rows, k.Width, k.Table.Buf.ID, k.Out.Buf.ID)
	case *legal.Scatter:
		line("for rows in 0..%d: load indices, load rows of %d from b%d, scatter %s to b%d", k.Rows, k.Width, k.From.Buf.ID, k.Mode, k.Table.Buf.ID)
	}
	return b.String()
}

func nestText(line func(format string, args ...any), k *legal.Nest, tile []int) {
	for i, a := range k.In {
		if a != nil {
			line("load v%d = %s", i, boxText(a, tile))
		}
	}
	varies := k.Varies()
	for i, s := range k.Body {
		v := len(k.In) + i
		mask := varies[v] | s.Over
		n := 1
		for d, t := range tile {
			if mask>>d&1 != 0 {
				n *= t
			}
		}
		line("v%d = %s of %d", v, s, n)
	}
	for _, o := range k.Out {
		line("store v%d to %s", o.Value, boxText(o.To, tile))
	}
}

// boxText returns the part of a buffer that the first tile of an access touches: its extents in the order of memory.
func boxText(a *legal.Access, tile []int) string {
	ws, n, ok := windows(a, box{make([]int, len(tile)), tile}, false)
	if !ok {
		return fmt.Sprintf("b%d, out of range", a.Buf.ID)
	}
	var ext []string
	for _, w := range ws {
		ext = append(ext, fmt.Sprint(w.n))
	}
	return fmt.Sprintf("b%d [%s], %d bytes", a.Buf.ID, strings.Join(ext, " "), n*legal.Size(a.Buf.Mem()))
}
