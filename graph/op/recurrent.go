package op

import (
	"fmt"

	"gradtool/graph"
)

// recurrentDefs holds RNN, GRU and LSTM. Operands are X [T, B, I], W [D, G·H, I], R [D, G·H, H], B [D, 2·G·H], lengths
// [B], the initial state [D, B, H], for LSTM the initial cell [D, B, H] and peepholes [D, 3·H], with D
// directions and G gates; results Y [T, D, B, H], the last state and for LSTM the last cell [D, B, H]. With layout 1 the batch comes first in X, Y and the states.
func recurrentDefs() []Def {
	def := func(kind recurrentKind, samples ...Sample) Def {
		return Def{
			Name:  kind.name,
			Infer: func(c *InferCtx) error { return inferRecurrent(c, kind) },
			Eval:  func(c *EvalCtx) error { return evalRecurrent(c, kind) },
			Cost: func(c *CostCtx) float64 {
				steps := float64(c.In[0][0] * c.In[0][1])
				return 2 * steps * (float64(prod(c.In[1])) + float64(prod(c.In[2])))
			},
			Decompose: func(b *Builder, n *graph.Node) []*graph.Value { return decomposeRecurrent(b, n, kind) },
			Samples:   append(recurrentSamples(kind), samples...),
		}
	}
	kindRNN := recurrentKind{"RNN", 1, []string{"Tanh"}, false}
	kindGRU := recurrentKind{"GRU", 3, []string{"Sigmoid", "Tanh"}, false}
	kindLSTM := recurrentKind{"LSTM", 4, []string{"Sigmoid", "Tanh", "Tanh"}, true}
	acts := func(names ...string) *graph.Attr {
		return &graph.Attr{Name: "activations", Type: graph.AttrStrings, Strings: names}
	}
	size := graph.IntAttr("hidden_size", 2)
	four := TV(graph.Int32, []int{4}, 1, 3, 0, 2)
	return []Def{
		def(kindRNN,
			Sample{Name: "activation with alpha and beta", In: []Arg{F(2, 1, 3), F(1, 2, 3), F(1, 2, 2)}, Outs: 2,
				Attrs: []*graph.Attr{size, acts("ScaledTanh"), graph.FloatsAttr("activation_alpha", 0.7), graph.FloatsAttr("activation_beta", 1.3)}},
			Sample{Name: "two activations", In: []Arg{F(2, 1, 3), F(2, 2, 3), F(2, 2, 2)}, Outs: 2,
				Attrs: []*graph.Attr{size, acts("Affine", "Softsign"), graph.FloatsAttr("activation_alpha", 0.7), graph.FloatsAttr("activation_beta", 0.2),
					graph.StringAttr("direction", "bidirectional")}},
		),
		def(kindGRU,
			Sample{Name: "linear before reset", In: []Arg{F(3, 2, 3), F(1, 6, 3), F(1, 6, 2), F(1, 12)}, Outs: 2,
				Attrs: []*graph.Attr{size, graph.IntAttr("linear_before_reset", 1)}},
		),
		def(kindLSTM,
			Sample{Name: "peepholes", In: []Arg{F(3, 2, 3), F(1, 8, 3), F(1, 8, 2), F(1, 16), {}, F(1, 2, 2), F(1, 2, 2), F(1, 6)},
				Attrs: []*graph.Attr{size}, Outs: 3},
			Sample{Name: "input forget, clip", In: []Arg{F(2, 2, 3), F(1, 8, 3), F(1, 8, 2)}, Outs: 3,
				Attrs: []*graph.Attr{size, graph.IntAttr("input_forget", 1), graph.FloatAttr("clip", 1.5)}},
			Sample{Name: "lengths, both directions, peepholes", Outs: 3,
				In:    []Arg{F(3, 4, 3), F(2, 8, 3), F(2, 8, 2), F(2, 16), four, F(2, 4, 2), F(2, 4, 2), F(2, 6)},
				Attrs: []*graph.Attr{size, graph.StringAttr("direction", "bidirectional")}},
		),
	}
}

// recurrentKind tells the three operators apart.
type recurrentKind struct {
	name  string
	gates int
	acts  []string // default activations of one direction
	cell  bool     // has a cell state
}

