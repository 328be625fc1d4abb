package op

import (
	"fmt"

	"gradtool/graph"
)

// float is the storage of real floating-point elements.
type float interface{ float32 | float64 }

// number is the storage of elements that arithmetic works on.
type number interface{ float32 | float64 | int64 }

// Unary operators.

// unaryFn is a function of one element, chosen by the node's attributes. Float elements are computed
// in float64 and rounded once. Ints is nil where integers are not allowed.
type unaryFn struct {
	float func(float64) float64
	ints  func(int64) int64
}

// evalUnary evaluates an element-wise function; work is its cost in elementary operations.
func evalUnary(work int, fn func(n *graph.Node, elem graph.DataType) unaryFn) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		x := c.In[0]
		f := fn(c.Node, x.Elem)
		y := x.NewLike(x.Shape)
		switch {
		case x.F32 != nil && f.float != nil:
			mapFloat(y.F32, x.F32, work, f.float)
		case x.F64 != nil && f.float != nil:
			mapFloat(y.F64, x.F64, work, f.float)
		case x.I64 != nil && f.ints != nil:
			mapTo(y.I64, x.I64, work, f.ints)
		default:
			return c.Errorf("%s is not defined for %s", c.Node.Op, x.Elem)
		}
		c.Set(0, y)
		return nil
	}
}

// mapFloat sets out[i] = f(in[i]), computed in float64.
func mapFloat[T float](out, in []T, work int, f func(float64) float64) {
	parallel(len(out), grainOf(work), func(lo, hi int) {
		o, x := out[lo:hi], in[lo:hi]
		for i := range o {
			o[i] = T(f(float64(x[i])))
		}
	})
}

// mapTo sets out[i] = f(in[i]).
func mapTo[R, T any](out []R, in []T, work int, f func(T) R) {
	parallel(len(out), grainOf(work), func(lo, hi int) {
		o, x := out[lo:hi], in[lo:hi]
		for i := range o {
			o[i] = f(x[i])
		}
	})
}

// fixed is the choice of a function that no attribute or type changes.
func fixed(f func(float64) float64, ints func(int64) int64) func(*graph.Node, graph.DataType) unaryFn {
	return func(*graph.Node, graph.DataType) unaryFn { return unaryFn{f, ints} }
}

// Binary operators.

// binaryFn holds the kernels of a binary operator for runs of elements: each operand has the length of
// out, or 1 and then its element is repeated. A nil kernel means that the storage is not allowed.
type binaryFn struct {
	f32  func(out, a, b []float32)
	f64  func(out, a, b []float64)
	ints func(elem graph.DataType) func(out, a, b []int64)
}

// zip applies fn to a and b, of one element type, broadcast.
func zip(a, b *Array, work int, fn binaryFn) (*Array, error) {
	p, err := newBroadcast(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	y := a.NewLike(p.shape)
	switch {
	case a.F32 != nil && b.F32 != nil && fn.f32 != nil:
		zipRuns(p, y.F32, a.F32, b.F32, work, fn.f32)
	case a.F64 != nil && b.F64 != nil && fn.f64 != nil:
		zipRuns(p, y.F64, a.F64, b.F64, work, fn.f64)
	case a.I64 != nil && b.I64 != nil && fn.ints != nil:
		zipRuns(p, y.I64, a.I64, b.I64, work, fn.ints(a.Elem))
	default:
		return nil, errKinds(a, b)
	}
	return y, nil
}

// zipRuns applies a kernel to each run of a walk over two operands.
func zipRuns[R, T any](p *broadcast, out []R, a, b []T, work int, kernel func(out []R, a, b []T)) {
	p.each(work, func(o, n int, at []int) {
		kernel(out[o:o+n], span(p, 0, a, at[0], n), span(p, 1, b, at[1], n))
	})
}

// runOf makes the kernel of a run from the function of an element.
func runOf[R, T any](f func(a, b T) R) func(out []R, a, b []T) {
	return func(out []R, a, b []T) {
		switch {
		case len(a) == len(out) && len(b) == len(out):
			for i := range out {
				out[i] = f(a[i], b[i])
			}
		case len(a) == len(out):
			y := b[0]
			for i := range out {
				out[i] = f(a[i], y)
			}
		case len(b) == len(out):
			x := a[0]
			for i := range out {
				out[i] = f(x, b[i])
			}
		default:
			z := f(a[0], b[0])
			for i := range out {
				out[i] = z
			}
		}
	}
}

// evalBinary evaluates a binary operator whose operands and result have one element type.
func evalBinary(work int, fn func(n *graph.Node) binaryFn) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		y, err := zip(c.In[0], c.In[1], work, fn(c.Node))
		if err != nil {
			return err
		}
		c.Set(0, y)
		return nil
	}
}

