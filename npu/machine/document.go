package machine

import (
	"fmt"
	"reflect"
	"strings"
)

// Field is a field of the JSON form.
type Field struct {
	Path string // such as array.rows; [] stands for the elements of a list
	Kind string // number, text, truth value
	Doc  string
}

// Fields returns the fields of the JSON form in order, made of the types of the description.
func Fields() []Field { return fields("", reflect.TypeFor[Machine]()) }

func fields(prefix string, t reflect.Type) []Field {
	var list []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := prefix + name
		typ := f.Type
		if typ.Kind() == reflect.Slice {
			path += "[]"
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Struct {
			list = append(list, fields(path+".", typ)...)
			continue
		}
		kind := "number"
		switch typ.Kind() {
		case reflect.String:
			kind = "text"
		case reflect.Bool:
			kind = "truth value"
		}
		list = append(list, Field{path, kind, f.Tag.Get("doc")})
	}
	return list
}

// Document returns the reference of machine descriptions in Markdown.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Machine descriptions

Generated from package npu/machine by its tests (` + "`go test ./npu/machine -run TestDocument -update`" + `): do not edit.

A machine is a JSON object of the schema ` + Schema + `. ` + "`gradtool machine ref-edge > my.json`" + ` writes a built-in one to start from,
` + "`gradtool machine my.json`" + ` checks it, ` + "`gradtool lower --machine my.json`" + ` compiles for it. All fields but doc are needed; unknown fields are
errors. Sizes are bytes and rates are per clock cycle unless said otherwise. [ISA.md](ISA.md) says how time and values follow.

| field | kind | `)
	var machines []*Machine
	for _, name := range Names() {
		m, err := Builtin(name)
		if err != nil {
			panic("machine: " + err.Error()) // Names are those of Builtin
		}
		machines = append(machines, m)
		b.WriteString(name + " | ")
	}
	b.WriteString("meaning |\n|---|---|" + strings.Repeat("---|", len(machines)) + "---|\n")
	for _, f := range Fields() {
		if f.Path == "schema" || f.Path == "name" || f.Path == "doc" {
			fmt.Fprintf(&b, "| %s | %s |%s %s |\n", f.Path, f.Kind, strings.Repeat(" |", len(machines)), f.Doc)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | ", f.Path, f.Kind)
		for _, m := range machines {
			b.WriteString(value(reflect.ValueOf(*m), f.Path) + " | ")
		}
		b.WriteString(f.Doc + " |\n")
	}
	return b.String()
}

// value returns the value of a field as text; those of a list's elements one after the other.
func value(v reflect.Value, path string) string {
	name, rest, _ := strings.Cut(path, ".")
	list := strings.HasSuffix(name, "[]")
	name = strings.TrimSuffix(name, "[]")
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag != name {
			continue
		}
		f := v.Field(i)
		if list {
			var parts []string
			for k := range f.Len() {
				parts = append(parts, value(f.Index(k), rest))
			}
			return strings.Join(parts, ", ")
		}
		if rest != "" {
			return value(f, rest)
		}
		return fmt.Sprint(f.Interface())
	}
	return ""
}
