package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Elem is an ONNX element type number (TensorProto.DataType). 0 is unknown.
type Elem uint8

// The element types of ONNX, with the numbers of TensorProto.DataType.
const (
	Undefined Elem = iota
	Float
	Uint8
	Int8
	Uint16
	Int16
	Int32
	Int64
	String
	Bool
	Float16
	Double
	Uint32
	Uint64
	Complex64
	Complex128
	BFloat16
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Uint4
	Int4
	Float4E2M1
	Float8E8M0
	Uint2
	Int2
	Float6E2M3
	Float6E3M2
	elemEnd
)

// elemNames holds the names of ONNX text, by number.
var elemNames = [elemEnd]string{
	"undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
	"uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
	"float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3", "float6e3m2",
}

// String returns the name of e in ONNX text.
func (e Elem) String() string {
	if e < elemEnd {
		return elemNames[e]
	}
	return fmt.Sprintf("elem%d", uint8(e))
}

// ParseElem returns the element type of an ONNX text name, false if there is none.
func ParseElem(name string) (Elem, bool) {
	i := slices.Index(elemNames[:], name)
	return Elem(max(i, 0)), i > 0
}

// ElemSet is a set of element types: bit n stands for element type number n.
type ElemSet uint64

// Elems returns the set of the given element types.
func Elems(es ...Elem) ElemSet {
	var s ElemSet
	for _, e := range es {
		s |= 1 << e
	}
	return s
}

// Has reports whether e is in s.
func (s ElemSet) Has(e Elem) bool { return e < 64 && s>>e&1 != 0 }

// Kind is how a type is made from its element type.
type Kind uint8

// The kinds of types that occur in ONNX schemas.
const (
	Unknown     Kind = iota // nothing is known
	Tensor                  // tensor(e)
	Seq                     // seq(tensor(e))
	Optional                // optional(tensor(e))
	OptionalSeq             // optional(seq(tensor(e)))
	Sparse                  // sparse_tensor(e)
	Map                     // map(key,e)
	SeqMap                  // seq(map(key,e))
	kindEnd
)

// kindForms holds the text of each kind, split around the element type.
var kindForms = [kindEnd][2]string{
	{"unknown", ""}, {"tensor(", ")"}, {"seq(tensor(", "))"}, {"optional(tensor(", "))"},
	{"optional(seq(tensor(", ")))"}, {"sparse_tensor(", ")"}, {"map(", ")"}, {"seq(map(", "))"},
}

// Type is a type of an operand or result without its shape. The zero Type is unknown; a Type with a kind and
// Elem 0 is of that kind with an unknown element type. Key is the key type of maps, else 0.
type Type struct {
	Kind Kind
	Elem Elem
	Key  Elem
}

// TensorOf returns the type tensor(e).
func TensorOf(e Elem) Type { return Type{Kind: Tensor, Elem: e} }

// String returns t in the notation of ONNX schemas without spaces, such as "seq(tensor(float))" or "map(int64,float)".
func (t Type) String() string {
	if t.Kind == Unknown || t.Kind >= kindEnd {
		return "unknown"
	}
	form, key := kindForms[t.Kind], ""
	if t.Kind == Map || t.Kind == SeqMap {
		key = t.Key.String() + ","
	}
	return form[0] + key + t.Elem.String() + form[1]
}

// ParseType reads the notation of String. Spaces are ignored. The error names the text.
func ParseType(text string) (Type, error) {
	s := strings.ReplaceAll(text, " ", "")
	for k := Tensor; k < kindEnd; k++ {
		inner, ok := strings.CutPrefix(s, kindForms[k][0])
		if !ok {
			continue
		}
		if inner, ok = strings.CutSuffix(inner, kindForms[k][1]); !ok {
			break
		}
		t := Type{Kind: k}
		if k == Map || k == SeqMap {
			var key string
			if key, inner, ok = strings.Cut(inner, ","); !ok {
				break
			}
			if t.Key, ok = ParseElem(key); !ok {
				break
			}
		}
		if t.Elem, ok = ParseElem(inner); !ok {
			break
		}
		return t, nil
	}
	return Type{}, fmt.Errorf("schema: %q is not a type", text)
}

// TypeSet is a set of types, as bitsets of element types by kind for cheap tests. The value types of maps are
// in Kinds[Map] and Kinds[SeqMap]; which key goes with which value is told by List alone.
type TypeSet struct {
	Kinds [kindEnd]ElemSet
	List  []Type // every member, in the order of the table
}

// Tensors returns the element types of the tensors in s.
func (s *TypeSet) Tensors() ElemSet { return s.Kinds[Tensor] }

// Has reports whether t is in s. An unknown type is in every set, and a known kind of unknown element type is in
// each set that has a type of that kind.
func (s *TypeSet) Has(t Type) bool {
	switch {
	case t.Kind == Unknown:
		return true
	case t.Kind >= kindEnd:
		return false
	case t.Elem == Undefined:
		return s.Kinds[t.Kind] != 0
	case t.Kind == Map || t.Kind == SeqMap:
		return slices.Contains(s.List, t)
	}
	return s.Kinds[t.Kind].Has(t.Elem)
}

// add puts t into s.
func (s *TypeSet) add(t Type) {
	s.Kinds[t.Kind] |= 1 << t.Elem
	s.List = append(s.List, t)
}

// String returns the members by kind, such as "tensor(float, int64) or map(int64,float)".
func (s *TypeSet) String() string {
	var parts []string
	for k := Tensor; k < Map; k++ {
		var elems []string
		for _, t := range s.List {
			if t.Kind == k {
				elems = append(elems, t.Elem.String())
			}
		}
		if elems != nil {
			parts = append(parts, kindForms[k][0]+strings.Join(elems, ", ")+kindForms[k][1])
		}
	}
	for _, t := range s.List {
		if t.Kind >= Map {
			parts = append(parts, t.String())
		}
	}
	return strings.Join(parts, " or ")
}
