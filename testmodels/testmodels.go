// Package testmodels builds small models for tests, examples and the demo command. Weights are
// pseudo-random and always the same.
package testmodels

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Opset is the ai.onnx version of the models.
const Opset = 18

// Model is a model that can be built.
type Model struct {
	Name string
	Doc  string
	Loss string // a loss that suits it, as the command line takes it
	// Build returns the model, its types inferred.
	Build func() *graph.Model
	// Feed returns inputs for the model and, last, the target of the loss, batch rows of 4 where the batch is free.
	Feed func() []*op.Array
}

// All returns the models, smallest first.
func All() []Model {
	return []Model{
		{"mlp", "two-layer perceptron, 4 features, 3 classes", "softmax-cross-entropy", MLP, func() []*op.Array {
			return []*op.Array{random(1, 4, 4), classes(2, 3, 4)}
		}},
		{"regression", "linear regression on 3 features", "mse", Regression, func() []*op.Array {
			return []*op.Array{random(3, 4, 3), random(4, 4, 1)}
		}},
		{"residual", "residual block: two convolutions with batch normalization in inference mode", "softmax-cross-entropy", Residual, func() []*op.Array {
			return []*op.Array{random(5, 4, 4, 8, 8), classes(6, 5, 4)}
		}},
		{"transformer", "pre-norm transformer block over token embeddings, causal", "softmax-cross-entropy,axis=-1", Transformer, func() []*op.Array {
			return []*op.Array{classes(7, vocab, 4, 6), classes(8, vocab, 4, 6)}
		}},
		{"lenet", "LeNet-5 for 28x28 grey images, 10 classes", "softmax-cross-entropy", LeNet, func() []*op.Array {
			return []*op.Array{random(9, 4, 1, 28, 28), classes(10, 10, 4)}
		}},
	}
}

