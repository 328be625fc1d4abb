package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	tests := []struct {
		domain              string
		versions, operators int
		opset               int
		contrib             int
	}{
		{"", 631, 204, 28, 2},
		{"ai.onnx.ml", 25, 19, 5, 0},
		{"ai.onnx.preview", 1, 1, 1, 0},
		{"ai.onnx.preview.training", 4, 4, 1, 0},
		{"com.microsoft", 74, 74, 1, 74},
	}
	var names []string
	for _, tt := range tests {
		names = append(names, tt.domain)
		var versions, contrib int
		ops := map[string]bool{}
		for _, s := range All() {
			if s.Domain == tt.domain {
				versions++
				ops[s.Name] = true
				if s.Contrib {
					contrib++
				}
			}
		}
		if versions != tt.versions || len(ops) != tt.operators || contrib != tt.contrib {
			t.Errorf("domain %q: got %d versions of %d operators, %d contributed; want %d of %d, %d",
				tt.domain, versions, len(ops), contrib, tt.versions, tt.operators, tt.contrib)
		}
		if got := MaxOpset(tt.domain); got != tt.opset {
			t.Errorf("MaxOpset(%q): got %d, want %d", tt.domain, got, tt.opset)
		}
	}
	if !slices.Equal(Domains(), names) {
		t.Errorf("Domains: got %q, want %q", Domains(), names)
	}
	if MaxOpset("ai.onnx") != MaxOpset("") || MaxOpset("no.such") != 0 {
		t.Errorf("MaxOpset: ai.onnx is %d, an unknown domain %d", MaxOpset("ai.onnx"), MaxOpset("no.such"))
	}
}

// TestWellFormed checks what every schema must hold, whatever the operator.
func TestWellFormed(t *testing.T) {
	var last *Schema
	for _, s := range All() {
		if last != nil && (last.Domain > s.Domain || last.Domain == s.Domain && last.Name > s.Name ||
			last.Domain == s.Domain && last.Name == s.Name && last.Since >= s.Since) {
			t.Errorf("%s comes after %s", s.ID(), last.ID())
		}
		last = s
		if s.MinIn > s.MaxIn || s.MinOut > s.MaxOut || s.Since < 1 || s.Since > MaxOpset(s.Domain) {
			t.Errorf("%s: inputs %d..%d, outputs %d..%d, newest opset %d", s.ID(), s.MinIn, s.MaxIn, s.MinOut, s.MaxOut, MaxOpset(s.Domain))
		}
		for _, params := range [][]Param{s.In, s.Out} {
			for i, p := range params {
				if p.Types == nil || len(p.Types.List) == 0 || p.TypeVar == "" && len(p.Types.List) != 1 {
					t.Errorf("%s: %s has the types %v", s.ID(), p.Name, p.Types)
				}
				if p.Kind == VariadicParam && i != len(params)-1 {
					t.Errorf("%s: %s is variadic but not the last", s.ID(), p.Name)
				}
			}
		}
		if !slices.IsSortedFunc(s.Attrs, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: attributes are not in order", s.ID())
		}
		for _, a := range s.Attrs {
			if got, ok := s.Attr(a.Name); !ok || got.Type != a.Type {
				t.Errorf("%s: Attr(%q): got %v, %v", s.ID(), a.Name, got, ok)
			}
			if a.Required && a.Default != nil {
				t.Errorf("%s: %s is required and has a default", s.ID(), a.Name)
			}
		}
		if got, ok := Lookup(s.Domain, s.Name, s.Since); !ok || got != s {
			t.Errorf("Lookup(%q, %q, %d): got %v, %v", s.Domain, s.Name, s.Since, got, ok)
		}
	}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		domain, name string
		opset, since int // since 0: not found
		deprecated   bool
	}{
		{"", "Gemm", 1, 1, false},
		{"ai.onnx", "Gemm", 8, 7, false},
		{"", "Gemm", 12, 11, false},
		{"", "Gemm", 1000, 13, false},
		{"", "Upsample", 9, 9, false},
		{"", "Upsample", 21, 10, true},
		{"", "Scatter", 10, 9, false},
		{"", "Scatter", 11, 11, true},
		{"", "GroupNormalization", 20, 18, true},
		{"", "GroupNormalization", 21, 21, false},
		{"", "Gelu", 19, 0, false},
		{"", "Gelu", 20, 20, false},
		{"com.microsoft", "Gelu", 1, 1, false},
		{"", "LayerNormalization", 11, 1, false},
		{"", "LayerNormalization", 17, 17, false},
		{"", "NoSuchOp", 21, 0, false},
		{"no.such", "Gemm", 21, 0, false},
		{"ai.onnx.ml", "TreeEnsemble", 5, 5, false},
		{"ai.onnx.ml", "TreeEnsembleRegressor", 5, 5, true},
	}
	for _, tt := range tests {
		s, ok := Lookup(tt.domain, tt.name, tt.opset)
		if ok != (tt.since != 0) {
			t.Errorf("Lookup(%q, %q, %d): got %v, want version %d", tt.domain, tt.name, tt.opset, ok, tt.since)
		} else if ok && (s.Since != tt.since || s.Deprecated != tt.deprecated) {
			t.Errorf("Lookup(%q, %q, %d): got version %d, deprecated %v; want %d, %v",
				tt.domain, tt.name, tt.opset, s.Since, s.Deprecated, tt.since, tt.deprecated)
		}
	}
	var since []int
	for _, s := range Versions("ai.onnx", "Softmax") {
		since = append(since, s.Since)
	}
	if want := []int{1, 11, 13}; !slices.Equal(since, want) {
		t.Errorf("Versions(Softmax): got %v, want %v", since, want)
	}
}

