package legal

import "gradtool/graph"

// Varies returns, for each value of the nest, the dimensions along which it varies, by bit. Value 0 of an epilogue,
// whose access is nil, varies along all dimensions of more than one index.
func (k *Nest) Varies() []uint32 {
	out := make([]uint32, 0, len(k.In)+len(k.Body))
	for _, a := range k.In {
		out = append(out, k.loadVaries(a))
	}
	for _, s := range k.Body {
		out = append(out, s.varies(out))
	}
	return out
}

func (k *Nest) loadVaries(a *Access) uint32 {
	if a != nil {
		return a.Varies()
	}
	mask := uint32(0)
	for i, d := range k.Dims {
		if d > 1 {
			mask |= 1 << i
		}
	}
	return mask
}

// varies returns the dimensions along which the statement's value varies, given those of earlier values.
func (s *Stmt) varies(of []uint32) uint32 {
	mask := uint32(0)
	for _, a := range s.Args {
		mask |= of[a]
	}
	if s.Op == Iota {
		mask |= 1 << s.Dim
	}
	return mask &^ s.Over
}

// Extent returns the number of indices of the dimensions in mask.
func (k *Nest) Extent(mask uint32) int {
	n := 1
	for i, d := range k.Dims {
		if mask>>i&1 != 0 {
			n *= d
		}
	}
	return n
}

// Elems returns the element type of each value of the nest.
func (k *Nest) Elems() []graph.DataType {
	out := make([]graph.DataType, 0, len(k.In)+len(k.Body))
	for _, a := range k.In {
		if a == nil {
			out = append(out, graph.Float)
		} else {
			out = append(out, a.Buf.Elem)
		}
	}
	for _, s := range k.Body {
		out = append(out, s.Elem)
	}
	return out
}
