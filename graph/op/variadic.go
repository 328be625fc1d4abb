package op

import "gradtool/graph"

// foldFn combines any number of broadcast operands, one after the other.
type foldFn struct {
	float func(acc []float64, x float64, i int) // takes element x into acc[i]
	ints  func(a, b int64, unsigned bool) int64 // nil: integers are not allowed
	mean  bool                                  // divide by the number of operands at the end
	pair  binaryFn                              // the same for two operands, faster; may lack kernels
}

// variadicDef defines an element-wise operator of one or more operands.
func variadicDef(name string, fn foldFn, dims func(a, b graph.Dim) graph.Dim, samples ...[]Arg) Def {
	d := Def{Name: name, Facts: Elementwise | Broadcasts | Commutative | CheapRemat, Infer: inferBroadcast(dims), Eval: fn.eval,
		Cost: func(c *CostCtx) float64 { return c.OutLen(0) * float64(max(1, len(c.In)-1)) }}
	for _, in := range samples {
		d.Samples = append(d.Samples, Sample{In: in})
	}
	return d
}

// eval folds run by run; floats are accumulated in float64.
func (fn foldFn) eval(c *EvalCtx) error {
	if len(c.In) == 0 || c.In[0] == nil {
		return c.Errorf("no operand")
	}
	shapes := make([][]int, len(c.In))
	for k, x := range c.In {
		if x.Elem != c.In[0].Elem {
			return errKinds(c.In[0], x)
		}
		shapes[k] = x.Shape
	}
	p, err := newBroadcast(shapes...)
	if err != nil {
		return err
	}
	if len(c.In) == 2 && fn.pair.f32 != nil {
		y, err := zip(c.In[0], c.In[1], workCheap, fn.pair)
		if err != nil {
			return err
		}
		c.Set(0, y)
		return nil
	}
	y := c.In[0].NewLike(p.shape)
	switch {
	case y.IsFloat():
		fn.floats(c, p, y)
	case y.I64 != nil && fn.ints != nil:
		fn.integers(c, p, y)
	default:
		return errKinds(y, y)
	}
	c.Set(0, y)
	return nil
}

func (fn foldFn) floats(c *EvalCtx, p *broadcast, y *Array) {
	const block = 512 // elements accumulated at a time
	parallel(p.size(), grainOf(2*len(c.In)), func(lo, hi int) {
		var acc [block]float64
		p.runs(lo, hi, func(o, n int, at []int) {
			for from := 0; from < n; from += block {
				m := min(block, n-from)
				for k, x := range c.In {
					for i := range m {
						j := at[k]
						if p.advances(k) {
							j += from + i
						}
						if v := x.Float(j); k == 0 {
							acc[i] = v
						} else {
							fn.float(acc[:], v, i)
						}
					}
				}
				for i := range m {
					if fn.mean {
						acc[i] /= float64(len(c.In))
					}
					y.SetFloat(o+from+i, acc[i])
				}
			}
		})
	})
}

func (fn foldFn) integers(c *EvalCtx, p *broadcast, y *Array) {
	unsigned := y.Elem == graph.Uint64
	p.each(len(c.In), func(o, n int, at []int) {
		for k, x := range c.In {
			src := span(p, k, x.I64, at[k], n)
			for i := range n {
				v := src[min(i, len(src)-1)]
				if k > 0 {
					v = fn.ints(y.I64[o+i], v, unsigned)
				}
				y.I64[o+i] = v
			}
		}
	})
}

// pairOf makes the kernels of two operands from element functions.
func pairOf(f32 func(a, b float32) float32, f64 func(a, b float64) float64, ints func(a, b int64, unsigned bool) int64) binaryFn {
	return binaryFn{runOf(f32), runOf(f64), bySign(func(a, b int64) int64 { return ints(a, b, false) },
		func(a, b uint64) uint64 { return uint64(ints(int64(a), int64(b), true)) })}
}

func larger[T float](a, b T) T { return max(a, b) }

func smaller[T float](a, b T) T { return min(a, b) }

func sumInto(acc []float64, x float64, i int) { acc[i] += x }

// maxInto and minInto keep NaN, from either side.
func maxInto(acc []float64, x float64, i int) { acc[i] = max(acc[i], x) }

func minInto(acc []float64, x float64, i int) { acc[i] = min(acc[i], x) }

func maxInts(a, b int64, unsigned bool) int64 {
	if unsigned {
		return int64(max(uint64(a), uint64(b)))
	}
	return max(a, b)
}

func minInts(a, b int64, unsigned bool) int64 {
	if unsigned {
		return int64(min(uint64(a), uint64(b)))
	}
	return min(a, b)
}