// always is the choice of kernels that no attribute changes.
func always(fn binaryFn) func(*graph.Node) binaryFn { return func(*graph.Node) binaryFn { return fn } }

// signed is an integer kernel that serves every integer type: two's complement makes no difference.
func signed(k func(out, a, b []int64)) func(graph.DataType) func(out, a, b []int64) {
	return func(graph.DataType) func(out, a, b []int64) { return k }
}

// bySign chooses the kernel of an element function by whether the type holds unsigned 64-bit numbers, which
// are stored as their bit patterns.
func bySign(s func(a, b int64) int64, u func(a, b uint64) uint64) func(graph.DataType) func(out, a, b []int64) {
	return func(elem graph.DataType) func(out, a, b []int64) {
		if elem == graph.Uint64 {
			return runOf(func(a, b int64) int64 { return int64(u(uint64(a), uint64(b))) })
		}
		return runOf(s)
	}
}

// Inference.

// inferBroadcast infers result 0 as of the first operand's element type and the operands' broadcast
// shape. If dims is given, elements of integer scalars and vectors known symbolically are combined by it.
func inferBroadcast(dims func(a, b graph.Dim) graph.Dim) func(*InferCtx) error {
	return func(c *InferCtx) error {
		elem, err := c.broadcastAll(0)
		if err != nil {
			return err
		}
		if dims == nil || !elem.IsInt() {
			return nil
		}
		out := c.Dims(0)
		for i := 1; i < c.NumIn(); i++ {
			out = zipDims(out, c.Dims(i), dims)
		}
		c.SetDims(0, out)
		return nil
	}
}

// broadcastAll sets result 0 to the broadcast shape of the operands from the given one on and to
// the first element type known among them, which it returns.
func (c *InferCtx) broadcastAll(from int) (graph.DataType, error) {
	shapes := make([]graph.Shape, 0, c.NumIn())
	elem := graph.Undefined
	for i := from; i < c.NumIn(); i++ {
		shapes = append(shapes, c.Shape(i))
		if elem == graph.Undefined {
			elem = c.Elem(i)
		}
	}
	shape, err := broadcastShapes(shapes...)
	if err != nil {
		return elem, err
	}
	c.Set(0, elem, shape)
	return elem, nil
}

// zipDims combines the elements of two integer scalars or vectors, broadcast; nil if a length is
// unknown or they do not fit.
func zipDims(a, b []graph.Dim, f func(a, b graph.Dim) graph.Dim) []graph.Dim {
	n := max(len(a), len(b))
	switch {
	case a == nil || b == nil:
		return nil
	case len(a) != len(b) && len(a) != 1 && len(b) != 1:
		return nil
	case len(a) == 0 || len(b) == 0:
		n = 0
	}
	at := func(d []graph.Dim, i int) graph.Dim {
		if len(d) == 1 {
			return d[0]
		}
		return d[i]
	}
	out := make([]graph.Dim, n)
	for i := range out {
		x, y := at(a, i), at(b, i)
		if !x.IsUnknown() && !y.IsUnknown() {
			out[i] = f(x, y)
		}
	}
	return out
}

// inferUnary infers result 0 as of operand 0's type. If dims is given, symbolically known elements are
// mapped by it.
func inferUnary(dims func(graph.Dim) graph.Dim) func(*InferCtx) error {
	return func(c *InferCtx) error {
		c.SetType(0, c.In(0))
		if d := c.Dims(0); d != nil && dims != nil && c.Elem(0).IsInt() {
			out := make([]graph.Dim, len(d))
			for i := range d {
				if !d[i].IsUnknown() {
					out[i] = dims(d[i])
				}
			}
			c.SetDims(0, out)
		}
		return nil
	}
}

// errKinds says that two operands cannot be combined.
func errKinds(a, b *Array) error {
	if a.Elem == b.Elem {
		return fmt.Errorf("element type %s is not supported", a.Elem)
	}
	return fmt.Errorf("element types %s and %s differ", a.Elem, b.Elem)
}
