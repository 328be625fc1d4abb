package onnxgo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/owulveryck/onnx-go"
	"gorgonia.org/tensor"

	"gradtool/graph"
)

// Options are options of decoding.
type Options struct {
	// Opset is the ai.onnx opset that the model is taken to be of. Decode reads it from the file if it
	// is 0; Model takes 13.
	Opset int64
	// Structure leaves types and data out. Decode then also accepts models with element types that
	// onnx-go does not have; initializers become values that nothing defines.
	Structure bool
}

// builder makes a model of a record.
type builder struct {
	*Backend
	g      *graph.Graph
	loss   *Loss
	byName map[string]*graph.Value
}

// Model returns the model that om, the decoder that this backend was given to, has read.
func (b *Backend) Model(om *onnx.Model, opt Options) (*graph.Model, *Loss, error) {
	if opt.Opset == 0 {
		opt.Opset = 13
	}
	m := graph.NewModel("", opt.Opset)
	x := &builder{Backend: b, g: m.Graph, loss: &Loss{}, byName: map[string]*graph.Value{}}
	if err := x.values(om); err != nil {
		return nil, nil, err
	}
	if err := x.nodes(); err != nil {
		return nil, nil, err
	}
	for _, id := range om.Output {
		v := b.values[id]
		x.g.AddOutput(x.resolve(v.name))
		x.learn(v)
	}
	return m, x.loss, nil
}

// values makes the inputs and initializers. The decoder makes a value for each declared input,
// value_info entry and output, in this order, and sets a tensor of its type if it has one; then it sets
// the data of each initializer, in a new value if none of its name was declared.
func (x *builder) values(om *onnx.Model) error {
	results := map[string]bool{}
	for _, o := range x.ops {
		for _, r := range o.results {
			results[r.name] = true
		}
	}
	isInput := map[int64]bool{}
	lastInput, declared := int64(-1), int64(-1)
	for _, id := range om.Input {
		isInput[id], lastInput = true, max(lastInput, id)
		v := x.Backend.values[id]
		in := x.g.AddInput(v.name, graph.Type{})
		x.byName[v.name] = in
		x.learn(v)
	}
	for _, id := range om.Output {
		declared = max(declared, id)
	}
	for _, v := range x.Backend.values {
		n := len(v.tensors)
		hasData := n > 0 && (v.id > declared || n > 1 || v.id < lastInput && !isInput[v.id])
		if !hasData || results[v.name] || v.name == "" {
			continue
		}
		t, err := convert(v.tensors[n-1])
		if err != nil {
			return fmt.Errorf("initializer %q: %w", v.name, err)
		}
		if in := x.byName[v.name]; in != nil {
			x.g.SetInit(in, t)
		} else {
			x.byName[v.name] = x.g.AddInit(v.name, t)
		}
	}
	return nil
}

// learn takes the declared element type of v.
func (x *builder) learn(v *value) {
	to := x.byName[v.name]
	if len(v.tensors) == 0 || to == nil || to.Init != nil || to.Type.Kind != graph.KindUnknown {
		return
	}
	if elem, ok := elemOf(v.tensors[0].Dtype()); ok {
		// Symbolic dimensions are missing from the shape, so that it cannot be trusted.
		to.Type = graph.TensorOf(elem, nil)
	}
}

func (x *builder) nodes() error {
	nodes := make([]*graph.Node, len(x.ops))
	for i, o := range x.ops {
		var names []string
		for _, r := range o.results {
			names = append(names, r.name)
		}
		n := x.g.NewNode("", o.op, nil, names)
		for _, v := range n.Out {
			if v != nil {
				x.byName[v.Name] = v
			}
		}
		for _, name := range slices.Sorted(maps.Keys(o.attrs)) {
			a, err := attribute(name, o.attrs[name])
			if err != nil {
				return fmt.Errorf("node %s: attribute %q: %w", n.Label(), name, err)
			}
			if a == nil {
				x.loss.add("attributes without a stated type", name)
				continue
			}
			n.SetAttr(a)
		}
		x.g.Append(n)
		nodes[i] = n
	}
	for i, o := range x.ops {
		if x.isFake(o) {
			continue
		}
		for j, v := range o.operands {
			nodes[i].SetIn(j, x.resolve(v.name))
		}
	}
	for _, v := range x.Backend.values {
		x.learn(v)
	}
	return nil
}

// isFake reports whether the operand of o is the one that the decoder gives to nodes without operands:
// named as the node with "/input" added, and defined by nothing.
func (x *builder) isFake(o operation) bool {
	return len(o.operands) == 1 && strings.HasSuffix(o.operands[0].name, "/input") && x.byName[o.operands[0].name] == nil
}

// resolve returns the value with that name, nil for an omitted one.
func (x *builder) resolve(name string) *graph.Value {
	if name == "" {
		return nil
	}
	v := x.byName[name]
	if v == nil {
		v = x.g.AddUndefined(name)
		x.byName[name] = v
	}
	return v
}

// attribute converts an attribute's value; nil if the decoder knew no type for it.
func attribute(name string, v any) (*graph.Attr, error) {
	switch v := v.(type) {
	case float32:
		return graph.FloatAttr(name, v), nil
	case int64:
		return graph.IntAttr(name, v), nil
	case string:
		return graph.StringAttr(name, v), nil
	case []float32:
		return graph.FloatsAttr(name, v...), nil
	case []int64:
		return graph.IntsAttr(name, v...), nil
	case []string:
		return &graph.Attr{Name: name, Type: graph.AttrStrings, Strings: v}, nil
	case tensor.Tensor:
		t, err := convert(v)
		if err != nil {
			return nil, err
		}
		return graph.TensorAttr(name, t), nil
	case struct{}:
		return nil, nil
	}
	return nil, fmt.Errorf("value of type %T", v)
}
