package isa

import (
	"fmt"
	"reflect"
)

// Field is an operand of a form as encoder, assembler and documentation see it.
type Field struct {
	Name string
	Doc  string
	// Kind is how the operand is written: "count", "i32", "i64", "address", "bool", "bits", "type", "purpose", "flow",
	// "update" or "operand".
	Kind string
	// Len is the number of values, 1 for a scalar. An operand has one address, Dims strides, a flag and a value.
	Len   int
	index int
}

// Fields returns the operands of a form in order.
func (f Form) Fields() []Field {
	t := reflect.TypeOf(f.New()).Elem()
	list := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		fd := Field{Name: sf.Tag.Get("isa"), Doc: sf.Tag.Get("doc"), Len: 1, index: i}
		typ := sf.Type
		if typ.Kind() == reflect.Array {
			fd.Len = typ.Len()
			typ = typ.Elem()
		}
		switch typ {
		case reflect.TypeFor[Operand]():
			fd.Kind = "operand"
		case reflect.TypeFor[Local]():
			fd.Kind = "address"
		case reflect.TypeFor[DType]():
			fd.Kind = "type"
		case reflect.TypeFor[Purpose]():
			fd.Kind = "purpose"
		case reflect.TypeFor[Flow]():
			fd.Kind = "flow"
		case reflect.TypeFor[Update]():
			fd.Kind = "update"
		case reflect.TypeFor[Bits]():
			fd.Kind = "bits"
		case reflect.TypeFor[bool]():
			fd.Kind = "bool"
		case reflect.TypeFor[int64]():
			fd.Kind = "i64"
		case reflect.TypeFor[int32]():
			fd.Kind = "i32"
		default:
			panic(fmt.Sprintf("isa: field %s of form %d has no kind", sf.Name, f)) // all are run through by the tests
		}
		list = append(list, fd)
	}
	return list
}

// enumLimit returns the number of values of a kind, 0 if it is not an enumeration.
func enumLimit(kind string) uint64 {
	switch kind {
	case "type":
		return uint64(numDTypes)
	case "purpose":
		return uint64(NumPurposes)
	case "flow":
		return uint64(numFlows)
	case "update":
		return uint64(numUpdates)
	case "bool":
		return 2
	}
	return 0
}

// slot is one encoded value: a scalar, an element of an array, or a part of an operand.
type slot struct {
	wide  bool   // 64 bits
	limit uint64 // values are below, 0: no bound
}

// slots returns the values of a form in the order of encoding.
func (f Form) slots() []slot {
	var list []slot
	for _, fd := range f.Fields() {
		if fd.Kind == "operand" {
			for i := range 1 + Dims + 2 {
				s := slot{}
				if i == 1+Dims {
					s.limit = 2
				}
				list = append(list, s)
			}
			continue
		}
		for range fd.Len {
			list = append(list, slot{wide: fd.Kind == "i64", limit: enumLimit(fd.Kind)})
		}
	}
	return list
}

// values returns the values of operands in the order of encoding; signed ones are sign-extended to their width.
func values(a Args, out []uint64) []uint64 {
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		out = appendValues(out, v.Field(i))
	}
	return out
}

func appendValues(out []uint64, v reflect.Value) []uint64 {
	switch v.Kind() {
	case reflect.Array:
		for i := range v.Len() {
			out = appendValues(out, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = appendValues(out, v.Field(i))
		}
	case reflect.Bool:
		x := uint64(0)
		if v.Bool() {
			x = 1
		}
		out = append(out, x)
	case reflect.Int32:
		out = append(out, uint64(uint32(v.Int())))
	case reflect.Int64:
		out = append(out, uint64(v.Int()))
	default:
		out = append(out, v.Uint())
	}
	return out
}

// setValues is the inverse of values.
func setValues(a Args, vals []uint64) {
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		vals = setValue(v.Field(i), vals)
	}
}

func setValue(v reflect.Value, vals []uint64) []uint64 {
	switch v.Kind() {
	case reflect.Array:
		for i := range v.Len() {
			vals = setValue(v.Index(i), vals)
		}
		return vals
	case reflect.Struct:
		for i := range v.NumField() {
			vals = setValue(v.Field(i), vals)
		}
		return vals
	case reflect.Bool:
		v.SetBool(vals[0] != 0)
	case reflect.Int32:
		v.SetInt(int64(int32(vals[0])))
	case reflect.Int64:
		v.SetInt(int64(vals[0]))
	default:
		v.SetUint(vals[0])
	}
	return vals[1:]
}
