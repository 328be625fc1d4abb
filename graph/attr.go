package graph

// AttrType tells which field of an [Attr] holds its value; the numbers are those of
// AttributeProto.AttributeType.
type AttrType int32

// Attribute types.
const (
	AttrUndefined     AttrType = 0
	AttrFloat         AttrType = 1
	AttrInt           AttrType = 2
	AttrString        AttrType = 3
	AttrTensor        AttrType = 4
	AttrGraph         AttrType = 5
	AttrFloats        AttrType = 6
	AttrInts          AttrType = 7
	AttrStrings       AttrType = 8
	AttrTensors       AttrType = 9
	AttrGraphs        AttrType = 10
	AttrSparseTensor  AttrType = 11
	AttrSparseTensors AttrType = 12
	AttrTypeProto     AttrType = 13
	AttrTypeProtos    AttrType = 14
)

var attrTypeNames = [...]string{"undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings",
	"tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"}

// String returns the name that the ONNX text syntax uses.
func (t AttrType) String() string {
	if t < 0 || int(t) >= len(attrTypeNames) {
		return "undefined"
	}
	return attrTypeNames[t]
}

// Sparse is a sparse tensor in coordinate form, as SparseTensorProto has it.
type Sparse struct {
	Values, Indices *Tensor
	Dims            []int64
}

// Attr is a named attribute of a node. Type tells which value field counts. Inside a function body
// Ref may name an attribute of the function whose value is meant; then no value field counts.
type Attr struct {
	Name    string
	Type    AttrType
	F       float32
	I       int64
	S       string
	T       *Tensor
	G       *Graph
	Floats  []float32
	Ints    []int64
	Strings []string
	Tensors []*Tensor
	Graphs  []*Graph
	Sparse  []*Sparse // of both sparse types
	Types   []Type    // of both type_proto types
	Ref     string
	Src     any // belongs to the package that read the attribute
}

// IntAttr returns a new int attribute.
func IntAttr(name string, v int64) *Attr { return &Attr{Name: name, Type: AttrInt, I: v} }

// IntsAttr returns a new ints attribute.
func IntsAttr(name string, v ...int64) *Attr { return &Attr{Name: name, Type: AttrInts, Ints: v} }

// FloatAttr returns a new float attribute.
func FloatAttr(name string, v float32) *Attr { return &Attr{Name: name, Type: AttrFloat, F: v} }

// FloatsAttr returns a new floats attribute.
func FloatsAttr(name string, v ...float32) *Attr {
	return &Attr{Name: name, Type: AttrFloats, Floats: v}
}

// StringAttr returns a new string attribute.
func StringAttr(name, v string) *Attr { return &Attr{Name: name, Type: AttrString, S: v} }

// TensorAttr returns a new tensor attribute.
func TensorAttr(name string, t *Tensor) *Attr { return &Attr{Name: name, Type: AttrTensor, T: t} }

// GraphAttr returns a new graph attribute.
func GraphAttr(name string, g *Graph) *Attr { return &Attr{Name: name, Type: AttrGraph, G: g} }

// Subgraphs returns the graphs that a holds, none for most attributes.
func (a *Attr) Subgraphs() []*Graph {
	switch {
	case a.Ref != "":
		return nil
	case a.Type == AttrGraph && a.G != nil:
		return []*Graph{a.G}
	case a.Type == AttrGraphs:
		return a.Graphs
	}
	return nil
}