// Lookup returns the model of that name.
func Lookup(name string) (Model, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

// random returns a float tensor of normal values.
func random(seed uint64, shape ...int) *op.Array {
	rng := rand.New(rand.NewPCG(seed, 1))
	a := op.NewArray(graph.Float, shape, false)
	for i := range a.F32 {
		a.F32[i] = float32(rng.NormFloat64())
	}
	return a
}

// classes returns int64 values in [0, n).
func classes(seed uint64, n int64, shape ...int) *op.Array {
	rng := rand.New(rand.NewPCG(seed, 2))
	a := op.NewArray(graph.Int64, shape, false)
	for i := range a.I64 {
		a.I64[i] = rng.Int64N(n)
	}
	return a
}

// net builds a model layer by layer.
type net struct {
	*op.Builder
	rng *rand.Rand
}

func newNet(name string) *net {
	m := graph.NewModel(name, Opset)
	info, err := op.Infer(m)
	if err != nil {
		panic(err)
	}
	return &net{op.NewBuilder(m.Graph, info), rand.New(rand.NewPCG(uint64(len(name)), 11))}
}

// done makes y the output, under the given name, and returns the model.
func (n *net) done(y *graph.Value, name string) *graph.Model {
	if n.Err != nil {
		panic(fmt.Sprintf("testmodels: %v", n.Err))
	}
	y.Name = name
	n.G.AddOutput(y)
	return n.G.Model
}

// input adds a float input.
func (n *net) input(name string, dims ...graph.Dim) *graph.Value {
	return n.G.AddInput(name, graph.TensorOf(graph.Float, dims))
}

// weight adds an initializer of normal values with the given deviation, or of the constant mean for deviation 0.
func (n *net) weight(name string, mean, deviation float64, dims ...int64) *graph.Value {
	t := &graph.Tensor{Dims: dims}
	data := make([]float32, t.Len())
	for i := range data {
		data[i] = float32(mean + deviation*n.rng.NormFloat64())
	}
	return n.G.AddInit(name, graph.Floats(dims, data...))
}

// linear returns x W^T + b for x of two dimensions.
func (n *net) linear(name string, x *graph.Value, in, out int64) *graph.Value {
	n.Prefix = name
	w := n.weight(name+".weight", 0, 1/math.Sqrt(float64(in)), out, in)
	b := n.weight(name+".bias", 0, 0.1, out)
	return n.Op("Gemm", []*graph.Value{x, w, b}, graph.IntAttr("transB", 1))
}

// conv returns a convolution with bias, padded to keep the size where pad says.
func (n *net) conv(name string, x *graph.Value, in, out, kernel, pad int64) *graph.Value {
	n.Prefix = name
	w := n.weight(name+".weight", 0, 1/math.Sqrt(float64(in*kernel*kernel)), out, in, kernel, kernel)
	b := n.weight(name+".bias", 0, 0.1, out)
	return n.Op("Conv", []*graph.Value{x, w, b}, graph.IntsAttr("kernel_shape", kernel, kernel), graph.IntsAttr("pads", pad, pad, pad, pad))
}

func (n *net) maxPool2(x *graph.Value) *graph.Value {
	return n.Unary("MaxPool", x, graph.IntsAttr("kernel_shape", 2, 2), graph.IntsAttr("strides", 2, 2))
}

func (n *net) batchNorm(name string, x *graph.Value, c int64) *graph.Value {
	n.Prefix = name
	return n.Op("BatchNormalization", []*graph.Value{x, n.weight(name+".weight", 1, 0.1, c), n.weight(name+".bias", 0, 0.1, c),
		n.weight(name+".running_mean", 0, 0.1, c), n.weight(name+".running_var", 1, 0, c)})
}

func (n *net) layerNorm(name string, x *graph.Value, d int64) *graph.Value {
	n.Prefix = name
	return n.Op("LayerNormalization", []*graph.Value{x, n.weight(name+".weight", 1, 0.1, d), n.weight(name+".bias", 0, 0.1, d)}, graph.IntAttr("axis", -1))
}

// MLP is x[N,4] -> Gemm -> Relu -> Gemm -> logits[N,3].
func MLP() *graph.Model {
	n := newNet("mlp")
	x := n.input("x", graph.Sym("N"), graph.Known(4))
	h := n.Unary("Relu", n.linear("fc1", x, 4, 8))
	return n.done(n.linear("fc2", h, 8, 3), "logits")
}

// Regression is x[N,3] -> MatMul -> Add -> prediction[N,1].
func Regression() *graph.Model {
	n := newNet("regression")
	x := n.input("x", graph.Sym("N"), graph.Known(3))
	return n.done(n.Add(n.MatMul(x, n.weight("weight", 0, 1, 3, 1)), n.weight("bias", 0, 1, 1)), "prediction")
}

// Residual is x[N,4,8,8] -> conv, bn, relu, conv, bn, + x, relu, mean -> logits[N,5].
func Residual() *graph.Model {
	n := newNet("residual")
	x := n.input("x", graph.Sym("N"), graph.Known(4), graph.Known(8), graph.Known(8))
	h := n.Unary("Relu", n.batchNorm("bn1", n.conv("conv1", x, 4, 4, 3, 1), 4))
	h = n.batchNorm("bn2", n.conv("conv2", h, 4, 4, 3, 1), 4)
	n.Prefix = "head"
	h = n.Unary("Relu", n.Add(h, x))
	h = n.Unary("Flatten", n.Unary("GlobalAveragePool", h))
	return n.done(n.linear("fc", h, 4, 5), "logits")
}

// LeNet is LeCun's network for digits: x[N,1,28,28] -> logits[N,10].
func LeNet() *graph.Model {
	n := newNet("lenet")
	x := n.input("x", graph.Sym("N"), graph.Known(1), graph.Known(28), graph.Known(28))
	h := n.maxPool2(n.Unary("Relu", n.conv("conv1", x, 1, 6, 5, 2)))
	h = n.maxPool2(n.Unary("Relu", n.conv("conv2", h, 6, 16, 5, 0)))
	h = n.Unary("Flatten", h)
	h = n.Unary("Relu", n.linear("fc1", h, 400, 120))
	h = n.Unary("Relu", n.linear("fc2", h, 120, 84))
	return n.done(n.linear("fc3", h, 84, 10), "logits")
}

// Sizes of the transformer block.
const (
	vocab   = 17
	width   = 16
	heads   = 4
	context = 8
)

// Transformer is one pre-norm block with causal attention and tied output weights:
// tokens[N,T] -> logits[N,T,17], T at most 8.
func Transformer() *graph.Model {
	n := newNet("transformer")
	tokens := n.G.AddInput("tokens", graph.TensorOf(graph.Int64, graph.Shape{graph.Sym("N"), graph.Sym("T")}))
	n.Prefix = "embed"
	table := n.weight("embed.weight", 0, 0.3, vocab, width)
	x := n.Gather(table, tokens, 0)
	pos := n.Slice(n.weight("embed.position", 0, 0.3, context, width), n.Ints(0), n.DimOf(tokens, 1), n.Ints(0), nil)
	x = n.Add(x, pos)

	h := n.layerNorm("norm1", x, width)
	h = n.attention(h)
	x = n.Add(x, h)

	h = n.layerNorm("norm2", x, width)
	n.Prefix = "mlp"
	h = n.Add(n.MatMul(h, n.weight("mlp.up.weight", 0, 0.25, width, 4*width)), n.weight("mlp.up.bias", 0, 0.1, 4*width))
	// GELU as exporters spell it: h * (1 + erf(h / sqrt 2)) / 2
	e := n.AddScalar(n.Unary("Erf", n.MulScalar(h, math.Sqrt2/2)), 1)
	h = n.MulScalar(n.Mul(h, e), 0.5)
	h = n.Add(n.MatMul(h, n.weight("mlp.down.weight", 0, 0.125, 4*width, width)), n.weight("mlp.down.bias", 0, 0.1, width))
	x = n.Add(x, h)

	x = n.layerNorm("norm3", x, width)
	n.Prefix = "head"
	return n.done(n.MatMul(x, n.Transpose(table, 1, 0)), "logits")
}

// attention is multi-head self-attention in which position i sees positions up to i.
func (n *net) attention(x *graph.Value) *graph.Value {
	n.Prefix = "attention"
	split := n.Concat(0, n.DimOf(x, 0), n.DimOf(x, 1), n.Ints(heads, width/heads))
	part := func(name string, perm ...int64) *graph.Value {
		p := n.MatMul(x, n.weight("attention."+name+".weight", 0, 0.25, width, width))
		return n.Transpose(n.Reshape(p, split), perm...)
	}
	q, k, v := part("q", 0, 2, 1, 3), part("k", 0, 2, 3, 1), part("v", 0, 2, 1, 3)
	scores := n.MulScalar(n.MatMul(q, k), 1/math.Sqrt(width/heads))
	t := n.DimOf(x, 1)
	mask := n.Op("Trilu", []*graph.Value{n.Full(n.Concat(0, t, t), graph.Float, math.Inf(-1)), n.IntScalar(1)}, graph.IntAttr("upper", 1))
	p := n.Unary("Softmax", n.Add(scores, mask), graph.IntAttr("axis", -1))
	h := n.Transpose(n.MatMul(p, v), 0, 2, 1, 3)
	h = n.Reshape(h, n.Concat(0, n.DimOf(x, 0), n.DimOf(x, 1), n.Ints(width)))
	return n.MatMul(h, n.weight("attention.out.weight", 0, 0.25, width, width))
}
