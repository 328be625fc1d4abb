package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// operands reads types separated by spaces: "f" float, "h" float16, "i" int64, "b" bool, "s" string, "?" unknown,
// "-" omitted.
func operands(t *testing.T, text string) []Operand {
	t.Helper()
	elems := map[string]Elem{"f": Float, "h": Float16, "i": Int64, "b": Bool, "s": String}
	var out []Operand
	for _, w := range strings.Fields(text) {
		o := Operand{Omitted: w == "-"}
		if e, ok := elems[w]; ok {
			o.Type = TensorOf(e)
		} else if w != "?" && w != "-" {
			t.Fatalf("%q is no operand", w)
		}
		out = append(out, o)
	}
	return out
}

func attrs(vs ...any) []AttrFact {
	types := func(v any) AttrType {
		switch v.(type) {
		case int64:
			return AttrInt
		case float32:
			return AttrFloat
		case string:
			return AttrString
		case []int64:
			return AttrInts
		}
		return AttrUndefined
	}
	var out []AttrFact
	for i := 0; i < len(vs); i += 2 {
		out = append(out, AttrFact{Name: vs[i].(string), Type: types(vs[i+1]), Value: vs[i+1]})
	}
	return out
}

func TestAccepts(t *testing.T) {
	tests := []struct {
		op      string
		opset   int
		in, out string
		attrs   []AttrFact
		want    []string
	}{
		{"Gemm", 13, "f f f", "f", attrs("alpha", float32(2)), nil},
		{"Gemm", 13, "f f", "f", nil, nil},
		{"Gemm", 13, "f f -", "f", nil, nil},
		{"Gemm", 13, "? ? ?", "?", attrs("transA", nil), nil},
		{"Gemm", 9, "f f -", "f", nil, []string{"input 2 (C) is omitted but not optional"}},
		{"Gemm", 9, "f f", "f", nil, []string{"2 inputs, want at least 3"}},
		{"Gemm", 13, "- f", "f", nil, []string{"input 0 (A) is omitted but not optional"}},
		{"Gemm", 13, "f f f f", "f", nil, []string{"4 inputs, want at most 3"}},
		{"Gemm", 13, "f h", "f", nil, []string{"input 1 (B) has type tensor(float16), but T is tensor(float) by input 0 (A)"}},
		{"Gemm", 13, "f f", "h", nil, []string{"output 0 (Y) has type tensor(float16), but T is tensor(float) by input 0 (A)"}},
		{"Gemm", 13, "b b", "?", nil, []string{
			"input 0 (A) has type tensor(bool), want tensor(bfloat16, double, float, float16, int32, int64, uint32, uint64)",
			"input 1 (B) has type tensor(bool), want tensor(bfloat16, double, float, float16, int32, int64, uint32, uint64)",
		}},
		{"Gemm", 13, "f f", "f", attrs("beta", int64(1), "gamma", float32(1), "__note", "x"), []string{
			"attribute beta has type int, want float", "attribute gamma is not known to Gemm-13"}},
		{"Gemm", 13, "f f", "f", attrs("beta", float32(1), "beta", float32(1)), []string{"attribute beta is given twice"}},
		{"Gemm", 13, "f f", "", nil, []string{"0 outputs, want at least 1"}},
		{"Transpose", 13, "f", "-", nil, []string{"output 0 (transposed) is omitted but not optional"}},
		{"Cast", 13, "f", "i", nil, []string{"attribute to is missing"}},
		{"Cast", 13, "f", "i", attrs("to", int64(7)), nil},
		{"Clip", 13, "f - f", "f", nil, nil},
		{"Clip", 13, "f - h", "f", nil, []string{"input 2 (max) has type tensor(float16), but T is tensor(float) by input 0 (input)"}},
		{"Concat", 13, "f f f f f", "f", attrs("axis", int64(0)), nil},
		{"Concat", 13, "f f h", "f", attrs("axis", int64(0)), []string{"input 2 (inputs) has type tensor(float16), but T is tensor(float) by input 0 (inputs)"}},
		{"Loop", 16, "- - f i", "f i f", attrs("body", nil), nil},
		{"Loop", 16, "f b", "f", attrs("body", nil), []string{"input 0 (M) has type tensor(float), want tensor(int64)"}},
		{"LSTM", 14, "f f f", "- f", nil, nil},
		{"LayerNormalization", 16, "f f", "f", attrs("extra", int64(1)), nil},
		{"LayerNormalization", 17, "f f", "f", attrs("extra", int64(1)), []string{"attribute extra is not known to LayerNormalization-17"}},
		{"Where", 16, "b f f", "f", nil, nil},
	}
	for _, tt := range tests {
		s, ok := Lookup("", tt.op, tt.opset)
		if !ok {
			t.Fatalf("%s at %d is not known", tt.op, tt.opset)
		}
		n := &Node{In: operands(t, tt.in), Out: operands(t, tt.out), Attrs: tt.attrs}
		if got := s.Accepts(n); !slices.Equal(got, tt.want) {
			t.Errorf("%s(%s) -> %s: got %q, want %q", s.ID(), tt.in, tt.out, got, tt.want)
		}
	}
}

