package op

import (
	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// schemaNode returns what package schema wants to know of n, in the form of the given opset of its domain. Info may
// be nil.
func schemaNode(n *graph.Node, opset int, info *Info) *schema.Node {
	s := &schema.Node{Opset: opset, In: make([]schema.Operand, len(n.In)), Out: make([]schema.Operand, len(n.Out))}
	for i, v := range n.In {
		s.In[i] = schemaOperand(v, info)
	}
	for i, v := range n.Out {
		s.Out[i] = schemaOperand(v, nil)
	}
	for _, a := range n.Attrs {
		s.Attrs = append(s.Attrs, schemaAttr(a))
	}
	return s
}

// schemaOperandType returns the type of an operand or result.
func schemaOperandType(v *graph.Value) schema.Operand {
	if v == nil {
		return schema.Operand{Omitted: true}
	}
	return schema.Operand{Type: schemaType(v.Type)}
}

func schemaOperand(v *graph.Value, info *Info) schema.Operand {
	o := schemaOperandType(v)
	if v == nil {
		return o
	}
	if v.Type.Shape != nil {
		o.Dims = make([]int64, len(v.Type.Shape))
		for i, d := range v.Type.Shape {
			n, ok := d.Int()
			if !ok {
				n = -1
			}
			o.Dims[i] = n
		}
	}
	if info == nil {
		return o
	}
	a := info.Const(v)
	if a == nil && v.Def != nil && v.Def.Is("Constant") {
		if t := v.Def.Attr("value"); t != nil && t.T != nil && t.T.Elem.IsInt() && t.T.Len() <= maxConstLen {
			a, _ = FromTensor(t.T, false)
		}
	}
	if a != nil && a.I64 != nil {
		o.Ints = a.I64
	}
	return o
}

// schemaType returns t without shape. What the schemas cannot say (sparse and nested kinds) is unknown.
func schemaType(t graph.Type) schema.Type {
	elem := func(t graph.Type) schema.Elem { return schema.Elem(t.Elem) }
	inner := graph.Type{}
	if t.Inner != nil {
		inner = *t.Inner
	}
	switch {
	case t.Kind == graph.KindTensor:
		return schema.Type{Kind: schema.Tensor, Elem: elem(t)}
	case t.Kind == graph.KindSparse:
		return schema.Type{Kind: schema.Sparse, Elem: elem(t)}
	case t.Kind == graph.KindSequence && inner.Kind == graph.KindTensor:
		return schema.Type{Kind: schema.Seq, Elem: elem(inner)}
	case t.Kind == graph.KindSequence && inner.Kind == graph.KindMap && inner.Inner != nil:
		return schema.Type{Kind: schema.SeqMap, Elem: elem(*inner.Inner), Key: schema.Elem(inner.Key)}
	case t.Kind == graph.KindOptional && inner.Kind == graph.KindTensor:
		return schema.Type{Kind: schema.Optional, Elem: elem(inner)}
	case t.Kind == graph.KindOptional && inner.Kind == graph.KindSequence && inner.Inner != nil:
		return schema.Type{Kind: schema.OptionalSeq, Elem: elem(*inner.Inner)}
	case t.Kind == graph.KindMap:
		return schema.Type{Kind: schema.Map, Elem: elem(inner), Key: schema.Elem(t.Key)}
	}
	return schema.Type{}
}

func schemaAttr(a *graph.Attr) schema.AttrFact {
	f := schema.AttrFact{Name: a.Name, Type: schema.AttrType(a.Type)}
	if a.Ref != "" {
		return f // the type is declared, the value is the function's
	}
	switch a.Type {
	case graph.AttrInt:
		f.Value = a.I
	case graph.AttrFloat:
		f.Value = a.F
	case graph.AttrString:
		f.Value = a.S
	case graph.AttrInts:
		f.Value = a.Ints
	case graph.AttrFloats:
		f.Value = a.Floats
	case graph.AttrStrings:
		f.Value = a.Strings
	}
	return f
}
