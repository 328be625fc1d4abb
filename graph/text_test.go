package graph

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// text prints a model whole.
func text(t *testing.T, m *Model) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, m, PrintOptions{MaxElems: -1}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const sampleText = `<
   ir_version: 8,
   opset_import: ["" : 17, "local" : 1],
   producer_name: "gradtool"
>
g (float[N,2] x, bool c) => (float[N,2] y, float[N,2] t)
   <
      float[2] w = {1, 2}
   >
{
   [add] s = Add (x, w)  # meta: "gradtool.role": "forward"
   y = Relu (s)
   z = If (c) <then_branch: graph = Neg () => (Neg_out)
   {
      Neg_out = Neg (y)
   }, else_branch: graph = Abs () => (Abs_out)
   {
      Abs_out = Abs (y)
   }>
   t = local.twice <alpha: float = 2> (z)
}

<
   domain: "local",
   opset_import: ["" : 17]
>
twice <alpha> (a) => (b)
{
   b = Elu <alpha: float = @alpha> (a)
}
`

func TestPrint(t *testing.T) {
	if got := text(t, sample()); got != sampleText {
		t.Errorf("got\n%s\nwant\n%s", got, sampleText)
	}
}

func TestParseSample(t *testing.T) {
	m, err := Parse(sampleText)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(m); err != nil {
		t.Fatal(err)
	}
	if got := text(t, m); got != sampleText {
		t.Errorf("got\n%s\nwant\n%s", got, sampleText)
	}
}