func TestFacts(t *testing.T) {
	gemm, _ := Lookup("", "Gemm", 13)
	if got, want := gemm.In[2], (Param{Name: "C", Kind: OptionalParam, TypeVar: "T", Types: gemm.TypeVars[0].Types, Diff: Differentiable}); got != want {
		t.Errorf("Gemm-13 input 2: got %+v, want %+v", got, want)
	}
	if got, want := gemm.In[0].Types.Tensors(), Elems(BFloat16, Double, Float, Float16, Int32, Int64, Uint32, Uint64); got != want {
		t.Errorf("Gemm-13 types: got %x, want %x", got, want)
	}
	loop, _ := Lookup("", "Loop", 25)
	if loop.MinIn != 2 || loop.MaxIn != Inf || loop.MinOut != 1 || loop.MaxOut != Inf || !loop.In[2].Mixed || !loop.Nondeterministic {
		t.Errorf("Loop-25: got %+v", loop)
	}
	if body, ok := loop.Attr("body"); !ok || !body.Required || body.Type != AttrGraph {
		t.Errorf("Loop-25 body: got %+v, %v", body, ok)
	}
	if p := loop.Input(7); p == nil || p.Name != "v_initial" {
		t.Errorf("Loop-25 input 7: got %+v", p)
	}
	if p := gemm.Input(3); p != nil {
		t.Errorf("Gemm-13 input 3: got %+v, want none", p)
	}
	dft, _ := Lookup("", "DFT", 20)
	if dft.In[2].TypeVar != "" || dft.In[2].Types.Tensors() != Elems(Int64) || dft.In[0].Diff != NonDifferentiable {
		t.Errorf("DFT-20 input 2: got %+v", dft.In[2])
	}
	for _, tt := range []struct {
		name  string
		opset int
		f, cf bool
	}{{"Gelu", 20, false, true}, {"Relu", 14, true, false}, {"Softmax", 13, false, true}, {"Conv", 11, false, false}} {
		s, _ := Lookup("", tt.name, tt.opset)
		if s.Function != tt.f || s.ContextFunction != tt.cf {
			t.Errorf("%s: function %v, context function %v; want %v, %v", s.ID(), s.Function, s.ContextFunction, tt.f, tt.cf)
		}
	}
}

