package remat

import (
	"math/rand/v2"
	"slices"
)

// fitter brings a sequence within a budget step by step, in the manner of the evictions of DTR (Kirisame et al.,
// "Dynamic Tensor Rematerialization", ICLR 2021), but with the whole sequence in view: as long as memory is above the
// budget somewhere, a result that lies idle there is dropped and computed again in front of its next reader, the one
// for which that costs least for each byte and step of the excess that goes away.
type fitter struct {
	g        *Graph
	budget   int64
	sequence []int32

	made   []int32 // by node, scratch: its latest computation
	uses   []int32 // steps that read the computation of a step, those of one after those of another, in order
	first  []int32 // by step, where its uses begin in uses; one more at the end
	memory []int64 // by step
	excess []int64 // by step, sum in front of it of what is above the budget
	lots   []int64 // by step, number of steps in front of it that are above the budget
	when   [][]int32

	options []option
	round   int32
	dropped []int32 // by node, the last round that dropped it
	needed  []int32 // by node, the last round that computed it again or read it for that
	cost    int64
	rng     *rand.Rand
	work    int64 // steps measured

	seen   []int32 // by node, the last query that entered it in a recipe
	query  int32
	recipe []int32 // what is computed again, operands first
}

// evictions is how many may be made in a row without memory being less in excess than before.
const evictions = 40

// recipeMost bounds how many computations one eviction adds.
const recipeMost = 64

// newFitter returns a fitter for sequences of g.
func newFitter(g *Graph) *fitter {
	n := len(g.Names)
	return &fitter{g: g, made: make([]int32, n), seen: make([]int32, n), when: make([][]int32, n), dropped: make([]int32, n), needed: make([]int32, n)}
}

// fit returns a sequence within the budget that starts from the given one and costs less than limit, nil if it finds none. With
// rng scores are off by up to a half, so that other choices are made than the best.
func (f *fitter) fit(sequence []int32, budget, limit int64, rng *rand.Rand) []int32 {
	n := len(f.g.Names)
	f.budget, f.sequence, f.cost, f.rng = budget, append(f.sequence[:0], sequence...), costOf(f.g, sequence), rng
	least, stuck := int64(unlimited), 0
	for stuck < evictions && len(f.sequence) < 4*n+16 && f.cost < limit {
		top := f.measure()
		if f.memory[top] <= budget {
			return slices.Clone(f.sequence)
		}
		if stuck++; f.excess[len(f.sequence)] < least {
			least, stuck = f.excess[len(f.sequence)], 0
		}
		if !f.evict(top) {
			return nil
		}
	}
	return nil
}

// sized returns a slice of n elements, in the memory of s if that is enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	return s[:n]
}

// measure fills in what is known of each step and returns the first one of the highest memory.
func (f *fitter) measure() int32 {
	g, n := f.g, len(f.sequence)
	f.work += int64(n)
	f.first, f.memory = sized(f.first, n+1), sized(f.memory, n)
	f.excess, f.lots = sized(f.excess, n+1), sized(f.lots, n+1)
	clear(f.first)
	for v := range f.when {
		f.when[v] = f.when[v][:0]
	}
	edges := 0
	for s, v := range f.sequence {
		for _, p := range g.Parents[v] {
			f.first[f.made[p]]++
			edges++
		}
		f.made[v] = int32(s)
		f.when[v] = append(f.when[v], int32(s))
	}
	f.uses = sized(f.uses, edges)
	sum := int32(0)
	for s, k := range f.first {
		sum += k
		f.first[s] = sum
	}
	for s := n - 1; s >= 0; s-- { // counted down, so that each list is in order
		v := f.sequence[s]
		when := f.when[v]
		if k := len(when) - 1; when[k] == int32(s) {
			f.when[v] = when[:k]
		}
		for _, p := range g.Parents[v] {
			made := f.when[p]
			c := made[len(made)-1]
			f.first[c]--
			f.uses[f.first[c]] = int32(s)
		}
	}
	for s, v := range f.sequence {
		f.when[v] = append(f.when[v], int32(s))
	}
	// Memory: each computation from its step to its last reader, taken over there or not.
	clear(f.memory)
	f.excess[n] = 0
	clear(f.excess[:n])
	for s, v := range f.sequence {
		f.excess[s] += g.Memory[v]
		f.excess[f.until(int32(s))+1] -= g.Memory[v]
	}
	var live int64
	top := int32(0)
	for s, v := range f.sequence {
		live += f.excess[s]
		f.memory[s] = live + g.extra(v) - f.taken(int32(s))
		if f.memory[s] > f.memory[top] {
			top = int32(s)
		}
	}
	var excess, lots int64
	for s, m := range f.memory {
		f.excess[s], f.lots[s] = excess, lots
		if m > f.budget {
			excess, lots = excess+m-f.budget, lots+1
		}
	}
	f.excess[n], f.lots[n] = excess, lots
	return top
}

// until returns the last step that uses the computation of step s.
func (f *fitter) until(s int32) int32 {
	if a, b := f.first[s], f.first[s+1]; b > a {
		return f.uses[b-1]
	}
	return s
}

