package graph

import (
	"slices"
	"strings"
)

// data checks an initializer.
func (v *verifier) data(g *Graph, x *Value) {
	if x == nil {
		return
	}
	where := VerifyError{Rule: ruleData, Value: x, Graph: g}
	if x.Init == nil {
		v.report(where, "the initializer has no data")
		return
	}
	if err := x.Init.Check(); err != nil {
		v.report(where, "the initializer has %v", err)
		return
	}
	if t := x.Type; t.Kind != KindUnknown && !fits(t, x.Init) {
		v.report(where, "the initializer is %s%v, its value %s", x.Init.Elem, x.Init.Dims, t)
	}
}

// fits reports whether data can be a value of type t, a symbolic dimension standing for any size.
func fits(t Type, d *Tensor) bool {
	if !t.IsTensor() || t.Elem != Undefined && t.Elem != d.Elem {
		return t.Kind == KindSparse
	}
	if t.Shape == nil {
		return true
	}
	if len(t.Shape) != len(d.Dims) {
		return false
	}
	for i, x := range t.Shape {
		if n, ok := x.Int(); ok && n != d.Dims[i] {
			return false
		}
	}
	return true
}

// attrs checks the attributes of n.
func (v *verifier) attrs(n *Node) {
	for i, a := range n.Attrs {
		where := VerifyError{Rule: ruleAttrs, Node: n, Graph: n.Graph}
		if a == nil {
			v.report(where, "an attribute is missing")
			continue
		}
		if a.Name == "" || slices.ContainsFunc(n.Attrs[:i], func(b *Attr) bool { return b != nil && b.Name == a.Name }) {
			v.report(where, "two attributes are called %q, or one has no name", a.Name)
		}
		if a.Ref != "" {
			v.ref(where, a)
			continue
		}
		if msg := a.wrong(); msg != "" {
			v.report(where, "attribute %s %s", a.Name, msg)
		}
	}
}

func (v *verifier) ref(where VerifyError, a *Attr) {
	if v.fn == nil {
		v.report(where, "attribute %s refers to %q outside of a function", a.Name, a.Ref)
		return
	}
	known := slices.Contains(v.fn.Attrs, a.Ref) ||
		slices.ContainsFunc(v.fn.Defaults, func(d *Attr) bool { return d.Name == a.Ref })
	if !known {
		v.report(where, "attribute %s refers to %q, which function %s does not have", a.Name, a.Ref, v.fn.Name)
	}
}

// wrong says how the content of a departs from its type, "" if it does not.
func (a *Attr) wrong() string {
	var tensors []*Tensor
	switch a.Type {
	case AttrFloat, AttrInt, AttrString, AttrFloats, AttrInts, AttrStrings, AttrTypeProtos:
	case AttrTensor:
		tensors = []*Tensor{a.T}
	case AttrTensors:
		tensors = a.Tensors
	case AttrGraph:
		if a.G == nil {
			return "holds no graph"
		}
	case AttrGraphs:
		if slices.Contains(a.Graphs, nil) {
			return "holds no graph in one place"
		}
	case AttrSparseTensor:
		if len(a.Sparse) != 1 || a.Sparse[0] == nil {
			return "holds no sparse tensor"
		}
		tensors = []*Tensor{a.Sparse[0].Values, a.Sparse[0].Indices}
	case AttrSparseTensors:
		for _, s := range a.Sparse {
			if s == nil {
				return "holds no sparse tensor in one place"
			}
			tensors = append(tensors, s.Values, s.Indices)
		}
	case AttrTypeProto:
		if len(a.Types) != 1 {
			return "holds no type"
		}
	default:
		return "has no known type"
	}
	var bad []string
	for _, t := range tensors {
		if t == nil {
			bad = append(bad, "holds no tensor")
		} else if err := t.Check(); err != nil {
			bad = append(bad, "has "+err.Error())
		}
	}
	return strings.Join(bad, ", ")
}
