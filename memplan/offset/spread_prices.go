package offset

import "math"

// spreadPrices are prices of a byte of each memory in each section of time. With prices on what memories have, each buffer
// may choose for itself where it lies: it pays for the bytes and sections that it holds, and for being spilled. What all pay together at
// least, less what the memories are worth, is a bound on the cost of all spreads (Lagrangian relaxation: Fisher, "The Lagrangian
// Relaxation Method for Solving Integer Programming Problems", Management Science 27, 1981), since capacities over time are
// what a spread must keep to in any case.
type spreadPrices struct {
	sum   [][]float64 // of each memory, prices added up over sections: sum[k][t] is that of sections below t
	bound int64
}

// priceRounds is how often prices are changed.
const priceRounds = 400

// price returns what buffer i pays for lying in memory k.
func (p *spreadPrices) price(in *instance, k int, i int32) float64 {
	total := 0.0
	for _, x := range in.spans[i] {
		total += float64(float64(x.high-x.low) * (p.sum[k][x.hi] - p.sum[k][x.lo]))
	}
	return total
}

// prices finds good prices by following the subgradient: the price of a section rises where more wants to lie than fits, and
// falls where less does. Steps are those of Polyak, with the cost of a greedy selection as the goal.
func (s *spreader) prices() *spreadPrices {
	in, n := s.in, len(s.memories)
	best := &spreadPrices{}
	at := make([][]float64, n)
	for k := range at {
		at[k] = make([]float64, in.sections)
		best.sum = append(best.sum, make([]float64, in.sections+1))
	}
	goal, lowest, scale := s.greedyCost(), math.Inf(-1), 1.0
	since := 0
	for round := 0; round < priceRounds && s.work < s.budget; round++ {
		now := &spreadPrices{}
		for k := range at {
			sum := make([]float64, in.sections+1)
			for t, v := range at[k] {
				sum[t+1] = sum[t] + v
			}
			now.sum = append(now.sum, sum)
		}
		value, over := s.respond(now)
		if value > lowest {
			lowest, best.sum, since = value, now.sum, 0
		} else if since++; since == 20 {
			scale, since = scale/2, 0
		}
		norm := 0.0
		for k := range over {
			for t, g := range over[k] {
				if g > 0 || at[k][t] > 0 {
					norm += float64(g * g)
				}
			}
		}
		if norm == 0 || goal <= lowest || scale < 1e-6 {
			break
		}
		step := scale * (goal - value) / norm
		for k := range over {
			for t, g := range over[k] {
				at[k][t] = max(0, at[k][t]+float64(step*g))
			}
		}
		s.work += int64(len(s.buffers)*n+in.sections*n) / blocksPerStep
	}
	best.bound = max(0, int64(math.Ceil(lowest-1e-6*math.Abs(lowest)-1e-6))) // costs are whole numbers
	return best
}

// respond lets each buffer choose its memory. It returns what the choices cost less what the memories are worth, and by how much each
// section of each memory is wanted more than it has.
func (s *spreader) respond(p *spreadPrices) (value float64, over [][]float64) {
	in := s.in
	for k, m := range s.memories {
		diff := make([]float64, in.sections+1)
		if m.Capacity > 0 {
			room := float64(m.Capacity / in.unit)
			value -= float64(room * p.sum[k][in.sections])
			diff[0] = -room
		}
		over = append(over, diff)
	}
	for i := range s.buffers {
		where, least := -1, math.Inf(1)
		for k := range s.memories {
			if !s.may(int32(i), k) {
				continue
			}
			if c := float64(float64(k)*float64(s.spill(int32(i)))) + p.price(in, k, int32(i)); c < least {
				where, least = k, c
			}
		}
		if where < 0 {
			continue // it fits nowhere, which fill reports
		}
		value += least
		for _, x := range in.spans[i] {
			over[where][x.lo] += float64(x.high - x.low)
			over[where][x.hi] -= float64(x.high - x.low)
		}
	}
	for k, m := range s.memories {
		for t := 1; t < in.sections; t++ {
			over[k][t] += over[k][t-1]
		}
		over[k] = over[k][:in.sections]
		if m.Capacity == 0 {
			clear(over[k])
		}
	}
	return value, over
}

// greedyCost returns what it costs to fill memories in turn with what is cheapest to hold for what it saves.
func (s *spreader) greedyCost() float64 {
	flat := &spreadPrices{} // the same price everywhere
	for range s.memories {
		sum := make([]float64, s.in.sections+1)
		for t := range sum {
			sum[t] = float64(t)
		}
		flat.sum = append(flat.sum, sum)
	}
	rest := make([]int32, len(s.buffers))
	for i := range rest {
		rest[i] = int32(i)
	}
	total := 0.0
	for k, m := range s.memories {
		chosen := s.preference(k, rest, flat)
		if m.Capacity > 0 {
			chosen = s.choose(k, chosen, m.Capacity)
		}
		in := make([]bool, len(s.buffers))
		for _, i := range chosen {
			in[i] = true
			total += float64(k) * float64(s.spill(i))
		}
		var left []int32
		for _, i := range rest {
			if !in[i] {
				left = append(left, i)
			}
		}
		rest = left
	}
	for _, i := range rest {
		total += float64(len(s.memories)) * float64(s.spill(i))
	}
	return total
}
