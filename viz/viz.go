// Package viz draws graphs.
package viz

import (
	"fmt"
	"io"
	"strings"

	"gradtool/graph"
)

// Options selects what is drawn.
type Options struct {
	RankDir string // "TB" (default), "LR", "BT", "RL"
	Max     int    // graphs of more nodes are collapsed by scope; 0 never collapses
	Around  *graph.Node
	Hops    int // with Around: how far from it nodes are drawn
}

// category is a kind of operator with its colour; readers of other viewers know the colours.
type category struct{ name, fill, ops string }

var categories = []category{
	{"layer", "#33558899", " Conv ConvTranspose Gemm MatMul Einsum LSTM GRU RNN Attention "},
	{"activation", "#70291588", " Relu LeakyRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Softmax LogSoftmax Mish PRelu Clip Erf "},
	{"pool", "#33553388", " MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool MaxUnpool "},
	{"normalization", "#33554499", " BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization LRN LpNormalization "},
	{"reduction", "#59426688", " ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin CumSum "},
	{"layout", "#6c4f4766", " Reshape Transpose Squeeze Unsqueeze Flatten Shape Size Expand Tile Concat Split Slice Pad Gather GatherElements GatherND ScatterElements ScatterND Identity Cast "},
	{"quantization", "#cc880088", " QuantizeLinear DequantizeLinear DynamicQuantizeLinear "},
	{"control", "#88000055", " If Loop Scan "},
}

// fill returns the colour of an operator's category, grey without one.
func fill(op string) string {
	for _, c := range categories {
		if strings.Contains(c.ops, " "+op+" ") {
			return c.fill
		}
	}
	return "#44444433"
}

// role returns a node's role; a node without one is forward.
func role(n *graph.Node) string {
	if r := n.Meta.Get(graph.MetaRole); r != "" {
		return r
	}
	return graph.RoleForward
}

// DOT writes m's main graph in Graphviz's language: boxes for nodes, coloured by category, ellipses for
// inputs and outputs, edges labelled with types. Forward nodes have solid borders, backward ones
// dashed blue, loss and optimizer bold; recomputed ones dotted.
func DOT(w io.Writer, m *graph.Model, opt Options) error {
	p := newPicture(m.Graph, opt)
	b, err := p.marshal()
	if err != nil {
		return fmt.Errorf("viz: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// scope returns the first depth parts of the name under which a node is grouped: its own or, for nodes
// that a stage added, that of the node it stems from. Exporters write scopes with slashes or dots.
func scope(n *graph.Node, depth int) string {
	name := n.Meta.Get(graph.MetaFrom)
	if name == "" {
		name = n.Name
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '.' })
	if len(parts) <= 1 {
		return ""
	}
	parts = parts[:len(parts)-1]
	return strings.Join(parts[:min(depth, len(parts))], "/")
}