// everything is a model with one of each thing that has a text.
func everything() *Model {
	m := NewModel(`my "graph"`, 21)
	m.ProducerVersion, m.Domain, m.Version, m.Doc = "1", "org", 3, "two\nlines \\ \"quoted\""
	m.Meta.Set("k", "v")
	g := m.Graph
	x := g.AddInput("x y", TensorOf(Float16, Shape{Unknown(), Sym("2*N + 1"), Sym("N").Mul(Known(2)).Add(Known(1)), Known(-1)}))
	g.SetInit(g.AddInput("float", TensorOf(Int64, ShapeOf(0))), &Tensor{Elem: Int64, Dims: []int64{0}, Data: Bytes{}})
	g.AddInput("seq", SequenceOf(TensorOf(Float, nil)))
	g.AddInput("o", OptionalOf(SequenceOf(TensorOf(String, ShapeOf()))))
	g.AddInput("m", Type{Kind: KindMap, Key: Int64, Inner: &Type{Kind: KindTensor, Elem: Float, Shape: Shape{}}})
	g.AddInput("s", Type{Kind: KindSparse, Elem: Double, Shape: ShapeOf(2)})
	g.AddInput("q", Type{Kind: KindOpaque, Domain: "a.b", Name: "c"})
	g.AddInput("q2", Type{Kind: KindOpaque, Name: "c.d"})
	g.AddInput("u", Type{})
	for dt := Float; dt < numDataTypes; dt++ {
		d := &Tensor{Elem: dt, Dims: []int64{3}}
		if dt == String {
			d.Strings = []string{"a", `b"\`, "c\n"}
		} else {
			raw := make(Bytes, d.ByteLen())
			for i := range raw {
				raw[i] = byte(37*i + 11)
			}
			if rest := 3 * dt.Bits() % 8; rest != 0 {
				raw[len(raw)-1] &= 1<<rest - 1
			}
			d.Data = raw
		}
		g.AddInit("init_"+dt.String(), d)
	}
	inf := float32(math.Inf(1))
	g.AddInit("scalar", Floats([]int64{}, inf))
	sub := m.NewGraph("")
	sub.SetOutputs(x)
	n := g.NewNode("com.micro-soft", "Op.dot", []*Value{x, nil, x, nil}, []string{"", "r", "inf"},
		IntAttr("i", -3), FloatAttr("f", float32(math.Copysign(0, -1))), FloatAttr("big", 1e30), FloatAttr("whole", 2), StringAttr("s", `\"`),
		IntsAttr("is", 1, 2), IntsAttr("none"), FloatsAttr("fs", 1.5, -inf, inf, 0.1), &Attr{Name: "ss", Type: AttrStrings, Strings: []string{"", "x"}},
		TensorAttr("t", &Tensor{Name: "inner name", Elem: Double, Dims: []int64{1, 2}, Data: Bytes(make([]byte, 16))}),
		&Attr{Name: "ts", Type: AttrTensors, Tensors: []*Tensor{Floats(nil, 1), Ints([]int64{}, 2)}},
		GraphAttr("g", sub), &Attr{Name: "gs", Type: AttrGraphs, Graphs: []*Graph{m.NewGraph("a"), m.NewGraph("nan")}},
		&Attr{Name: "sp", Type: AttrSparseTensor, Sparse: []*Sparse{{Floats(nil, 1), Ints(nil, 2), []int64{4}}}},
		&Attr{Name: "sps", Type: AttrSparseTensors, Sparse: []*Sparse{{Floats(nil, 1), Ints(nil, 2), []int64{4}}, {Floats(nil), Ints(nil), []int64{0}}}},
		&Attr{Name: "tp", Type: AttrTypeProto, Types: []Type{TensorOf(Float, nil)}},
		&Attr{Name: "tps", Type: AttrTypeProtos, Types: []Type{SequenceOf(TensorOf(Bool, nil)), TensorOf(Int4, ShapeOf())}})
	for _, s := range n.Attr("gs").Graphs {
		s.Parent = n
	}
	n.Name, n.Overload = "a node", "over-load"
	n.Meta.Set("key with \n newline", "v, w: \"x\"")
	n.Meta.Set("k", "")
	n.Out[1].Type = TensorOf(Undefined, Shape{Unknown()})
	g.Append(n, g.NewNode("", "Sink", nil, nil))
	g.SetOutputs(n.Out[2], x)
	f := &Function{Domain: "d", Name: "f name", Overload: "o", Doc: "doc", Attrs: []string{"a", "float"}, Defaults: []*Attr{IntsAttr("b", 1), StringAttr("c", "x")}}
	f.Opsets = []Opset{{"", 21}}
	f.Body = m.NewGraph("f name")
	f.Body.Func = f
	in := f.Body.AddInput("in", TensorOf(Float, nil))
	f.Body.SetOutputs(in)
	m.Functions = append(m.Functions, f)
	return m
}

func TestTextRoundTrip(t *testing.T) {
	first := text(t, everything())
	m, err := Parse(first)
	if err != nil {
		t.Fatalf("%v in\n%s", err, first)
	}
	if second := text(t, m); second != first {
		t.Errorf("got\n%s\nwant\n%s", second, first)
	}
	want := everything()
	for i, v := range want.Graph.Inits {
		w := m.Graph.Inits[i]
		if v.Init.Elem == String {
			continue
		}
		a, _ := v.Init.Data.Bytes()
		b, _ := w.Init.Data.Bytes()
		if string(a) != string(b) || v.Name != w.Name {
			t.Errorf("initializer %s: bytes %x, want %x", v.Name, b, a)
		}
	}
	for i, v := range want.Graph.Inputs {
		if w := m.Graph.Inputs[i]; !w.Type.Same(v.Type) || w.Name != v.Name {
			t.Errorf("input %q of type %s, want %q of %s", w.Name, w.Type, v.Name, v.Type)
		}
	}
	n := m.Graph.Nodes[0]
	if n.Domain != "com.micro-soft" || n.Op != "Op.dot" || n.Overload != "over-load" || len(n.In) != 4 || n.In[1] != nil || n.Out[0] != nil || n.Meta.Get("k") != "" || len(n.Meta) != 2 {
		t.Errorf("node is %s with metadata %v", n, n.Meta)
	}
	if !math.Signbit(float64(n.Attr("f").F)) || n.Attr("g").G.Outputs[0] != m.Graph.Inputs[0] {
		t.Errorf("attributes %s", n)
	}
}

func TestPrintElides(t *testing.T) {
	m := NewModel("g", 17)
	m.Graph.AddInit("w", Floats(nil, make([]float32, 100)...))
	var b strings.Builder
	if err := Print(&b, m, PrintOptions{Hash: true}); err != nil {
		t.Fatal(err)
	}
	if want := "float[100] w = {... 7a12e561}"; !strings.Contains(b.String(), want) {
		t.Errorf("got %s, want it to contain %s", b.String(), want)
	}
	_, err := Parse(b.String())
	if err == nil || !strings.Contains(err.Error(), "left out of the text") {
		t.Errorf("parsing an elided tensor gives %v", err)
	}
}

func TestParseForms(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"no header", `g () => () {}`, `g () => ()`},
		{"attributes behind", `g (float x) => (y) { y = Elu (x) <alpha = 2.0> }`, `y = Elu <alpha: float = 2> (x)`},
		{"omitted operands", `g (float x) => (y) { y = Clip (x,,x) }`, `y = Clip (x, "", x)`},
		{"omitted in front", `g (float x) => (y) { y = Op (,x) }`, `y = Op ("", x)`},
		{"comma at the end", `g (float x) => (y) { y = Op (x,) }`, `y = Op (x)`},
		{"only a comma", `g () => (y) { y = Op (,) }`, `y = Op ("")`},
		{"lists without type", `g () => (y) { y = Op <a = [1, 2], b = [1.0], c = ["x"], d = 3, e = "s", f = float[1] {1}> () }`,
			`a: ints = [1, 2], b: floats = [1], c: strings = ["x"], d: int = 3, e: string = "s", f: tensor = float[1] {1}`},
		{"unordered", `g (float x) => (y) { y = Abs (z) z = Neg (x) }`, "y = Abs (z)\n   z = Neg (x)"},
		{"comments", "# first\ng (float x) # second\n=> (y) { # third\n y = Abs (x) # fourth\n}", "y = Abs (x)"},
		{"initializer without list", `g (float[2] x = {1, 2}) => (x) {}`, `float[2] x = {1, 2}`},
		{"scalar and unknown rank", `g (float a, float[] b, float[N] c) => () {}`, `(float a, float[] b, float[N] c)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parse(c.src)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, m); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant it to contain\n%s", got, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		name, src string
		line, col int
		want      string
	}{
		{"nothing", "", 1, 1, "want a name, got the end"},
		{"header", "<ir_versoin: 3> g () => () {}", 1, 2, `no field "ir_versoin"`},
		{"undefined", "g (float x) => (y) {\n  y = Add (x, zz)\n}", 2, 15, `"zz" is not defined`},
		{"output", "g () => (y) {}", 1, 10, `output "y" is not defined`},
		{"twice", "g (float x) => () {\n x = Abs (x) }", 2, 2, `"x" is defined twice`},
		{"type", "g (flot[2] x) => () {}", 1, 8, `want ")", got "["`},
		{"count", "g () => () <float[3] w = {1, 2}> {}", 1, 22, "2 numbers"},
		{"range", "g () => () <int8[1] w = {300}> {}", 1, 26, "300 is no element of type int8"},
		{"symbolic data", "g () => () <float[N] w = {1}> {}", 1, 22, "known shape"},
		{"external", `g () => () <float[1] w = ["location": "f"]> {}`, 1, 26, "another file"},
		{"string", `g () => () <string[1] w = {"abc}> {}`, 1, 28, "does not end"},
		{"attribute type", "g () => () { = Op <a: itn = 1> () }", 1, 21, `"itn" is no type`},
		{"attribute value", "g () => () { = Op <a: int = 1.5> () }", 1, 29, "has a value of type float, want int"},
		{"attribute twice", "g () => () { = Op <a = 1, a = 2> () }", 1, 14, "attribute a is given twice"},
		{"empty list", "g () => () { = Op <a = []> () }", 1, 22, "empty list"},
		{"depth", "g (" + strings.Repeat("seq(", 1000) + "float" + strings.Repeat(")", 1000) + " x) => () {}", 1, 400, "nested deeper"},
		{"rest", "g () => () {} }", 1, 15, `want a name, got "}"`},
		{"columns count characters", "g () => () { \"é\" = Op (x) }", 1, 24, `"x" is not defined`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.src)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("got %v, want a ParseError", err)
			}
			if pe.Line != c.line || pe.Col != c.col || !strings.Contains(pe.Msg, c.want) {
				t.Errorf("got %v, want %d:%d and %q", pe, c.line, c.col, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sampleText)
	var b strings.Builder
	if err := Print(&b, everything(), PrintOptions{MaxElems: -1}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`g (float[N, "M + 1"] x = {1}) => (y) <seq(int4) z> { [n] y = a.b.Op:o <g: graph = h () => () {}, t = bool[2] {1, 0}> (x, "", y) }`)
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse(src)
		if err != nil {
			return
		}
		first := text(t, m)
		n, err := Parse(first)
		if err != nil {
			t.Fatalf("%v in\n%s", err, first)
		}
		if second := text(t, n); second != first {
			t.Fatalf("got\n%s\nwant\n%s", second, first)
		}
		_ = Verify(m) // must not panic, whatever the text says
	})
}
