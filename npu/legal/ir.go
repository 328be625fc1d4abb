package legal

import (
	"slices"
	"strings"

	"gradtool/graph"
)

// Role tells what a buffer holds.
type Role uint8

// Roles of buffers.
const (
	Temp   Role = iota // made and read inside the program
	Input              // given at each run
	Const              // known at compile time
	Output             // read by whoever runs the program
)

// String returns the role's name.
func (r Role) String() string { return [...]string{"temp", "input", "const", "output"}[r] }

// Buffer is a tensor in memory: Len elements of type Elem, one after the other.
type Buffer struct {
	ID   int
	Name string // for people
	Elem graph.DataType
	Len  int
	Role Role
	Data *graph.Tensor // of a constant
	// Stored, if set, is the type that elements have in memory where that is narrower: float16 or bfloat16, of inputs and
	// outputs of the model.
	Stored graph.DataType
}

// Mem returns the type that the elements of b have in memory.
func (b *Buffer) Mem() graph.DataType {
	if b.Stored != graph.Undefined {
		return b.Stored
	}
	return b.Elem
}

// Bytes returns the size of b.
func (b *Buffer) Bytes() int { return b.Len * Size(b.Mem()) }

// Size returns the bytes that an element of type t takes in memory.
func Size(t graph.DataType) int { return (t.Bits() + 7) / 8 }

// Axis is one axis of a buffer as an access sees it: coordinate Off + sum of Coef[i]*index[i], in [0, Size), Stride
// elements apart.
type Axis struct {
	Size, Stride, Off int
	Coef              []int // by loop dimension
}

// Access maps loop indices to elements of a buffer: element Base + sum over axes of Stride*coordinate. A read with some
// coordinate out of range gives Fill.
type Access struct {
	Buf  *Buffer
	Base int
	Axes []Axis
	Fill float64
}

// Binding ties a buffer to an input or output of the model.
type Binding struct {
	Name  string
	Elem  graph.DataType
	Shape []int
	Buf   *Buffer
}

// Program is a model at this level. Kernels run in order.
type Program struct {
	Name            string
	Buffers         []*Buffer
	Kernels         []Kernel
	Inputs, Outputs []Binding
	Fallbacks       []Fallback // operators that have no lowering; the program is complete if there are none
}

// Fallback is a node that could not be lowered.
type Fallback struct {
	Node, Op, Reason string
}

// Kernel is a *Nest, *Contract, *Walk, *Gather or *Scatter.
type Kernel interface {
	// Origin returns what the kernel was made from.
	Origin() *Origin
	// Reads and Writes return the accesses to memory.
	Reads() []*Access
	Writes() []*Access
}

// Origin says where a kernel comes from.
type Origin struct {
	Node string // label of the graph node
	Op   string // its operator
	Role string // forward, backward, loss, ... as in gradtool.role
	// Clusters are those of fuse that the kernel computes parts of, joined by " + ", "" if there are none; Ops are the operators
	// that went into it, joined likewise.
	Clusters, Ops string
}

// of returns o for a kernel that others went into, given in order.
func (o Origin) of(parts ...Origin) Origin {
	all := func(field func(o *Origin) string) string {
		var list []string
		for i := range parts {
			list = append(list, field(&parts[i]))
		}
		return join(list...)
	}
	o.Clusters = all(func(o *Origin) string { return o.Clusters })
	o.Ops = all(func(o *Origin) string { return o.Ops })
	return o
}

// plus stands between the names of clusters, and of operators, in a list.
const plus = " + "