func TestLegalAt(t *testing.T) {
	tensor := func(e Elem, dims ...int64) Operand {
		return Operand{Type: TensorOf(e), Dims: append([]int64{}, dims...)}
	}
	ints := func(vs ...int64) Operand {
		o := tensor(Int64, int64(len(vs)))
		o.Ints = vs
		return o
	}
	ops := func(os ...Operand) []Operand { return os }
	x := tensor(Float, 2, 3, 4)
	unknown := Operand{Type: TensorOf(Float)}
	mode := func(v string) []AttrFact { return attrs("coordinate_transformation_mode", v) }

	tests := []struct {
		op       string
		from, to int
		in       []Operand
		attrs    []AttrFact
		outs     int
		want     string // part of the error, "" if legal
	}{
		{"Relu", 21, 14, ops(x), nil, 1, ""},
		{"Relu", 21, 1, ops(x), nil, 1, ""},
		{"Relu", 21, 13, ops(tensor(Int64, 2)), nil, 1, "has type tensor(int64)"},
		{"Gelu", 21, 19, ops(x), nil, 1, "came with opset 20"},
		{"NoSuchOp", 21, 19, ops(x), nil, 1, "not known"},
		{"LayerNormalization", 17, 16, ops(x, x), nil, 1, "of the standard from opset 17"},
		{"LayerNormalization", 16, 17, ops(x, x), nil, 1, ""},
		{"Upsample", 9, 10, ops(x, x), nil, 1, "deprecated from opset 10"},
		{"Upsample", 10, 21, ops(x, x), nil, 1, ""},
		{"ReduceSum", 21, 13, ops(x, ints(1)), nil, 1, ""},
		{"ReduceSum", 21, 12, ops(x, ints(1)), nil, 1, "2 inputs, want at most 1"},
		{"ReduceMax", 21, 11, ops(x), nil, 1, ""},

		{"Softmax", 21, 13, ops(x), attrs("axis", int64(1)), 1, ""},
		{"Softmax", 21, 12, ops(x), attrs("axis", int64(1)), 1, "opset 13 changed the meaning"},
		{"Softmax", 21, 12, ops(x), attrs("axis", int64(2)), 1, ""},
		{"Softmax", 21, 12, ops(unknown), attrs("axis", int64(2)), 1, "opset 13 changed the meaning"},
		{"Softmax", 21, 12, ops(unknown), attrs("axis", int64(-1)), 1, ""},
		{"Softmax", 21, 10, ops(unknown), attrs("axis", int64(-1)), 1, "negative axes"},
		{"Softmax", 21, 12, ops(x), nil, 1, "default of attribute axis changed from -1 to 1"},
		{"Softmax", 12, 13, ops(x), attrs("axis", int64(1)), 1, "opset 13 changed the meaning"},

		{"Add", 21, 7, ops(x, tensor(Float, 4)), nil, 1, ""},
		{"Add", 21, 6, ops(x, tensor(Float, 4)), nil, 1, "NumPy"},
		{"Add", 21, 6, ops(x, x), nil, 1, ""},
		{"Add", 21, 6, ops(unknown, unknown), nil, 1, "NumPy"},

		{"GroupNormalization", 21, 18, ops(x, x, x), attrs("num_groups", int64(1)), 1, "per channel"},
		{"GroupNormalization", 18, 20, ops(x, x, x), attrs("num_groups", int64(1)), 1, ""},
		{"BatchNormalization", 21, 9, ops(x, x, x, x, x), nil, 1, ""},
		{"BatchNormalization", 21, 14, ops(x, x, x, x, x), attrs("training_mode", int64(1)), 3, ""},
		{"BatchNormalization", 21, 9, ops(x, x, x, x, x), nil, 3, "opset 14 changed the meaning"},
		{"AveragePool", 21, 11, ops(x), attrs("kernel_shape", []int64{2}), 1, ""},
		{"AveragePool", 21, 11, ops(x), attrs("kernel_shape", []int64{2}, "ceil_mode", int64(1)), 1, ""},
		{"AveragePool", 21, 11, ops(x), attrs("kernel_shape", []int64{2}, "strides", []int64{5}, "ceil_mode", int64(1), "count_include_pad", int64(1)), 1, "opset 19 changed"},
		{"MaxPool", 22, 11, ops(x), attrs("kernel_shape", []int64{2}, "strides", []int64{3}, "ceil_mode", int64(1)), 1, "opset 22 changed"},
		{"MaxPool", 22, 12, ops(x), attrs("kernel_shape", []int64{3}, "strides", []int64{2}, "ceil_mode", int64(1)), 1, ""},
		{"AveragePool", 21, 11, ops(x), attrs("kernel_shape", []int64{2}, "ceil_mode", int64(0)), 1, ""},
		{"Resize", 11, 10, ops(x, x), nil, 1, "half_pixel"},
		{"Resize", 19, 18, ops(x, Operand{Omitted: true}, x), mode("half_pixel_symmetric"), 1, "gained half_pixel_symmetric"},
		{"Resize", 19, 18, ops(x, Operand{Omitted: true}, x), mode("asymmetric"), 1, ""},
		{"RoiAlign", 16, 10, ops(x, x, tensor(Int64, 2)), nil, 1, "half a pixel"},
		{"ScatterND", 21, 16, ops(x, ints(0), x), attrs("reduction", "add"), 1, ""},
		{"ScatterND", 21, 16, ops(x, ints(0), x), attrs("reduction", "max"), 1, "gained max"},
		{"DFT", 20, 17, ops(x), nil, 1, "opset 20 changed"},
		{"Gather", 21, 10, ops(x, ints(0, 1)), nil, 1, ""},
		{"Gather", 21, 10, ops(x, ints(0, -1)), nil, 1, "negative indices"},
		{"Slice", 21, 10, ops(x, ints(0), ints(1), ints(0)), nil, 1, ""},
		{"Slice", 21, 10, ops(x, ints(0), ints(1), ints(0), ints(-1)), nil, 1, "slice backward"},
		{"QuantizeLinear", 13, 10, ops(x, tensor(Float)), nil, 1, ""},
		{"QuantizeLinear", 13, 10, ops(x, tensor(Float, 3)), nil, 1, "per axis"},
		{"GridSample", 20, 16, ops(tensor(Float, 1, 1, 2, 2), x), attrs("mode", "nearest"), 1, ""},
		{"GridSample", 20, 16, ops(tensor(Float, 1, 1, 2, 2), x), attrs("mode", "linear"), 1, "bilinear"},
		{"Split", 18, 13, ops(x, ints(1, 1)), nil, 2, ""},
	}
	for _, tt := range tests {
		n := &Node{Opset: tt.from, In: tt.in, Attrs: tt.attrs, Out: make([]Operand, tt.outs)}
		err := LegalAt("", tt.op, tt.to, n)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %d -> %d: got %v, want it legal", tt.op, tt.from, tt.to, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %d -> %d: got %v, want an error with %q", tt.op, tt.from, tt.to, err, tt.want)
		}
		var illegal *IllegalError
		if err != nil && !errors.As(err, &illegal) {
			t.Errorf("%s %d -> %d: %T is no *IllegalError", tt.op, tt.from, tt.to, err)
		}
	}
}

