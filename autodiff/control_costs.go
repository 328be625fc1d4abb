package autodiff

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// LoopUse is what the reverse form of a Loop needs of the forward iterations, as the plan to stack everything has it.
type LoopUse struct {
	Name  string
	Trips graph.Dim // iterations; unknown if only the run tells
	// State and Kept are bytes for each iteration: of the values that are carried and have derivatives, and of all that the
	// plan to stack keeps. Unknown where shapes change from one iteration to the next.
	State, Kept graph.Dim
	Work        float64 // floating-point operations of one forward iteration, as far as shapes are known
	Random      bool    // random operators inside: stacks whatever the plan
}

// LoopCost is what a plan costs for a Loop.
type LoopCost struct {
	Plan  LoopPlan
	Bytes graph.Dim // kept at a time, beyond what the forward Loop itself returns
	Again graph.Dim // iterations that run again
}

// Cost returns what the plan costs. An unknown number of iterations is the symbol T. A Loop nested in others is
// counted by itself, for one run.
func (u LoopUse) Cost(p LoopPlan) LoopCost {
	t := u.Trips
	if t.IsUnknown() {
		t = graph.Sym("T")
	}
	if u.Random {
		p = LoopPlan{}
	}
	if p.Auto {
		p = LoopPlan{Auto: true, Every: int(autoSegment(u.Trips, u.State))}
	}
	none, k := graph.Known(0), graph.Known(int64(p.Every))
	switch {
	case p.Recompute:
		return LoopCost{p, u.State, t.Mul(t.Sub(graph.Known(1))).FloorDiv(graph.Known(2))}
	case p.Every > 0:
		return LoopCost{p, t.CeilDiv(k).Mul(u.State).Add(k.Mul(u.Kept)), t}
	}
	return LoopCost{p, t.Mul(u.Kept), none}
}

// largeStacks is the number of bytes from which on stacks of what a Loop carries count as large.
const largeStacks = 256 << 20

// autoSegment returns the number of iterations of a segment that keeps memory near its least, for so many iterations
// that carry so many bytes each; 0 where stacks are small, or nothing is known.
func autoSegment(trips, state graph.Dim) int64 {
	t, ok1 := trips.Int()
	bytes, ok2 := state.Int()
	if !ok1 || !ok2 || bytes == 0 || t < 4 || bytes <= largeStacks/t {
		return 0
	}
	return int64(math.Ceil(math.Sqrt(float64(t))))
}

// use returns what l needs, when its reverse form is complete.
func (l *loop) use() LoopUse {
	name := l.c.From
	if name == "" {
		name = l.n.Label()
	}
	u := LoopUse{Name: name, Trips: op.LoopTrips(l.c.Info, l.n), State: graph.Known(0), Kept: graph.Known(0), Work: op.BodyCost(l.g), Random: isRandom(l.n)}
	for k := range l.carried {
		if l.flow.stateful(k) {
			u.State = u.State.Add(l.bytes(l.input(k)))
		}
	}
	for _, v := range l.kept {
		u.Kept = u.Kept.Add(l.bytes(v))
	}
	return u
}

// bytes is the size of a value in the body, unknown if it may change from one iteration to the next.
func (l *loop) bytes(v *graph.Value) graph.Dim {
	if !v.Type.IsTensor() || !constantShape(l.n, v) {
		return graph.Unknown()
	}
	return byteSize(v.Type)
}

// byteSize returns the bytes of a tensor of type t.
func byteSize(t graph.Type) graph.Dim {
	bits := t.Shape.Size().Mul(graph.Known(int64(t.Elem.Bits())))
	return bits.CeilDiv(graph.Known(8))
}