func recurrentSamples(k recurrentKind) []Sample {
	g := k.gates
	size := graph.IntAttr("hidden_size", 2)
	lens := TV(graph.Int32, []int{2}, 1, 3)
	in := func(d int, more ...Arg) []Arg { return append([]Arg{F(3, 2, 3), F(d, g*2, 3), F(d, g*2, 2)}, more...) }
	first := func(d int) []Arg {
		return append([]Arg{F(2, 3, 3), F(d, g*2, 3), F(d, g*2, 2)}, F(d, 2*g*2), Arg{}, F(2, d, 2))
	}
	return []Sample{
		{In: in(1), Attrs: []*graph.Attr{size}},
		{Name: "bias and initial state", In: in(1, F(1, 2*g*2), Arg{}, F(1, 2, 2)), Attrs: []*graph.Attr{size}, Outs: 2},
		{Name: "reverse", In: in(1, F(1, 2*g*2)), Attrs: []*graph.Attr{size, graph.StringAttr("direction", "reverse")}, Outs: 2},
		{Name: "lengths, both directions", In: in(2, F(2, 2*g*2), lens, F(2, 2, 2)), Outs: 2,
			Attrs: []*graph.Attr{size, graph.StringAttr("direction", "bidirectional")}},
		{Name: "batch first", In: first(1), Attrs: []*graph.Attr{size, graph.IntAttr("layout", 1)}, Outs: 2},
		{Name: "batch first, both directions", In: first(2), Outs: 2,
			Attrs: []*graph.Attr{size, graph.IntAttr("layout", 1), graph.StringAttr("direction", "bidirectional")}},
	}
}

// directions returns how many directions n has.
func directions(n *graph.Node) int {
	if n.Str("direction", "forward") == "bidirectional" {
		return 2
	}
	return 1
}

func inferRecurrent(c *InferCtx, k recurrentKind) error {
	n := c.Node
	d := graph.Known(int64(directions(n)))
	steps, batch, hidden := graph.Unknown(), graph.Unknown(), graph.Unknown()
	if s := c.Shape(0); s != nil {
		if len(s) != 3 {
			return c.Errorf("operand X has shape %s, expected 3 dimensions", s)
		}
		steps, batch = s[0], s[1]
		if n.Int("layout", 0) != 0 {
			steps, batch = batch, steps
		}
	}
	if h := n.Int("hidden_size", 0); h > 0 {
		hidden = graph.Known(h)
	} else if s := c.Shape(2); len(s) == 3 {
		hidden = s[2]
	}
	if w := c.Shape(1); w != nil {
		if len(w) != 3 || w[0].ProvablyNot(d) || w[1].ProvablyNot(hidden.Mul(graph.Known(int64(k.gates)))) {
			return c.Errorf("operand W has shape %s, expected [%s,%s*%d,?]", w, d, hidden, k.gates)
		}
	}
	y, last := graph.Shape{steps, d, batch, hidden}, graph.Shape{d, batch, hidden}
	if n.Int("layout", 0) != 0 {
		y, last = graph.Shape{batch, steps, d, hidden}, graph.Shape{batch, d, hidden}
	}
	c.Set(0, c.Elem(0), y)
	c.Set(1, c.Elem(0), last)
	c.Set(2, c.Elem(0), last)
	if _, err := activationsOf(n, k); err != nil {
		return err
	}
	return nil
}

// gateFunc is one of the functions that a recurrent operator applies.
type gateFunc struct {
	name        string
	alpha, beta float64
}

// activationDefaults holds alpha and beta by name, and how many of them the function takes from the attributes.
func activationDefaults(name string) (alpha, beta float64, takes int, known bool) {
	switch name {
	case "Relu", "Tanh", "Sigmoid", "Softsign", "Softplus":
		return 0, 0, 0, true
	case "LeakyRelu":
		return 0.01, 0, 1, true
	case "ThresholdedRelu", "Elu":
		return 1, 0, 1, true
	case "HardSigmoid":
		return 0.2, 0.5, 2, true
	case "Affine":
		return 1, 0, 2, true
	case "ScaledTanh":
		return 1, 1, 2, true
	}
	return 0, 0, 0, false
}

// activationsOf returns the activations of all directions, one after the other.
func activationsOf(n *graph.Node, k recurrentKind) ([]gateFunc, error) {
	var names []string
	if a := n.Attr("activations"); a != nil {
		names = a.Strings
	}
	want := directions(n) * len(k.acts)
	if len(names) == 0 {
		for range directions(n) {
			names = append(names, k.acts...)
		}
	}
	if len(names) > want { // RNN's schema default has two for any direction
		names = names[:want]
	}
	if len(names) != want {
		return nil, fmt.Errorf("%d activations, expected %d", len(names), want)
	}
	var alphas, betas []float32
	if a := n.Attr("activation_alpha"); a != nil {
		alphas = a.Floats
	}
	if a := n.Attr("activation_beta"); a != nil {
		betas = a.Floats
	}
	next := func(list *[]float32, def float64) float64 {
		if len(*list) == 0 {
			return def
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return float64(v)
	}
	var out []gateFunc
	for _, name := range names {
		alpha, beta, takes, known := activationDefaults(name)
		if !known {
			return nil, fmt.Errorf("activation %q is not known", name)
		}
		a := gateFunc{name: name}
		if takes >= 1 {
			a.alpha = next(&alphas, alpha)
		}
		if takes >= 2 {
			a.beta = next(&betas, beta)
		}
		out = append(out, a)
	}
	return out, nil
}
