package onnxgo

import (
	"fmt"
	"strings"

	"gradtool/onnxio/onnxpb"
)

// A Loss lists what a file holds and onnx-go's decoder did not pass on.
type Loss struct {
	Items []Item
}

// An Item is one kind of thing that was lost.
type Item struct {
	What  string // in the plural
	Count int
	First string // the first of them
}

// String gives one line per item.
func (l *Loss) String() string {
	var b strings.Builder
	for _, i := range l.Items {
		fmt.Fprintf(&b, "%d %s", i.Count, i.What)
		if i.First != "" {
			fmt.Fprintf(&b, " (%s)", i.First)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (l *Loss) add(what, first string) {
	for i := range l.Items {
		if l.Items[i].What == what {
			l.Items[i].Count++
			return
		}
	}
	l.Items = append(l.Items, Item{what, 1, first})
}

// note adds an item if a value is not empty.
func (l *Loss) note(what, value string) {
	if value != "" {
		l.add(what, value)
	}
}

// file adds what the decoder drops of m whatever its backend does. What it refuses is not listed.
func (l *Loss) file(m *onnxpb.ModelProto) {
	for _, o := range m.OpsetImport {
		l.add("opset imports", fmt.Sprintf("%q version %d", o.GetDomain(), o.GetVersion()))
	}
	l.note("producers", m.GetProducerName())
	l.note("model domains", m.GetDomain())
	l.note("model documentations", m.GetDocString())
	for _, e := range m.MetadataProps {
		l.add("model metadata entries", e.GetKey())
	}
	for _, f := range m.Functions {
		l.add("functions", f.GetName())
	}
	for range m.TrainingInfo {
		l.add("training graphs", "")
	}
	for _, c := range m.Configuration {
		l.add("device configurations", c.GetName())
	}
	g := m.GetGraph()
	l.note("graph names", g.GetName())
	l.note("graph documentations", g.GetDocString())
	for _, e := range g.GetMetadataProps() {
		l.add("graph metadata entries", e.GetKey())
	}
	for _, t := range g.GetSparseInitializer() {
		l.add("sparse initializers", t.GetValues().GetName())
	}
	for _, a := range g.GetQuantizationAnnotation() {
		l.add("quantization annotations", a.GetTensorName())
	}
	l.initializers(g)
	for _, list := range [][]*onnxpb.ValueInfoProto{g.GetInput(), g.GetValueInfo(), g.GetOutput()} {
		for _, v := range list {
			l.declaration(v)
		}
	}
	for _, n := range g.GetNode() {
		l.node(n)
	}
}

// initializers counts those that are inputs too, which the decoder takes off the list of inputs.
func (l *Loss) initializers(g *onnxpb.GraphProto) {
	input := map[string]bool{}
	for _, v := range g.GetInput() {
		input[v.GetName()] = true
	}
	for _, t := range g.GetInitializer() {
		if input[t.GetName()] {
			l.add("inputs with an initializer", t.GetName())
		}
		l.tensor(t)
	}
}

func (l *Loss) tensor(t *onnxpb.TensorProto) {
	l.note("tensor documentations", t.GetDocString())
	if t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
		l.add("tensors with external data", t.GetName())
	}
}

func (l *Loss) declaration(v *onnxpb.ValueInfoProto) {
	l.note("value documentations", v.GetDocString())
	for _, e := range v.MetadataProps {
		l.add("value metadata entries", e.GetKey())
	}
	l.note("type denotations", v.GetType().GetDenotation())
	for _, d := range v.GetType().GetTensorType().GetShape().GetDim() {
		if _, known := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); !known {
			l.add("dimensions that are no number", fmt.Sprintf("%s of %s", d.GetDimParam(), v.GetName()))
		}
		l.note("dimension denotations", d.GetDenotation())
	}
}

func (l *Loss) node(n *onnxpb.NodeProto) {
	l.note("node names", n.GetName())
	l.note("node domains", n.GetDomain())
	l.note("node overloads", n.GetOverload())
	l.note("node documentations", n.GetDocString())
	for _, e := range n.MetadataProps {
		l.add("node metadata entries", e.GetKey())
	}
	for range n.DeviceConfigurations {
		l.add("node device configurations", n.GetName())
	}
	for _, a := range n.Attribute {
		l.note("attribute documentations", a.GetDocString())
		l.note("references to function attributes", a.GetRefAttrName())
		if a.T != nil {
			l.tensor(a.T)
		}
	}
}
