package op

import (
	"fmt"

	"gradtool/graph"
)

// Facts are properties of an operator that passes ask the table for, so that none lists operator names.
type Facts uint32

// Facts of operators.
const (
	Elementwise   Facts = 1 << iota // result element i depends on operand elements i only (after broadcasting)
	Broadcasts                      // operands are broadcast against each other, numpy style
	Commutative                     // exchanging the first two operands changes nothing
	View                            // the first result holds the elements of operand 0 in order: storage can be shared
	Random                          // results differ from run to run; never folded, merged or recomputed
	Training                        // has a training mode with state or randomness
	ShapeOnly                       // results depend on operand shapes only
	CheapRemat                      // limited by memory traffic: recomputing beats keeping
	Control                         // runs subgraphs
	DataDependent                   // result shapes depend on operand values
)

// Def is an operator's entry in the table.
type Def struct {
	Domain string // "" is ai.onnx
	Name   string
	Facts  Facts

	// Infer sets the types (and, for integer tensors, known values) of the results. It returns an
	// error only when the node is certain to fail at run time. Nil: results stay unknown.
	Infer func(c *InferCtx) error
	// Eval computes the results. Nil: the operator cannot be evaluated.
	Eval func(c *EvalCtx) error
	// Cost returns the work of one evaluation, for known shapes. Nil: one FLOP per result element.
	Cost func(c *CostCtx) float64
	// Decompose rewrites a node in terms of simpler operators and returns its results, for
	// operators that are defined as a function of others.
	Decompose func(b *Builder, n *graph.Node) []*graph.Value
	// Samples are applications on which the generic tests run.
	Samples []Sample
}

// Key identifies an operator: domain ("" for ai.onnx) and name.
type Key struct{ Domain, Name string }

// KeyOf returns the key of the operator that n applies.
func KeyOf(n *graph.Node) Key { return Key{graph.StdDomain(n.Domain), n.Op} }

// String returns domain.name, or the bare name for ai.onnx.
func (k Key) String() string {
	if k.Domain == "" {
		return k.Name
	}
	return k.Domain + "." + k.Name
}

// Has reports whether all of the given facts hold.
func (d *Def) Has(f Facts) bool { return d != nil && d.Facts&f == f }

// Sample is one application of an operator for the generic tests.
type Sample struct {
	Name  string // tells samples of one operator apart; may be empty for the first
	In    []Arg
	Attrs []*graph.Attr
	Outs  int // number of results asked for; 0 means 1
	// Build, if set, applies the operator to the operands in and returns the outputs of the sample's model, which are
	// tensors: for operators that run subgraphs or handle sequences. Attrs and Outs are not used then.
	Build func(b *Builder, in []*graph.Value) []*graph.Value
	// NoGrad says why derivatives are not checked on this sample ("" where they are): points of
	// non-differentiability, say.
	NoGrad string
}

// Arg is one operand of a sample. The zero Arg is an omitted operand.
type Arg struct {
	Elem   graph.DataType
	Shape  []int
	Values []float64 // fixed values; if nil, random in [Lo, Hi]
	Lo, Hi float64
	Const  bool // given as an initializer, so that inference sees the values
	Apart  bool // random values are pairwise different by a margin: for max, sort, ...
}

// F is a float operand of random values in [-2, 2].
func F(shape ...int) Arg { return FR(-2, 2, shape...) }

// FR is a float operand of random values in [lo, hi].
func FR(lo, hi float64, shape ...int) Arg {
	return Arg{Elem: graph.Float, Shape: shape, Lo: lo, Hi: hi}
}

// FApart is a float operand whose random values differ pairwise by a margin.
func FApart(shape ...int) Arg {
	a := F(shape...)
	a.Apart = true
	return a
}

// FV is a float operand with the given values.
func FV(shape []int, v ...float64) Arg { return Arg{Elem: graph.Float, Shape: shape, Values: v} }

// I is a constant int64 vector.
func I(v ...int64) Arg {
	f := make([]float64, len(v))
	for i, x := range v {
		f[i] = float64(x)
	}
	return Arg{Elem: graph.Int64, Shape: []int{len(v)}, Values: f, Const: true}
}

// IS is a constant int64 scalar.
func IS(v int64) Arg {
	return Arg{Elem: graph.Int64, Shape: []int{}, Values: []float64{float64(v)}, Const: true}
}

// TV is an operand of the given element type and values, constant if it is of an integer type.
func TV(elem graph.DataType, shape []int, v ...float64) Arg {
	return Arg{Elem: elem, Shape: shape, Values: v, Const: elem.IsInt()}
}

// Variable returns the operand as one whose values inference does not see.
func (a Arg) Variable() Arg { a.Const = false; return a }

// Constant returns the operand as an initializer, whose values inference sees.
func (a Arg) Constant() Arg { a.Const = true; return a }

// As returns the operand with another element type.
func (a Arg) As(elem graph.DataType) Arg { a.Elem = elem; return a }

// CostCtx is what a cost function sees: a node whose operand and result shapes are known.
type CostCtx struct {
	Node    *graph.Node
	In, Out [][]int // shapes; nil for omitted operands and results
}

// OutLen returns the number of elements of result i.
func (c *CostCtx) OutLen(i int) float64 {
	if i >= len(c.Out) || c.Out[i] == nil {
		return 0
	}
	return float64(prod(c.Out[i]))
}

// perElement is the cost of f FLOPs per element of the first result.
func perElement(f float64) func(*CostCtx) float64 {
	return func(c *CostCtx) float64 { return f * c.OutLen(0) }
}

// EvalCtx is what an evaluation sees.
type EvalCtx struct {
	Node *graph.Node
	In   []*Array // operands; nil where omitted
	Out  []*Array // to be filled; one per result of the node, omitted ones included
	Wide bool     // float64 mode: every float type is held and computed in float64
	Seed uint64   // for random operators: differs by node and run
	// Run evaluates a subgraph with the given inputs.
	Run func(g *graph.Graph, in []*Array) ([]*Array, error)
}

// Arg returns operand i, nil where it is omitted.
func (c *EvalCtx) Arg(i int) *Array {
	if i < len(c.In) {
		return c.In[i]
	}
	return nil
}

// New returns zeros of the given type, stored as the mode demands.
func (c *EvalCtx) New(elem graph.DataType, shape []int) *Array { return NewArray(elem, shape, c.Wide) }

// Set makes a result i, rounded to its element type, if the node has that result.
func (c *EvalCtx) Set(i int, a *Array) {
	if i < len(c.Out) {
		c.Out[i] = a.Round()
	}
}

// Ints returns the values of integer operand i, nil where it is omitted.
func (c *EvalCtx) Ints(i int) []int64 {
	if a := c.Arg(i); a != nil {
		return a.I64
	}
	return nil
}

// Errorf returns an error about the node.
func (c *EvalCtx) Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
