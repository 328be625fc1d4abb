package op

import (
	"math"
	"slices"

	"gradtool/graph"
)

// evalLayerNorm normalizes over the axes from the attribute axis on. It computes in float64, whatever stash_type
// asks for at least; Mean and InvStdDev are of the type stash_type.
func evalLayerNorm(c *EvalCtx) error {
	x := c.Arg(0)
	a, err := normAxis(c.Node.Int("axis", -1), x.Rank())
	if err != nil {
		return err
	}
	affine, err := affineOf(c, 1, 2)
	if err != nil {
		return err
	}
	y := x.NewLike(x.Shape)
	st := normalizeRows(x, y, prod(x.Shape[a:]), true, c.Node.Float("epsilon", 1e-5), affine)
	c.Set(0, y)
	shape := slices.Clone(x.Shape)
	for i := a; i < len(shape); i++ {
		shape[i] = 1
	}
	stash := graph.DataType(c.Node.Int("stash_type", 1))
	mean, inv := c.New(stash, shape), c.New(stash, shape)
	for i, s := range st {
		mean.SetFloat(i, s.mean)
		inv.SetFloat(i, s.inv)
	}
	c.Set(1, mean)
	c.Set(2, inv)
	return nil
}

// affineOf returns v·scale + bias by element of operand 0; the operands scale and bias broadcast to it, bias may be missing.
func affineOf(c *EvalCtx, scale, bias int) (func(i int, v float64) float64, error) {
	s, err := periodic(c.Arg(scale), c.Arg(0).Shape)
	if err != nil {
		return nil, err
	}
	if c.Arg(bias) == nil {
		return func(i int, v float64) float64 { return v * s[i%len(s)] }, nil
	}
	b, err := periodic(c.Arg(bias), c.Arg(0).Shape)
	if err != nil {
		return nil, err
	}
	return func(i int, v float64) float64 { return v*s[i%len(s)] + b[i%len(b)] }, nil
}

// evalRMSNorm divides by the root mean square over the axes from the attribute axis on; the result has the scale's type.
func evalRMSNorm(c *EvalCtx) error {
	x := c.Arg(0)
	a, err := normAxis(c.Node.Int("axis", -1), x.Rank())
	if err != nil {
		return err
	}
	affine, err := affineOf(c, 1, 2)
	if err != nil {
		return err
	}
	y := c.New(c.Arg(1).Elem, x.Shape)
	normalizeRows(x, y, prod(x.Shape[a:]), false, c.Node.Float("epsilon", 1e-5), affine)
	c.Set(0, y)
	return nil
}

func evalGroupNorm(c *EvalCtx) error { return evalChannelGroups(c, int(c.Node.Int("num_groups", 1))) }

func evalInstanceNorm(c *EvalCtx) error {
	if c.Arg(0).Rank() < 2 {
		return c.Errorf("operand 0 has shape %v, expected batch and channels", c.Arg(0).Shape)
	}
	return evalChannelGroups(c, c.Arg(0).Shape[1])
}

// evalChannelGroups normalizes over groups of channels of one batch element, then applies scale and bias by channel.
func evalChannelGroups(c *EvalCtx, groups int) error {
	x := c.Arg(0)
	if x.Rank() < 2 || groups < 1 || x.Shape[1]%groups != 0 {
		if x.Len() == 0 {
			c.Set(0, x.NewLike(x.Shape))
			return nil
		}
		return c.Errorf("%d groups do not divide the channels of %v", groups, x.Shape)
	}
	channels, size := x.Shape[1], prod(x.Shape[2:])
	if c.Arg(1).Len() != channels || c.Arg(2).Len() != channels {
		return c.Errorf("scale and bias have shapes %v and %v, expected [%d]", c.Arg(1).Shape, c.Arg(2).Shape, channels)
	}
	s, b := floats64(c.Arg(1)), floats64(c.Arg(2))
	y := x.NewLike(x.Shape)
	normalizeRows(x, y, channels/groups*size, true, c.Node.Float("epsilon", 1e-5), func(i int, v float64) float64 {
		ch := i / size % channels
		return v*s[ch] + b[ch]
	})
	c.Set(0, y)
	return nil
}

// evalMeanVariance computes (x-mean)/(sqrt(variance)+1e-9).
func evalMeanVariance(c *EvalCtx) error {
	x := c.Arg(0)
	axes, err := normAxes(mvnAxes(c.Node), x.Rank())
	if err != nil {
		return err
	}
	p := planReduction(x.Shape, axes, true)
	v := floats64(x)
	y := x.NewLike(x.Shape)
	row := make([]float64, len(p.offs))
	for _, base := range p.bases {
		for i, o := range p.offs {
			row[i] = v[base+o]
		}
		st := momentsOf(row, true, 0)
		inv := 1 / (1/st.inv + 1e-9)
		for i, o := range p.offs {
			y.SetFloat(base+o, (row[i]-st.mean)*inv)
		}
	}
	c.Set(0, y)
	return nil
}

// evalLpNorm divides each run along the axis by its L1 or L2 norm; a run of zeros stays.
func evalLpNorm(c *EvalCtx) error {
	if p := c.Node.Int("p", 2); p != 1 && p != 2 {
		return c.Errorf("p is %d, expected 1 or 2", p)
	}
	if c.Node.Int("p", 2) == 1 {
		return evalAlongAxis(c, l1Run[float32], l1Run[float64])
	}
	return evalAlongAxis(c, l2Run[float32], l2Run[float64])
}

func l1Run[T float32 | float64](x, y []T, at, n, step int) {
	norm := 0.0
	for i := at; i < at+n*step; i += step {
		norm += math.Abs(float64(x[i]))
	}
	divideRun(x, y, at, n, step, norm)
}

func l2Run[T float32 | float64](x, y []T, at, n, step int) {
	norm := 0.0
	for i := at; i < at+n*step; i += step {
		norm += float64(x[i]) * float64(x[i])
	}
	divideRun(x, y, at, n, step, math.Sqrt(norm))
}

func divideRun[T float32 | float64](x, y []T, at, n, step int, by float64) {
	if by == 0 {
		return
	}
	for i := at; i < at+n*step; i += step {
		y[i] = T(float64(x[i]) / by)
	}
}

// evalLRN computes x/(bias + alpha/size·s)^beta, s the sum of squares of the channels around.
func evalLRN(c *EvalCtx) error {
	x, n := c.Arg(0), c.Node
	size := int(n.Int("size", 1))
	if x.Rank() < 2 || size < 1 {
		return c.Errorf("operand of shape %v and size %d, expected channels on axis 1 and a positive size", x.Shape, size)
	}
	alpha, beta, bias := n.Float("alpha", 1e-4), n.Float("beta", 0.75), n.Float("bias", 1)
	before, after := (size-1)/2, size/2
	channels, inner := x.Shape[1], prod(x.Shape[2:])
	v, y := floats64(x), x.NewLike(x.Shape)
	parallel(x.Len(), grainOf(2*size+40), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			ch := i / max(inner, 1) % channels
			sum := 0.0
			for j := max(0, ch-before); j <= min(channels-1, ch+after); j++ {
				w := v[i+(j-ch)*inner]
				sum += w * w
			}
			y.SetFloat(i, v[i]*math.Pow(bias+alpha/float64(size)*sum, -beta))
		}
	})
	c.Set(0, y)
	return nil
}
