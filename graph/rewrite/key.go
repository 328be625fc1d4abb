package rewrite

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"gradtool/graph"
)

// Key returns a text that two nodes share exactly if they apply the same operator with the same attributes to the same
// operands, as the function id names them ("" for omitted ones). It has no answer for nodes with subgraphs and for
// references to attributes of a function. Tensors in attributes are read.
func Key(n *graph.Node, id func(*graph.Value) string) (string, bool) {
	b := make([]byte, 0, 128)
	part := func(s string) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
	}
	part(graph.StdDomain(n.Domain))
	part(n.Op)
	part(n.Overload)
	b = strconv.AppendInt(b, int64(len(n.Out)), 10)
	in := n.In
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	for _, v := range in {
		if v == nil {
			part("")
		} else {
			part(id(v))
		}
	}
	attrs := n.Attrs
	byName := func(x, y *graph.Attr) int { return strings.Compare(x.Name, y.Name) }
	if !slices.IsSortedFunc(attrs, byName) {
		attrs = slices.Clone(attrs)
		slices.SortStableFunc(attrs, byName)
	}
	var text []byte
	for _, a := range attrs {
		var ok bool
		if text, ok = appendAttr(text[:0], a); !ok {
			return "", false
		}
		part(a.Name)
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(b, ':')
		b = append(b, text...)
	}
	return string(b), true
}

// appendAttr appends the type and value of an attribute.
func appendAttr(b []byte, a *graph.Attr) ([]byte, bool) {
	if a.Ref != "" {
		return b, false
	}
	b = append(b, a.Type.String()...)
	word := func(x uint64) { b = binary.LittleEndian.AppendUint64(b, x) }
	text := func(s string) { word(uint64(len(s))); b = append(b, s...) }
	switch a.Type {
	case graph.AttrFloat:
		word(uint64(math.Float32bits(a.F)))
	case graph.AttrInt:
		word(uint64(a.I))
	case graph.AttrString:
		text(a.S)
	case graph.AttrFloats:
		for _, x := range a.Floats {
			word(uint64(math.Float32bits(x)))
		}
	case graph.AttrInts:
		for _, x := range a.Ints {
			word(uint64(x))
		}
	case graph.AttrStrings:
		for _, s := range a.Strings {
			text(s)
		}
	case graph.AttrTensor:
		t, ok := TensorKey(a.T)
		if !ok {
			return b, false
		}
		text(t)
	default:
		return b, false
	}
	return b, true
}

// TensorKey returns a text that two tensors share exactly if type, shape and elements, bit by bit, are the same. It
// reads the data; it has no answer where they cannot be read.
func TensorKey(t *graph.Tensor) (string, bool) {
	if t == nil || t.Check() != nil {
		return "", false
	}
	var b strings.Builder
	b.WriteString(t.Type().String())
	b.WriteByte(0)
	for _, s := range t.Strings {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	if t.Data != nil {
		raw, err := t.Data.Bytes()
		if err != nil {
			return "", false
		}
		b.Write(raw)
	}
	return b.String(), true
}

// fingerprint returns a hash of what g and the graphs nested in it compute, in which names do not count.
func fingerprint(g *graph.Graph) uint64 {
	h := fnv.New64a()
	number := map[*graph.Value]string{}
	id := func(v *graph.Value) string {
		if number[v] == "" {
			number[v] = strconv.Itoa(len(number) + 1)
		}
		return number[v]
	}
	for s := range g.Graphs() {
		for _, v := range s.Inputs {
			id(v)
		}
		for _, n := range s.Nodes {
			key, ok := Key(n, id)
			if !ok {
				key = n.Op
				for _, v := range n.In {
					if v != nil {
						key += " " + id(v)
					}
				}
			}
			h.Write([]byte(key))
			for _, v := range n.Out {
				if v != nil {
					id(v)
				}
			}
		}
		for _, v := range s.Outputs {
			h.Write([]byte(" " + id(v)))
		}
	}
	return h.Sum64()
}