// join returns the names in several lists, each once.
func join(lists ...string) string {
	var out []string
	for _, l := range lists {
		for x := range strings.SplitSeq(l, plus) {
			if x != "" && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return strings.Join(out, plus)
}

// Origin returns o itself: kernels embed it.
func (o *Origin) Origin() *Origin { return o }

// Nest computes statements at every point of a box of loop indices.
//
// The values are numbered: first the loaded operands, then the results of the statements. A value varies along a set of
// dimensions: a load along those that its access uses, a statement along those of its operands less those it reduces.
type Nest struct {
	Origin0 Origin
	Dims    []int
	In      []*Access
	Body    []Stmt
	Out     []Store
}

// Store writes a value of a nest.
type Store struct {
	To    *Access
	Value int
	Part  string // as in Stmt, of a node that only moves elements
}

// Stmt computes one value from earlier ones.
type Stmt struct {
	Op   Op
	Elem graph.DataType
	Args []int
	Imm  float64 // of constants
	Dim  int     // of Iota
	Over uint32  // dimensions that a reduction reduces, by bit
	// Part is the cluster of fuse that the statement's node is of, Again says that it repeats what its own kernel computes too.
	Part  string
	Again bool
}

// Contract adds up products: C[b,m,n] = sum over k of A[b,m,k]*B[b,k,n], where each letter stands for the dimensions of
// that kind. The epilogue, if there is one, computes on the sums, which are its value 0, and stores in place of C.
type Contract struct {
	Origin0 Origin
	Dims    []int
	Kind    []Kind
	A, B    *Access
	C       *Access
	Post    *Nest  // over Dims; dimensions of kind K are 1 in it
	Part    string // as in Stmt, of the sums
}

// Kind is the part a dimension plays in a contraction.
type Kind byte

// Kinds of dimensions.
const (
	Batch Kind = 'b'
	M     Kind = 'm'
	N     Kind = 'n'
	K     Kind = 'k'
)

// Gather copies rows: Out[i, j] = Table[Index[i], j] for i < Rows, j < Width. Negative indices count from the end.
type Gather struct {
	Origin0     Origin
	Rows, Width int
	Table       *Access // over (row of the table, j)
	TableRows   int
	Index       *Access // over (i)
	Out         *Access // over (i, j)
}

// Scatter combines rows into a table: Table[Index[i], j] = Mode(Table[Index[i], j], Rows[i, j]), for i in order.
type Scatter struct {
	Origin0     Origin
	Rows, Width int
	Table       *Access // over (row of the table, j)
	TableRows   int
	Index       *Access // over (i)
	From        *Access // over (i, j)
	Mode        Op      // Mov to replace, else Add, Mul, Max or Min
}

// Origin returns where the kernel comes from.
func (k *Nest) Origin() *Origin     { return &k.Origin0 }
func (k *Contract) Origin() *Origin { return &k.Origin0 }
func (k *Gather) Origin() *Origin   { return &k.Origin0 }
func (k *Scatter) Origin() *Origin  { return &k.Origin0 }

// Reads returns the loads of the nest.
func (k *Nest) Reads() []*Access { return k.In }

// Writes returns the stores of the nest.
func (k *Nest) Writes() []*Access {
	out := make([]*Access, len(k.Out))
	for i, s := range k.Out {
		out[i] = s.To
	}
	return out
}

// Reads returns the operands and what the epilogue loads.
func (k *Contract) Reads() []*Access {
	out := []*Access{k.A, k.B}
	if k.Post != nil {
		out = append(out, k.Post.In[1:]...)
	}
	return out
}

// Writes returns C, or the stores of the epilogue.
func (k *Contract) Writes() []*Access {
	if k.Post != nil {
		return k.Post.Writes()
	}
	return []*Access{k.C}
}

// Reads returns table and index.
func (k *Gather) Reads() []*Access { return []*Access{k.Table, k.Index} }

// Writes returns the result.
func (k *Gather) Writes() []*Access { return []*Access{k.Out} }

// Reads returns rows and index, and the table, of which the kernel leaves most as it is.
func (k *Scatter) Reads() []*Access { return []*Access{k.From, k.Index, k.Table} }

// Writes returns the table.
func (k *Scatter) Writes() []*Access { return []*Access{k.Table} }
