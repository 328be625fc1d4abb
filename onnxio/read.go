package onnxio

import (
	"math"
	"strconv"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// A reader turns the messages of one file into a model. Recursion into subgraphs is bounded by the
// nesting that the wire layer accepts.
type reader struct {
	file *file
	m    *graph.Model
}

func (r *reader) model(pb *onnxpb.ModelProto) *graph.Model {
	r.m = &graph.Model{
		IRVersion:       pb.GetIrVersion(),
		Opsets:          opsetsOf(pb.OpsetImport),
		Producer:        pb.GetProducerName(),
		ProducerVersion: pb.GetProducerVersion(),
		Domain:          pb.GetDomain(),
		Version:         pb.GetModelVersion(),
		Doc:             pb.GetDocString(),
		Meta:            metaOf(pb.MetadataProps),
		File:            r.file.name,
		Src:             &origin[*onnxpb.ModelProto]{r.file, pb},
	}
	if pb.Graph != nil {
		r.m.Graph = r.graph(pb.Graph, nil, -1, nil)
	} else {
		r.m.Graph = r.m.NewGraph("")
	}
	for _, f := range pb.Functions {
		r.m.Functions = append(r.m.Functions, r.function(f))
	}
	return r.m
}

func (r *reader) function(pb *onnxpb.FunctionProto) *graph.Function {
	f := &graph.Function{
		Domain:   pb.GetDomain(),
		Name:     pb.GetName(),
		Overload: pb.GetOverload(),
		Attrs:    append([]string(nil), pb.Attribute...),
		Opsets:   opsetsOf(pb.OpsetImport),
		Doc:      pb.GetDocString(),
		Meta:     metaOf(pb.MetadataProps),
		Src:      &origin[*onnxpb.FunctionProto]{r.file, pb},
	}
	g := r.m.NewGraph(pb.GetName())
	g.Func, f.Body = f, g
	src := &graphSource{file: r.file}
	g.Src = src
	for _, name := range pb.Input {
		g.AddInput(name, graph.Type{})
	}
	sc := r.nodes(g, pb.Node, nil, -1)
	for _, name := range pb.Output {
		g.AddOutput(sc.resolve(name, math.MaxInt))
	}
	src.note(sc)
	src.declare(&src.infos, g, sc, pb.ValueInfo)
	for _, a := range pb.AttributeProto {
		f.Defaults = append(f.Defaults, r.attr(a, nil, sc, -1))
	}
	return f
}

// graph reads a graph that is held by parent, the node at a position of the scope outer; the main
// graph has neither.
func (r *reader) graph(pb *onnxpb.GraphProto, outer *scope, at int, parent *graph.Node) *graph.Graph {
	g := r.m.NewGraph(pb.GetName())
	g.Parent = parent
	g.Doc = pb.GetDocString()
	g.Meta = metaOf(pb.MetadataProps)
	src := &graphSource{file: r.file, pb: pb}
	g.Src = src
	byName := make(map[string]*graph.Value, len(pb.Input))
	for _, vi := range pb.Input {
		v := g.AddInput(vi.GetName(), typeOf(vi.Type))
		if byName[v.Name] == nil {
			byName[v.Name] = v
		}
	}
	init := func(name string, t *graph.Tensor) {
		if v := byName[name]; v != nil && v.Init == nil {
			g.SetInit(v, t)
			if v.Type.Kind == graph.KindUnknown {
				v.Type = t.Type()
			}
			return
		}
		g.AddInit(name, t)
	}
	for _, t := range pb.Initializer {
		init(t.GetName(), r.file.tensor(t, "initializer "+strconv.Quote(t.GetName())))
	}
	for _, t := range pb.SparseInitializer {
		name := t.GetValues().GetName()
		init(name, r.file.sparseInit(t, "sparse initializer "+strconv.Quote(name)))
	}
	sc := r.nodes(g, pb.Node, outer, at)
	for _, vi := range pb.Output {
		g.AddOutput(sc.resolve(vi.GetName(), math.MaxInt))
	}
	src.note(sc)
	src.declareInputs(g, pb.Input)
	src.declare(&src.infos, g, sc, pb.ValueInfo)
	src.declareOutputs(g, pb.Output)
	src.annotate(sc, pb.QuantizationAnnotation)
	return g
}

// nodes reads the nodes of g, whose inputs and initializers are there. All results are defined before
// the first operand is looked up.
func (r *reader) nodes(g *graph.Graph, list []*onnxpb.NodeProto, outer *scope, at int) *scope {
	g.Nodes = make([]*graph.Node, len(list))
	for i, pb := range list {
		n := g.NewNode(pb.GetDomain(), pb.GetOpType(), nil, pb.Output)
		n.Name = pb.GetName()
		n.Overload = pb.GetOverload()
		n.Doc = pb.GetDocString()
		n.Meta = metaOf(unpadded(pb.MetadataProps))
		n.Src = &origin[*onnxpb.NodeProto]{r.file, pb}
		g.Nodes[i] = n
	}
	sc := newScope(g, outer, at)
	for i, pb := range list {
		n := g.Nodes[i]
		if len(pb.Input) > 0 {
			n.In = make([]*graph.Value, 0, len(pb.Input))
		}
		for j, name := range pb.Input {
			if name == "" {
				n.SetIn(j, nil)
			} else {
				n.SetIn(j, sc.resolve(name, i))
			}
		}
		for _, a := range pb.Attribute {
			n.Attrs = append(n.Attrs, r.attr(a, n, sc, i))
		}
	}
	return sc
}
