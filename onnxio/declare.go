package onnxio

import (
	"math"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// A graphSource, in a graph's Src, is the message that the graph was read from and which value each of
// its declarations is about.
type graphSource struct {
	file    *file
	pb      *onnxpb.GraphProto // nil for a function's body
	inputs  []declaration
	outputs []declaration
	infos   []declaration
	annots  []annotation
	doubles map[string]int          // how often a name is defined again
	docs    map[*graph.Value]string // documentation as read, of values that have some
	renew   map[*graph.Value]bool   // values to be declared as Value.Type says
}

// A declaration is a ValueInfoProto and its value, nil if the graph defines none of that name.
type declaration struct {
	pb *onnxpb.ValueInfoProto
	v  *graph.Value
}

// An annotation is a TensorAnnotation and the values that it names, nil where there is none.
type annotation struct {
	pb     *onnxpb.TensorAnnotation
	v      *graph.Value
	params []*graph.Value
}

func (s *graphSource) declareInputs(g *graph.Graph, list []*onnxpb.ValueInfoProto) {
	for i, vi := range list {
		s.inputs = append(s.inputs, declaration{vi, g.Inputs[i]})
		s.document(g.Inputs[i], vi)
	}
}

func (s *graphSource) declareOutputs(g *graph.Graph, list []*onnxpb.ValueInfoProto) {
	for i, vi := range list {
		v := g.Outputs[i]
		s.outputs = append(s.outputs, declaration{vi, v})
		if v.Graph == g {
			learn(v, vi)
			s.document(v, vi)
		}
	}
}

func (s *graphSource) declare(to *[]declaration, g *graph.Graph, sc *scope, list []*onnxpb.ValueInfoProto) {
	for _, vi := range list {
		v := sc.lookup(vi.GetName(), math.MaxInt)
		if v != nil && v.Graph != g {
			v = nil
		}
		*to = append(*to, declaration{vi, v})
		if v != nil {
			learn(v, vi)
			s.document(v, vi)
		}
	}
}

// learn takes the type of v from a declaration if it says more than what is known.
func learn(v *graph.Value, vi *onnxpb.ValueInfoProto) {
	if v.Init != nil {
		return
	}
	t := typeOf(vi.Type)
	if v.Type.Kind == graph.KindUnknown || v.Type.Kind == t.Kind && v.Type.Shape == nil && t.Shape != nil {
		v.Type = t
	}
}

func (s *graphSource) document(v *graph.Value, vi *onnxpb.ValueInfoProto) {
	if v.Doc != "" || vi.GetDocString() == "" {
		return
	}
	if s.docs == nil {
		s.docs = map[*graph.Value]string{}
	}
	v.Doc = vi.GetDocString()
	s.docs[v] = v.Doc
}

func (s *graphSource) annotate(sc *scope, list []*onnxpb.TensorAnnotation) {
	for _, pb := range list {
		a := annotation{pb: pb, v: sc.lookup(pb.GetTensorName(), math.MaxInt)}
		for _, e := range pb.QuantParameterTensorNames {
			a.params = append(a.params, sc.lookup(e.GetValue(), math.MaxInt))
		}
		s.annots = append(s.annots, a)
	}
}

// note keeps how often sc defines a name again.
func (s *graphSource) note(sc *scope) {
	if len(sc.more) > 0 {
		s.doubles = make(map[string]int, len(sc.more))
		for name, list := range sc.more {
			s.doubles[name] = len(list)
		}
	}
}

// Redeclare makes Write declare the values as their types say now. Without it, what the file declared
// is kept, unless the kind of value or the element type changed: inference refines types, and that is
// no reason to change a file. Use it where a type was changed on purpose, such as a symbolic
// dimension that was given a number.
func Redeclare(values ...*graph.Value) {
	for _, v := range values {
		redeclare(v.Graph, v)
		for _, u := range v.Uses() {
			if u.Node == nil {
				redeclare(u.Graph, v)
			}
		}
	}
}

func redeclare(g *graph.Graph, v *graph.Value) {
	s, ok := g.Src.(*graphSource)
	if !ok {
		return
	}
	if s.renew == nil {
		s.renew = map[*graph.Value]bool{}
	}
	s.renew[v] = true
}

// declaration returns how v is declared in a graph read from s (nil for a new graph), pb being its
// present declaration or nil.
func (w *writer) declaration(s *graphSource, pb *onnxpb.ValueInfoProto, v *graph.Value) *onnxpb.ValueInfoProto {
	var p *patch[onnxpb.ValueInfoProto, *onnxpb.ValueInfoProto]
	if pb != nil {
		p = patchOf(take(w, s.file, pb))
	} else {
		p = patchOf[onnxpb.ValueInfoProto](nil)
	}
	if p.fresh || p.P.GetName() != v.Name {
		p.edit().Name = proto.String(v.Name)
	}
	if was := typeOf(p.P.Type); p.fresh || contradicts(was, v.Type) || s.renew[v] && !was.Same(v.Type) {
		p.edit().Type = retype(p.P.Type, v.Type)
	}
	if p.fresh && v.Doc != "" || !p.fresh && v.Doc != s.docs[v] {
		p.edit().DocString = optional(v.Doc)
	}
	return p.P
}

// retype encodes t with the denotations of old, where they can still apply.
func retype(old *onnxpb.TypeProto, t graph.Type) *onnxpb.TypeProto {
	pb := typeProto(t)
	if old == nil || pb == nil {
		return pb
	}
	pb.Denotation = old.Denotation
	a, b := old.GetTensorType().GetShape().GetDim(), pb.GetTensorType().GetShape().GetDim()
	if len(a) == len(b) {
		for i := range a {
			b[i].Denotation = a[i].Denotation
		}
	}
	return pb
}

// declarations returns the declarations of a graph's inputs or outputs.
func (w *writer) declarations(s *graphSource, were []declaration, values []*graph.Value) []*onnxpb.ValueInfoProto {
	out := make([]*onnxpb.ValueInfoProto, len(values))
	var byValue map[*graph.Value]*onnxpb.ValueInfoProto
	for i, v := range values {
		if i < len(were) && were[i].v == v {
			out[i] = w.declaration(s, were[i].pb, v)
			continue
		}
		if byValue == nil {
			byValue = make(map[*graph.Value]*onnxpb.ValueInfoProto, len(were))
			for _, d := range were {
				byValue[d.v] = d.pb
			}
		}
		out[i] = w.declaration(s, byValue[v], v)
	}
	return out
}

// infos returns the value_info entries to keep: those of values that are still there, and those that
// never had a value unless one has taken their name.
func (w *writer) infos(s *graphSource, sc *scope) []*onnxpb.ValueInfoProto {
	if s == nil {
		return nil
	}
	var out []*onnxpb.ValueInfoProto
	for _, d := range s.infos {
		switch {
		case d.v == nil:
			if _, taken := sc.first[d.pb.GetName()]; !taken {
				out = append(out, take(w, s.file, d.pb))
			}
		case sc.defines(d.v):
			out = append(out, w.declaration(s, d.pb, d.v))
		}
	}
	return out
}

// annotations returns the quantization annotations whose values are all still there.
func (w *writer) annotations(s *graphSource, sc *scope) []*onnxpb.TensorAnnotation {
	if s == nil {
		return nil
	}
	there := func(v *graph.Value) bool {
		return v == nil || sc.lookup(v.Name, math.MaxInt) == v
	}
	var out []*onnxpb.TensorAnnotation
next:
	for _, a := range s.annots {
		p := patchOf(take(w, s.file, a.pb))
		if !there(a.v) {
			continue
		}
		if a.v != nil && p.P.GetTensorName() != a.v.Name {
			p.edit().TensorName = proto.String(a.v.Name)
		}
		params := append([]*onnxpb.StringStringEntryProto(nil), p.P.QuantParameterTensorNames...)
		changed := false
		for i, v := range a.params {
			if !there(v) {
				continue next
			}
			if v != nil && params[i].GetValue() != v.Name {
				params[i] = shallow(params[i])
				params[i].Value = proto.String(v.Name)
				changed = true
			}
		}
		if changed {
			p.edit().QuantParameterTensorNames = params
		}
		out = append(out, p.P)
	}
	return out
}