func TestDroppable(t *testing.T) {
	n := &Node{Opset: 14, Attrs: attrs("allowzero", int64(0))}
	if got := Droppable("", "Reshape", 13, n); !slices.Equal(got, []string{"allowzero"}) {
		t.Errorf("Reshape 14 -> 13 with allowzero 0: got %q", got)
	}
	n.Attrs = attrs("allowzero", int64(1))
	if got := Droppable("", "Reshape", 13, n); got != nil {
		t.Errorf("Reshape 14 -> 13 with allowzero 1: got %q", got)
	}
}

// TestBreaks checks that each break is at a version of its operator that has a predecessor, and listed once.
func TestBreaks(t *testing.T) {
	type key struct {
		domain, name string
		version      int
		what         string
	}
	seen := map[key]bool{}
	for _, b := range AllBreaks() {
		vs := Versions(b.Domain, b.Name)
		i := slices.IndexFunc(vs, func(s *Schema) bool { return s.Since == b.Version })
		if i < 1 || vs[i-1].Contrib {
			t.Errorf("%s has no version %d with a predecessor, but a break there", b.Name, b.Version)
		}
		k := key{b.Domain, b.Name, b.Version, b.What}
		if seen[k] || b.What == "" {
			t.Errorf("break %+v is listed twice or says nothing", k)
		}
		seen[k] = true
	}
	var versions []int
	for _, b := range Breaks("ai.onnx", "Softmax") {
		versions = append(versions, b.Version)
	}
	if want := []int{11, 13}; !slices.Equal(versions, want) {
		t.Errorf("Breaks(Softmax): got versions %v, want %v", versions, want)
	}
}
