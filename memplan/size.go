package memplan

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
)

// SymbolError says that sizes depend on symbolic dimensions that have no size.
type SymbolError struct{ Symbols []string }

func (e *SymbolError) Error() string {
	return fmt.Sprintf("sizes depend on %s, which no size is known for", strings.Join(e.Symbols, ", "))
}

// SizeOf returns the bytes that a value of type t takes, an expression over the symbols in its shape. It is unknown for
// strings, for what is no tensor, and where the number of elements is unknown.
func SizeOf(t graph.Type) graph.Dim {
	bits := int64(t.Elem.Bits())
	if !t.IsTensor() || bits == 0 {
		return graph.Unknown()
	}
	n := t.Shape.Size()
	if bits%8 == 0 {
		return n.Mul(graph.Known(bits / 8))
	}
	return n.Mul(graph.Known(bits)).CeilDiv(graph.Known(8))
}

// sizer evaluates sizes and notes the symbols that it has no size for.
type sizer struct {
	dims    map[string]int64
	guess   int64           // size of symbols that dims does not name; 0 for none
	symbols map[string]bool // those that can be given a size
	unbound []string
	total   float64 // bytes of all values, not rounded
	over    error   // says with which value they became more than limit
}

// limit bounds the bytes of all values together, so that their sums stay numbers.
const limit = 1 << 60

// tooLarge adds v to all values, and reports whether they take more than can be planned. What has no size yet counts nothing.
func (s *sizer) tooLarge(v *graph.Value) bool {
	n := float64(v.Type.Elem.Bits()) / 8
	if !v.Type.IsTensor() || v.Type.Shape == nil {
		return false
	}
	for _, d := range v.Type.Shape {
		x, ok := d.Eval(s.dims).Int()
		if !ok {
			return false
		}
		n *= float64(max(x, 0))
	}
	if s.total += n; s.total > limit && s.over == nil {
		s.over = fmt.Errorf("the values up to %q take %.3g bytes, which is more than can be planned", v.Name, s.total)
	}
	return s.total > limit
}

// bytes returns the size as a number. ok is false where it is not known before the model runs; a symbol without size is noted.
func (s *sizer) bytes(size graph.Dim) (n int64, ok bool) {
	size = size.Eval(s.dims)
	if n, ok = size.Int(); ok || size.IsUnknown() {
		return n, ok && n >= 0
	}
	names := size.Symbols()
	if slices.ContainsFunc(names, func(name string) bool { return !s.symbols[name] }) {
		return 0, false
	}
	if s.guess == 0 {
		s.unbound = append(s.unbound, names...)
		return 0, false
	}
	all := map[string]int64{}
	for _, name := range names {
		all[name] = s.guess
	}
	n, ok = size.Eval(all).Int()
	return n, ok && n >= 0
}

func (s *sizer) err() error {
	if s.over != nil {
		return s.over
	}
	if len(s.unbound) == 0 {
		return nil
	}
	slices.Sort(s.unbound)
	return &SymbolError{slices.Compact(s.unbound)}
}
