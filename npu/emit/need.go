package emit

import (
	"fmt"
	"strings"

	"gradtool/npu/legal"
)

// needSteps is in how many steps the scratchpad is divided to find out how much of it a kernel needs.
const needSteps = 16

// near is how much more than with all of the scratchpad a kernel may take with what it needs.
const near = 1.01

// Need returns how many bytes of the scratchpad a kernel needs to be about as fast as with all of it.
func (e *Emitter) Need(k legal.Kernel) int {
	unit := e.Machine.Scratchpad.Bytes / needSteps
	switch k := k.(type) {
	case *legal.Nest:
		// A tile takes an eighth at most: others come, are worked on and go.
		transfers := func(n int) (float64, bool) {
			tile, ok := e.NestTile(k, n*unit/4/8)
			return e.nestDMA(k, tile), ok
		}
		best, ok := transfers(needSteps)
		if !ok {
			return e.Machine.Scratchpad.Bytes
		}
		for n := 1; n < needSteps; n++ {
			if cost, ok := transfers(n); ok && cost <= near*best {
				return max(n, 2) * unit
			}
		}
	case *legal.Contract:
		id := shapeOf(k)
		if n, ok := e.needs[id]; ok {
			return n
		}
		n := e.leastNeed(unit, func() []*Plan { return e.ContractPlans(k) })
		e.needs[id] = n
		return n
	case *legal.Walk:
		return e.leastNeed(unit, func() []*Plan { return e.WalkPlans(k) })
	default:
		return e.Machine.Scratchpad.Bytes / 4
	}
	return e.Machine.Scratchpad.Bytes
}

// leastNeed returns in how many bytes the plans made in the free scratchpad come near to those made in all of it.
func (e *Emitter) leastNeed(unit int, plans func() []*Plan) int {
	all := e.scratch
	defer func() { e.scratch = all }()
	best := -1.0
	for n := needSteps; n > 0; n -= 2 {
		e.scratch = newPool(0, n*unit)
		list := plans()
		if len(list) == 0 || best >= 0 && e.Rank(list[0]) > near*best {
			return min(n+2, needSteps) * unit
		}
		if best < 0 {
			best = e.Rank(list[0])
		}
	}
	return 2 * unit
}

// shapeOf returns a text that is the same for contractions that differ in their buffers only.
func shapeOf(k *legal.Contract) string {
	var b strings.Builder
	fmt.Fprint(&b, k.Dims, string(k.Kind))
	access := func(a *legal.Access) {
		if a != nil {
			fmt.Fprint(&b, a.Base, a.Axes)
		}
	}
	access(k.A)
	access(k.B)
	if k.Post == nil {
		access(k.C)
		return b.String()
	}
	for _, a := range k.Post.In {
		access(a)
	}
	for _, s := range k.Post.Body {
		fmt.Fprint(&b, s.Op, s.Args, s.Over, " ")
	}
	for _, o := range k.Post.Out {
		fmt.Fprint(&b, o.Value)
		access(o.To)
	}
	return b.String()
}
