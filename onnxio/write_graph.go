package onnxio

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// graph returns the message for g, which is held by the node at a position of the scope outer.
func (w *writer) graph(g *graph.Graph, outer *scope, at int) *onnxpb.GraphProto {
	gs, _ := g.Src.(*graphSource)
	var src *onnxpb.GraphProto
	if gs != nil && gs.pb != nil {
		src = take(w, gs.file, gs.pb)
	}
	sc := newScope(g, outer, at)
	w.unique(sc, gs)
	p := patchOf(src)
	if src.GetName() != g.Name {
		p.edit().Name = optional(g.Name)
	}
	if src.GetDocString() != g.Doc {
		p.edit().DocString = optional(g.Doc)
	}
	if list := metaProto(src.GetMetadataProps(), g.Meta); !same(list, src.GetMetadataProps()) {
		p.edit().MetadataProps = list
	}
	if list := w.nodes(g, sc); !same(list, src.GetNode()) {
		p.edit().Node = list
	}
	dense, sparse := w.inits(g)
	if !same(dense, src.GetInitializer()) {
		p.edit().Initializer = dense
	}
	if !same(sparse, src.GetSparseInitializer()) {
		p.edit().SparseInitializer = sparse
	}
	var inputs, outputs []declaration
	if gs != nil {
		inputs, outputs = gs.inputs, gs.outputs
	}
	if list := w.declarations(gs, inputs, g.Inputs); !same(list, src.GetInput()) {
		p.edit().Input = list
	}
	for i, v := range g.Outputs {
		w.resolves(sc, v, math.MaxInt, func() string { return fmt.Sprintf("graph %q: output %d", g.Name, i) })
	}
	if list := w.declarations(gs, outputs, g.Outputs); !same(list, src.GetOutput()) {
		p.edit().Output = list
	}
	if list := w.infos(gs, sc); !same(list, src.GetValueInfo()) {
		p.edit().ValueInfo = list
	}
	if list := w.annotations(gs, sc); !same(list, src.GetQuantizationAnnotation()) {
		p.edit().QuantizationAnnotation = list
	}
	return p.P
}

func (w *writer) inits(g *graph.Graph) (dense []*onnxpb.TensorProto, sparse []*onnxpb.SparseTensorProto) {
	for _, v := range g.Inits {
		if t := w.sparseInit(v); t != nil {
			sparse = append(sparse, t)
		} else {
			dense = append(dense, w.tensor(v.Init, v.Name, true, func() string { return fmt.Sprintf("initializer %q", v.Name) }))
		}
	}
	return dense, sparse
}

func (w *writer) nodes(g *graph.Graph, sc *scope) []*onnxpb.NodeProto {
	if len(g.Nodes) == 0 {
		return nil
	}
	out := make([]*onnxpb.NodeProto, len(g.Nodes))
	for i, n := range g.Nodes {
		out[i] = w.node(n, sc, i)
	}
	return out
}

// node returns the message for n, which stands at a position of sc.
func (w *writer) node(n *graph.Node, sc *scope, at int) *onnxpb.NodeProto {
	src := source[onnxpb.NodeProto](w, n.Src)
	p := patchOf(src)
	if src.GetOpType() != n.Op {
		p.edit().OpType = proto.String(n.Op)
	}
	if src.GetDomain() != n.Domain {
		p.edit().Domain = optional(n.Domain)
	}
	if src.GetOverload() != n.Overload {
		p.edit().Overload = optional(n.Overload)
	}
	if src.GetName() != n.Name {
		p.edit().Name = optional(n.Name)
	}
	if src.GetDocString() != n.Doc {
		p.edit().DocString = optional(n.Doc)
	}
	if list := metaProto(src.GetMetadataProps(), n.Meta); !same(list, unpadded(src.GetMetadataProps())) {
		p.edit().MetadataProps = list
	}
	for i, v := range n.In {
		if v != nil {
			w.resolves(sc, v, at, func() string { return fmt.Sprintf("node %s: operand %d", n.Label(), i) })
		}
	}
	inputs, outputs := src.GetInput(), src.GetOutput()
	if !spelled(n.In, inputs) {
		p.edit().Input = spell(n.In)
	}
	if !spelled(n.Out, outputs) {
		p.edit().Output = spell(n.Out)
	}
	if p.dirty && len(src.GetDeviceConfigurations()) > 0 {
		p.edit().DeviceConfigurations = reshard(src, p.P)
	}
	var attrs []*onnxpb.AttributeProto
	for _, a := range n.Attrs {
		attrs = append(attrs, w.attr(a, sc, at, func() string { return "node " + n.Label() }))
	}
	if !same(attrs, src.GetAttribute()) {
		p.edit().Attribute = attrs
	}
	return p.P
}

// spelled reports whether names spells the values, omitted ones as "".
func spelled(values []*graph.Value, names []string) bool {
	if len(values) != len(names) {
		return false
	}
	for i, v := range values {
		if v == nil && names[i] != "" || v != nil && v.Name != names[i] {
			return false
		}
	}
	return true
}

func spell(values []*graph.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		if v != nil {
			out[i] = v.Name
		}
	}
	return out
}

// unique checks that no name is defined more often than in the file that the graph was read from.
func (w *writer) unique(sc *scope, gs *graphSource) {
	for _, name := range slices.Sorted(maps.Keys(sc.more)) {
		if gs == nil || len(sc.more[name]) > gs.doubles[name] {
			w.fail(fmt.Errorf("graph %q: the name %q is given to %s and to %s", sc.graph.Name, name, describe(sc.first[name].v), describe(sc.more[name][0].v)))
		}
	}
}

// resolves checks that the name of v, read at a position of sc, will stand for v.
func (w *writer) resolves(sc *scope, v *graph.Value, at int, where func() string) {
	// An output that nothing defines, or that is an input, may lack a name in a broken file. What nodes
	// read and define cannot: there, no name means no value.
	if v.Name == "" && (at != math.MaxInt || v.Def != nil) {
		w.fail(fmt.Errorf("%s is a value without a name", where()))
		return
	}
	if got := sc.lookup(v.Name, at); got != nil && got != v {
		w.fail(fmt.Errorf("%s: the name %q would stand for another value, %s", where(), v.Name, describe(got)))
	}
}

func describe(v *graph.Value) string {
	switch {
	case v.Def != nil:
		return fmt.Sprintf("result %d of node %s", v.Index, v.Def.Label())
	case v.Init != nil:
		return fmt.Sprintf("an initializer of graph %q", v.Graph.Name)
	}
	return fmt.Sprintf("an input of graph %q", v.Graph.Name)
}

// reshard returns the device configurations of a node with its operands' and results' new names.
func reshard(was, now *onnxpb.NodeProto) []*onnxpb.NodeDeviceConfigurationProto {
	renamed := map[string]string{}
	note := func(a, b []string) {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] && b[i] != "" {
				renamed[a[i]] = b[i]
			}
		}
	}
	note(was.Input, now.Input)
	note(was.Output, now.Output)
	if len(renamed) == 0 {
		return was.DeviceConfigurations
	}
	var out []*onnxpb.NodeDeviceConfigurationProto
	for _, c := range was.DeviceConfigurations {
		var specs []*onnxpb.ShardingSpecProto
		for _, s := range c.ShardingSpec {
			if name, ok := renamed[s.GetTensorName()]; ok {
				s = shallow(s)
				s.TensorName = proto.String(name)
			}
			specs = append(specs, s)
		}
		c = shallow(c)
		c.ShardingSpec = specs
		out = append(out, c)
	}
	return out
}
