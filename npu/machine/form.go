package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// form returns what of a JSON value, whose numbers are of type json.Number, is not of the form of a Go type: fields that are missing, not
// known or of another kind, all of them joined. path is the name of the value, empty for the whole.
func form(path string, t reflect.Type, v any) error {
	switch t.Kind() {
	case reflect.Struct:
		object, ok := v.(map[string]any)
		if !ok {
			return wrong(path, v, "an object")
		}
		var errs []error
		known := map[string]bool{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			known[name] = true
			if x, ok := object[name]; ok {
				errs = append(errs, form(inside(path, name), f.Type, x))
			} else if option != "omitempty" {
				errs = append(errs, fmt.Errorf("%s is missing", inside(path, name)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !known[name] {
				errs = append(errs, fmt.Errorf("unknown field %s", inside(path, name)))
			}
		}
		return errors.Join(errs...)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return wrong(path, v, "a list")
		}
		var errs []error
		for i, x := range list {
			errs = append(errs, form(fmt.Sprintf("%s[%d]", path, i), t.Elem(), x))
		}
		return errors.Join(errs...)
	case reflect.String:
		if _, ok := v.(string); !ok {
			return wrong(path, v, "a text")
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrong(path, v, "true or false")
		}
	default:
		n, ok := v.(json.Number)
		if !ok {
			return wrong(path, v, "a number")
		}
		if _, err := n.Int64(); err != nil {
			return wrong(path, v, "a whole number of 64 bits")
		}
	}
	return nil
}

func inside(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// wrong says what a value is in place of what it should be.
func wrong(path string, v any, want string) error {
	if path == "" {
		path = "the whole"
	}
	switch x := v.(type) {
	case map[string]any:
		return fmt.Errorf("%s is an object, not %s", path, want)
	case []any:
		return fmt.Errorf("%s is a list, not %s", path, want)
	case string:
		return fmt.Errorf("%s is %q, not %s", path, x, want)
	case nil:
		return fmt.Errorf("%s is null, not %s", path, want)
	}
	return fmt.Errorf("%s is %v, not %s", path, v, want)
}
