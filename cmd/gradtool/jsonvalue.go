package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
)

// marshalFinite is json.Marshal, except that numbers which JSON has no spelling for become the strings "NaN",
// "Infinity" and "-Infinity", as protobuf's JSON form writes them. All else is written as encoding/json does.
func marshalFinite(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) {
		return b, err
	}
	return json.Marshal(finite(reflect.ValueOf(v)))
}

// finite returns what encodes as v does, with strings in place of the numbers that JSON cannot hold.
func finite(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		switch x := v.Float(); {
		case math.IsNaN(x):
			return "NaN"
		case math.IsInf(x, 1):
			return "Infinity"
		case math.IsInf(x, -1):
			return "-Infinity"
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return finite(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && (v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8) {
			break
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = finite(v.Index(i))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			break
		}
		m := reflect.MakeMap(reflect.MapOf(v.Type().Key(), reflect.TypeFor[any]()))
		for it := v.MapRange(); it.Next(); {
			x := reflect.New(reflect.TypeFor[any]()).Elem()
			if item := finite(it.Value()); item != nil {
				x.Set(reflect.ValueOf(item))
			}
			m.SetMapIndex(it.Key(), x)
		}
		return m.Interface()
	case reflect.Struct:
		return members(v, nil)
	}
	return v.Interface()
}

// object is a JSON object with its members in order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		name, _ := json.Marshal(m.name)
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// members appends the exported fields of a struct under their JSON names; those of embedded structs stand among them.
func members(v reflect.Value, to object) object {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			to = members(v.Field(i), to)
			continue
		case !f.IsExported() || name == "-" || strings.Contains(options, "omitempty") && emptyValue(v.Field(i)):
			continue
		case name == "":
			name = f.Name
		}
		to = append(to, member{name, finite(v.Field(i))})
	}
	return to
}

// emptyValue reports what encoding/json leaves out under omitempty.
func emptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