func TestDefaults(t *testing.T) {
	tests := []struct {
		domain, name string
		opset        int
		attr         string
		want         any
	}{
		{"", "Gemm", 13, "alpha", float32(1)},
		{"", "Gemm", 13, "transA", int64(0)},
		{"", "Softmax", 11, "axis", int64(1)},
		{"", "Softmax", 13, "axis", int64(-1)},
		{"", "Clip", 6, "max", float32(3.4028235e38)},
		{"", "Conv", 11, "auto_pad", "NOTSET"},
		{"", "Conv", 11, "strides", nil},
		{"", "MeanVarianceNormalization", 13, "axes", []int64{0, 2, 3}},
		{"", "RNN", 22, "activations", []string{"Tanh", "Tanh"}},
		{"", "BatchNormalization", 15, "epsilon", float32(1e-5)},
		{"com.microsoft", "FusedMatMul", 1, "alpha", float32(1)},
	}
	for _, tt := range tests {
		s, ok := Lookup(tt.domain, tt.name, tt.opset)
		if !ok {
			t.Errorf("%s at %d is not known", tt.name, tt.opset)
			continue
		}
		a, ok := s.Attr(tt.attr)
		if !ok || !reflect.DeepEqual(a.Default, tt.want) {
			t.Errorf("%s %s: got %#v, want %#v", s.ID(), tt.attr, a, tt.want)
		}
		if s.IsDefault(tt.attr, tt.want) != (tt.want != nil) {
			t.Errorf("%s: IsDefault(%s, %v): got %v", s.ID(), tt.attr, tt.want, tt.want == nil)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, text := range []string{
		"tensor(float)", "tensor(int2)", "seq(tensor(float8e4m3fnuz))", "optional(tensor(bool))",
		"optional(seq(tensor(string)))", "sparse_tensor(float)", "map(int64,float)", "seq(map(string,float))",
	} {
		typ, err := ParseType(text)
		if err != nil || typ.String() != text {
			t.Errorf("ParseType(%q): got %v, %v", text, typ, err)
		}
	}
	if typ, err := ParseType("map(int64, float)"); err != nil || typ != (Type{Map, Float, Int64}) {
		t.Errorf("ParseType with a space: got %v, %v", typ, err)
	}
	for _, text := range []string{"", "float", "tensor()", "tensor(undefined)", "tensor(float", "map(float)", "seq(tensor(x))"} {
		if typ, err := ParseType(text); err == nil {
			t.Errorf("ParseType(%q): got %v, want an error", text, typ)
		}
	}
	if Int2 != 26 || BFloat16 != 16 || Float8E8M0 != 24 || AttrSparseTensor != 11 || AttrTypeProto != 13 {
		t.Error("the numbers of element or attribute types are not those of the standard")
	}
	for _, tt := range []struct {
		domain, name string
		input        int
		want         string
	}{
		{"", "Equal", 0, "tensor(bool, int32, int64)"},
		{"ai.onnx.ml", "CastMap", 0, "map(int64,float) or map(int64,string)"},
	} {
		s, _ := Lookup(tt.domain, tt.name, 1)
		if got := s.In[tt.input].Types.String(); got != tt.want {
			t.Errorf("%s input %d: got %s, want %s", s.ID(), tt.input, got, tt.want)
		}
	}
	dict, _ := Lookup("ai.onnx.ml", "DictVectorizer", 1)
	for typ, want := range map[Type]bool{
		{Map, Float, Int64}:  true,
		{Map, Int64, Int64}:  false,
		{Map, 0, 0}:          true,
		{}:                   true,
		{Tensor, Float, 0}:   false,
		{Tensor, 0, 0}:       false,
		{Map, Int64, String}: true,
	} {
		if got := dict.In[0].Types.Has(typ); got != want {
			t.Errorf("DictVectorizer input has %v: got %v, want %v", typ, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const head = "domain d 1\nOp 1 1..1 1..1\n"
	tests := []struct{ text, want string }{
		{"Op 1 1..1\n", "two counts"},
		{"Op x 1..1 1..1\n", "invalid syntax"},
		{"Op 1 1 1..1\n", "not a range"},
		{"Op 1 1..1 1..1 odd\n", `unknown flag "odd"`},
		{"  in X T\n", "no schema is open"},
		{"domain d\n", "invalid syntax"},
		{head + "  in+ X T\n", "unknown word"},
		{head + "  in! X T\n", "unknown mark"},
		{head + "  in X T maybe\n", "unknown word"},
		{head + "  in X T\n", `unknown type variable "T"`},
		{head + "  in X tensor(x)\n", "not a type"},
		{head + "  type T @none\n", "unknown set"},
		{head + "  attr a bool\n", "unknown attribute type"},
		{head + "  attr a int = x\n", "invalid syntax"},
		{head + "  attr a graph = 1\n", "no written default"},
		{head + "  attr a ints = [1 x]\n", "invalid syntax"},
	}
	for _, tt := range tests {
		err := newTable().parse(tt.text, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want an error with %q", tt.text, err, tt.want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		t := newTable()
		if err := t.parse(onnxText, false); err != nil {
			b.Fatal(err)
		}
		if err := t.parse(contribText, true); err != nil {
			b.Fatal(err)
		}
		t.sort()
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, ok := Lookup("", "Cast", 17); !ok {
			b.Fatal("Cast is not known")
		}
	}
}
