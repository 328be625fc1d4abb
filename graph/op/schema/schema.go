// Package schema holds the facts of operator schemas, in every version: formal inputs and outputs, type
// constraints, attributes and their defaults, for the domains of the ONNX standard and for the ONNX Runtime
// operators that occur in exported models.
//
// The facts are two text tables embedded in the program, onnx.txt and contrib.txt, written by
// scripts/gen-schema from the registries of the packages onnx and onnxruntime and read on first use. What a
// table cannot say, where an operator changed meaning but not form, is in breaks.go.
//
// The package knows nothing of graphs: the facts of a node are passed as a Node. Schemas are shared and must not
// be changed by callers. The domain "ai.onnx" is written "".
package schema

import (
	_ "embed"
	"fmt"
	"sort"
	"sync"
)

// Inf is the most inputs or outputs of a schema without a bound.
const Inf = 1<<31 - 1

// Schema is one version of an operator.
type Schema struct {
	Domain, Name     string
	Since            int  // the first opset this version is of
	Deprecated       bool // the operator is not to be used from Since on
	Function         bool // the standard defines the operator by others
	ContextFunction  bool // likewise, with a body that depends on the node
	Nondeterministic bool // results may differ between equal runs; also set for operators that hold a subgraph
	Experimental     bool // the support level is experimental
	Contrib          bool // from ONNX Runtime, not from the standard
	OpenAttrs        bool // nodes may carry attributes that the schema does not know
	MinIn, MaxIn     int  // the counts of inputs, MaxIn may be Inf
	MinOut, MaxOut   int  // the counts of outputs, MaxOut may be Inf
	In, Out          []Param
	TypeVars         []TypeVar
	Attrs            []Attr // ordered by name
}

// ParamKind tells how often a formal input or output occurs.
type ParamKind uint8

// The kinds of formal inputs and outputs. A variadic one is the last.
const (
	SingleParam ParamKind = iota
	OptionalParam
	VariadicParam
)

// Diff is what the standard says of the differentiability of an input or output.
type Diff uint8

// The differentiability tags. Most schemas have none.
const (
	DiffUnknown Diff = iota
	Differentiable
	NonDifferentiable
)

// Param is a formal input or output.
type Param struct {
	Name    string
	Kind    ParamKind
	Mixed   bool     // the operands of a variadic one may differ in type
	TypeVar string   // "" if the type is fixed
	Types   *TypeSet // the allowed types
	Diff    Diff
}

// TypeVar is a type variable with the types it may stand for.
type TypeVar struct {
	Name  string
	Types *TypeSet
}

// AttrType is the type of an attribute, with the numbers of AttributeProto.AttributeType.
type AttrType uint8

// The types of attributes.
const (
	AttrUndefined AttrType = iota
	AttrFloat
	AttrInt
	AttrString
	AttrTensor
	AttrGraph
	AttrFloats
	AttrInts
	AttrStrings
	AttrTensors
	AttrGraphs
	AttrSparseTensor
	AttrSparseTensors
	AttrTypeProto
	AttrTypeProtos
	attrTypeEnd
)

var attrTypeNames = [attrTypeEnd]string{
	"undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors", "graphs",
	"sparse_tensor", "sparse_tensors", "type_proto", "type_protos",
}

// String returns the name of t in lower case.
func (t AttrType) String() string {
	if t < attrTypeEnd {
		return attrTypeNames[t]
	}
	return fmt.Sprintf("attribute type %d", uint8(t))
}

// Attr is a formal attribute. Default is nil if there is none, else int64, float32, string, []int64, []float32 or
// []string as Type says.
type Attr struct {
	Name     string
	Type     AttrType
	Required bool
	Default  any
}

// Attr returns the formal attribute of that name.
func (s *Schema) Attr(name string) (*Attr, bool) {
	i := sort.Search(len(s.Attrs), func(i int) bool { return s.Attrs[i].Name >= name })
	if i < len(s.Attrs) && s.Attrs[i].Name == name {
		return &s.Attrs[i], true
	}
	return nil, false
}

// Input returns the formal input that the i-th operand belongs to, nil if the schema has none for it.
func (s *Schema) Input(i int) *Param { return formal(s.In, i) }

// Output returns the formal output that the i-th result belongs to, nil if the schema has none for it.
func (s *Schema) Output(i int) *Param { return formal(s.Out, i) }

func formal(params []Param, i int) *Param {
	n := len(params)
	switch {
	case i >= 0 && i < n:
		return &params[i]
	case i >= n && n > 0 && params[n-1].Kind == VariadicParam:
		return &params[n-1]
	}
	return nil
}

// ID returns the operator and version as messages give them, such as "Gemm-13" or "com.microsoft.Gelu-1".
func (s *Schema) ID() string {
	name := s.Name
	if s.Domain != "" {
		name = s.Domain + "." + name
	}
	return fmt.Sprintf("%s-%d", name, s.Since)
}

//go:embed onnx.txt
var onnxText string

//go:embed contrib.txt
var contribText string

// tables holds the parsed tables. An embedded table that does not parse is a fault of the build, so it panics.
var tables = sync.OnceValue(func() *table {
	t := newTable()
	for _, src := range []struct {
		text    string
		contrib bool
	}{{onnxText, false}, {contribText, true}} {
		if err := t.parse(src.text, src.contrib); err != nil {
			panic(err)
		}
	}
	t.sort()
	return t
})

// canonical returns the domain under which the tables hold it.
func canonical(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// Lookup returns the schema in force at an opset of a domain: the newest version not newer than opset. It may be
// deprecated. False means that the operator is not known or came later.
func Lookup(domain, name string, opset int) (*Schema, bool) {
	vs := Versions(domain, name)
	for i := len(vs) - 1; i >= 0; i-- {
		if vs[i].Since <= opset {
			return vs[i], true
		}
	}
	return nil, false
}

// Versions returns every version of an operator, oldest first, nil if it is not known.
func Versions(domain, name string) []*Schema {
	return tables().byOp[opKey{canonical(domain), name}]
}

// All returns every schema, ordered by domain, name and version.
func All() []*Schema { return tables().all }

// Domains returns the known domains in order.
func Domains() []string { return tables().domains }

// MaxOpset returns the newest known opset of a domain, 0 if the domain is not known.
func MaxOpset(domain string) int { return tables().maxOpset[canonical(domain)] }
