package offset

// dives are the orders of short searches, in turn.
var dives = [...]string{"TAW", "TZ", "AT", "TWA", "WAT"}

const (
	diveTries = 10          // searches at a height before it is given up
	diveWork  = 30          // steps of one for each pair of buffers: about twice what a search takes that hardly goes back
	diveFrom  = 64          // the fewest buffers; fewer are searched through
	diveNear  = 1000        // heights are told apart by the goal divided by it
	diveFade  = 0.7         // what is left of a buffer's weight after one more search
	diveLimit = 300_000_000 // the most steps at first
	diveShare = 20          // later for each step of a long search
)

// diver looks for plans by many short searches. A depth-first search that went wrong near its beginning does not get there again in
// time; one that goes right hardly goes back at all. So each ends early, and the next tries those buffers first that had no
// room in the ones before, as squeaky wheel optimization does.
type diver struct {
	*component
	s       *search
	weights *weights
	turn    int
}

func newDiver(c *component, s *search) *diver {
	return &diver{component: c, s: s, weights: newWeights(len(c.in.size))}
}

// run looks at heights between the goal and the best so far with about limit steps of work. Each search has so many times the usual
// steps.
func (d *diver) run(limit, times int64) {
	n := int64(len(d.group))
	if n < diveFrom || d.best <= d.goal {
		return
	}
	d.s.weigh = d.weights
	d.s.keys.bias = d.weights.bias
	defer func() { d.s.weigh, d.s.keys.bias = nil, nil }()
	each, until := n*n*diveWork*times, d.work+limit
	fails := d.goal - 1 // nothing was found here
	for d.best-fails > d.goal/diveNear+1 && d.work < until {
		target := fails + (d.best-fails)/2
		if !d.reach(target, each, until) {
			fails = target
		}
	}
}

// reach looks for a plan at the height or below, and keeps it.
func (d *diver) reach(target, each, until int64) bool {
	for try := 0; try < diveTries && d.work < until; try++ {
		st := d.s.run(d.group, dives[d.turn%len(dives)], target, min(each, until-d.work))
		d.work += d.s.work
		if st != exhausted {
			if st == found {
				d.take(d.s)
			}
			return st == found
		}
		d.turn++
		d.weights.learn()
	}
	return false
}

// take keeps the plan that the search found.
func (c *component) take(s *search) {
	height := int64(0)
	for _, i := range c.group {
		height = max(height, s.at[i]+c.in.size[i])
	}
	c.keep(height, s.at, "search "+s.letters)
}

// weights tell by how much buffers move forward in the orders of a search.
type weights struct {
	hits []int64   // by buffer, how often it had no room in the present search
	bias []float64 // what its properties are multiplied by
}

func newWeights(n int) *weights {
	w := &weights{hits: make([]int64, n), bias: make([]float64, n)}
	for i := range w.bias {
		w.bias[i] = 1
	}
	return w
}

// learn moves the buffers forward that had no room in the last search, the more often the farther.
func (w *weights) learn() {
	most := int64(1)
	for _, h := range w.hits {
		most = max(most, h)
	}
	for i, h := range w.hits {
		w.bias[i] = 1 + float64((w.bias[i]-1)*diveFade) + float64(h)/float64(most)
		w.hits[i] = 0
	}
}
