package offset

import "slices"

// climbFactors are by how much the ranks of the buffers that stick out are multiplied, tried in turn until one helps.
var climbFactors = [...]float64{0.3, 0, 0.8, 0.55, 0.1, 0.9, 0.7, 0.2, 0.97, 0.4, 0.03, 0.99}

// climbLimit is the most steps that one climb takes: what helps does so soon.
const climbLimit = 200_000_000

// climb improves the order of a greedy plan by squeaky wheel optimization (Joslin and Clements, 1999): the buffers that
// stick out of the height that is wanted move forward in the order, and what results is kept if it is lower. The hill
// climber of TVM and Vela swaps pairs of an order instead; here all culprits move at once.
func (c *component) climb(g *greedy, order []int32, how fit, limit int64) {
	rank := make([]float64, len(c.in.size))
	for r, i := range order {
		rank[i] = float64(r)
	}
	next := make([]float64, len(rank))
	best, at := g.place(order, how), slices.Clone(g.at)
	spent := g.work
	for round, f := 0, 0; f < len(climbFactors) && best > c.goal && spent < limit; round++ {
		// Those above the middle between goal and height, or nearly all that are above the goal.
		above := c.goal + (best-c.goal)/int64(2+30*(round%2))
		copy(next, rank)
		for _, i := range order {
			if at[i]+c.in.size[i] > above {
				next[i] = float64(next[i] * climbFactors[f])
			}
		}
		try := slices.Clone(order)
		slices.SortStableFunc(try, func(a, b int32) int {
			switch {
			case next[a] < next[b]:
				return -1
			case next[a] > next[b]:
				return 1
			}
			return 0
		})
		height := g.place(try, how)
		spent += g.work
		f++
		if height < best {
			best, f = height, 0
			copy(at, g.at)
			rank, next, order = next, rank, try
		}
	}
	c.work += spent
	c.keep(best, at, "greedy, climbing")
}
