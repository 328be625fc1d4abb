package main

import (
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/npz"
	"gradtool/onnxio"
)

// named is a run-time value with the name that its file gives it, "" for none.
type named struct {
	name  string
	value *op.Array
}

// readProto reads a .pb file as the standard's test data have them: a TensorProto or, where the model's value
// is of another kind, the message of that kind.
func readProto(path string, t graph.Type) (named, error) {
	d, err := onnxio.ReadDatum(path, t)
	if err != nil {
		return named{}, err
	}
	a, err := datumArray(d, t)
	if err != nil {
		return named{}, fmt.Errorf("%s: %w", path, err)
	}
	return named{d.Name, a}, nil
}

// datumArray returns the value that d holds; t, the model's type of it, tells what an empty list is a list of.
func datumArray(d *onnxio.Datum, t graph.Type) (*op.Array, error) {
	var items []*op.Array
	elem, inner := graph.Undefined, graph.Type{}
	if t.Inner != nil {
		elem, inner = t.Inner.Elem, *t.Inner
	}
	for _, i := range d.Items {
		a, err := datumArray(i, inner)
		if err != nil {
			return nil, err
		}
		items = append(items, a)
		elem = a.Elem
	}
	switch d.Kind {
	case graph.KindTensor:
		return op.FromTensor(d.Tensor, false)
	case graph.KindSequence:
		return op.NewSequence(elem, items...), nil
	case graph.KindOptional:
		if len(items) == 0 {
			return op.NewOptional(elem, nil), nil
		}
		return op.NewOptional(elem, items[0]), nil
	}
	return nil, fmt.Errorf("value %q is a map or a sparse tensor, which cannot be evaluated", d.Name)
}

// arrayDatum is the opposite of datumArray.
func arrayDatum(name string, a *op.Array) *onnxio.Datum {
	if a.IsTensor() {
		return &onnxio.Datum{Kind: graph.KindTensor, Name: name, Tensor: a.Tensor()}
	}
	d := &onnxio.Datum{Kind: a.Kind, Name: name}
	for _, e := range a.Seq {
		d.Items = append(d.Items, arrayDatum("", e))
	}
	return d
}

// npyTypes pairs NumPy's element descriptions with element types.
var npyTypes = []struct {
	descr string
	elem  graph.DataType
}{
	{"|b1", graph.Bool}, {"|i1", graph.Int8}, {"|u1", graph.Uint8}, {"<i2", graph.Int16}, {"<u2", graph.Uint16}, {"<i4", graph.Int32},
	{"<u4", graph.Uint32}, {"<i8", graph.Int64}, {"<u8", graph.Uint64}, {"<f2", graph.Float16}, {"<f4", graph.Float}, {"<f8", graph.Double},
	{"<c8", graph.Complex64}, {"<c16", graph.Complex128},
}

// readNumPy reads the arrays of a .npy or .npz file.
func readNumPy(path string) ([]named, error) {
	list, err := npz.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []named
	for _, x := range list {
		t := &graph.Tensor{Dims: make([]int64, len(x.Shape)), Data: graph.Bytes(x.Data)}
		for i, d := range x.Shape {
			t.Dims[i] = int64(d)
		}
		for _, k := range npyTypes {
			if k.descr == x.Descr {
				t.Elem = k.elem
			}
		}
		a, err := op.FromTensor(t, false)
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", path, x.Name, err)
		}
		out = append(out, named{x.Name, a})
	}
	return out, nil
}

// numPy encodes a value for a .npz file. What NumPy has no type for is widened: bfloat16 to float32, integers of
// fewer than 8 bits to 8.
func numPy(name string, a *op.Array) (npz.Array, error) {
	if !a.IsTensor() || a.Str != nil {
		return npz.Array{}, fmt.Errorf("output %q is %s: .npz files hold numeric tensors only; use --out-dir", name, a.Type())
	}
	b := *a
	switch a.Elem {
	case graph.BFloat16:
		b.Elem = graph.Float
	case graph.Int4, graph.Int2:
		b.Elem = graph.Int8
	case graph.Uint4, graph.Uint2:
		b.Elem = graph.Uint8
	}
	for _, k := range npyTypes {
		if k.elem == b.Elem {
			raw, err := b.Tensor().Data.Bytes()
			return npz.Array{Name: name, Descr: k.descr, Shape: a.Shape, Data: raw}, err
		}
	}
	return npz.Array{}, fmt.Errorf("output %q: NumPy has no type for %s", name, a.Elem)
}