// taken returns the memory that step s takes over.
func (f *fitter) taken(s int32) int64 {
	var most int64
	v := f.sequence[s]
	for _, p := range f.g.takes(v) {
		if c := f.before(p, s); f.until(c) == s {
			most = max(most, min(f.g.Memory[p], f.g.Memory[v]))
		}
	}
	return most
}

// before returns the last computation of v in front of step s, -1 for none.
func (f *fitter) before(v, s int32) int32 {
	when := f.when[v]
	k := len(when) - 1
	for k >= 0 && when[k] >= s {
		k--
	}
	if k < 0 {
		return -1
	}
	return when[k]
}

// option is a result that may be dropped at the step at hand.
type option struct {
	node, reader int32
	frees        int64
	score        float64
}

// evict drops the results that pay most of those idle at step top, until as much goes away there as is in excess. None
// of those dropped at a time plays a part in the recipe of another.
func (f *fitter) evict(top int32) bool {
	at := f.sequence[top]
	f.options = f.options[:0]
	for c := range top {
		v := f.sequence[c]
		m := f.g.Memory[v]
		if m == 0 || v == at || f.g.once(v) || f.until(c) <= top || slices.Contains(f.g.Parents[at], v) {
			continue
		}
		last, next := c, int32(-1)
		for _, u := range f.uses[f.first[c]:f.first[c+1]] {
			if u > top {
				next = u
				break
			}
			last = u
		}
		cost, kept, ok := f.price(v, next, top)
		if !ok || kept >= m {
			continue
		}
		gain := min(f.excess[next]-f.excess[last+1], (m-kept)*(f.lots[next]-f.lots[last+1]))
		score := float64(gain) / float64(cost+1)
		if f.rng != nil {
			score = float64(score * (0.5 + f.rng.Float64()))
		}
		f.options = append(f.options, option{v, next, m - kept, score})
	}
	slices.SortStableFunc(f.options, func(a, b option) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	f.round++
	excess := f.memory[top] - f.budget
	var added []insertion
	for _, o := range f.options {
		if excess <= 0 || len(added) == 1+len(f.g.Names)/batch {
			break
		}
		if f.dropped[o.node] == f.round || f.needed[o.node] == f.round {
			continue
		}
		cost, _, _ := f.price(o.node, o.reader, top)
		if f.clashes() {
			continue
		}
		for _, u := range f.recipe {
			f.needed[u] = f.round
			for _, p := range f.g.Parents[u] {
				f.needed[p] = f.round
			}
		}
		f.dropped[o.node] = f.round
		excess -= o.frees
		f.cost += cost
		added = append(added, insertion{o.reader, slices.Clone(f.recipe)})
	}
	f.insert(added)
	return len(added) > 0
}

// clashes reports whether the recipe at hand makes or reads a result that was dropped in this round.
func (f *fitter) clashes() bool {
	for _, u := range f.recipe {
		if f.dropped[u] == f.round {
			return true
		}
		for _, p := range f.g.Parents[u] {
			if f.dropped[p] == f.round {
				return true
			}
		}
	}
	return false
}

// batch is the number of nodes for which one more result is dropped at a time: few make better plans, many are faster.
const batch = 4000

// insertion is what comes into the sequence in front of a step.
type insertion struct {
	step   int32
	recipe []int32
}

func (f *fitter) insert(list []insertion) {
	slices.SortStableFunc(list, func(a, b insertion) int { return int(a.step - b.step) })
	out := make([]int32, 0, len(f.sequence)+len(list)*2)
	from := int32(0)
	for _, in := range list {
		out = append(out, f.sequence[from:in.step]...)
		out = append(out, in.recipe...)
		from = in.step
	}
	f.sequence = append(out, f.sequence[from:]...)
}

// price returns the cost of computing v in front of a step with all of its operands that are not at hand there, and the
// bytes that it keeps alive at step top because they are little or must not be computed again.
func (f *fitter) price(v, step, top int32) (cost, kept int64, ok bool) {
	f.query++
	f.recipe = f.recipe[:0]
	ok = f.gather(v, step, top, &cost, &kept)
	return cost, kept, ok
}

// light is the share of a result's memory up to which operands are kept for it and not computed again.
const light = 16

func (f *fitter) gather(v, step, top int32, cost, kept *int64) bool {
	f.seen[v] = f.query
	*cost += f.g.Cost[v]
	for _, p := range f.g.Parents[v] {
		if f.seen[p] == f.query {
			continue
		}
		c := f.before(p, step)
		if c < 0 {
			return false
		}
		until := f.until(c)
		if until >= step {
			f.seen[p] = f.query
			continue // at hand
		}
		if f.g.once(p) || f.g.Memory[p]*light <= f.g.Memory[v] {
			f.seen[p] = f.query
			if c < top && until < top {
				*kept += f.g.Memory[p]
			}
			continue
		}
		if len(f.recipe) >= recipeMost || !f.gather(p, step, top, cost, kept) {
			return false
		}
	}
	f.recipe = append(f.recipe, v)
	return len(f.recipe) <= recipeMost
}
