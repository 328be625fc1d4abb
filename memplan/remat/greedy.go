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
	parents  table // what a node reads
	takes    table // what it may take over
	children table // who reads it
	budget   int64
	sequence []int32

	latest []int32 // by node, its latest computation
	prev   []int32 // by step, the computation of its node in front of it, -1 for none
	last   []int32 // by step, the last step that uses its result
	from   []int32 // scratch: computations that may be taken over, those of one step after those of another
	memory []int64 // by step
	excess []int64 // by step, sum in front of it of what is above the budget
	lots   []int64 // by step, number of steps in front of it that are above the budget

	options []option
	round   int32
	dropped []int32 // by node, the last round that dropped it
	needed  []int32 // by node, the last round that computed it again or read it for that
	reads   []int32 // by node, the last round whose step reads or makes it
	cost    int64
	rng     *rand.Rand
	work    int64 // steps measured

	seen   []int32 // by node, the last query that entered it in a recipe
	query  int32
	recipe []int32 // what is computed again, operands first
	wanted int     // how many that will be, as far as is known
	spare  []int32 // scratch: the next sequence
}

// evictions is how many may be made in a row without memory being less in excess than before.
const evictions = 40

// recipeMost bounds how many computations one eviction adds.
const recipeMost = 64

// newFitter returns a fitter for sequences of g.
func newFitter(g *Graph) *fitter {
	n := len(g.Names)
	return &fitter{g: g, parents: newTable(g.Parents, n), takes: newTable(g.Takes, n), children: newTable(g.children(), n),
		latest: make([]int32, n), seen: make([]int32, n), dropped: make([]int32, n), needed: make([]int32, n), reads: make([]int32, n)}
}

// table is a list for each node, all in one piece of memory.
type table struct{ from, list []int32 }

// newTable returns the lists of n nodes; nil stands for empty ones.
func newTable(lists [][]int32, n int) table {
	t := table{from: make([]int32, n+1)}
	for v, list := range lists {
		t.list = append(t.list, list...)
		t.from[v+1] = int32(len(t.list))
	}
	return t
}

func (t *table) of(v int32) []int32 { return t.list[t.from[v]:t.from[v+1]] }

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
	f.prev, f.last, f.memory = sized(f.prev, n), sized(f.last, n), sized(f.memory, n)
	f.excess, f.lots = sized(f.excess, n+1), sized(f.lots, n+1)
	f.from = f.from[:0]
	for v := range f.latest {
		f.latest[v] = -1
	}
	for k, v := range f.sequence {
		s := int32(k)
		for _, p := range f.parents.of(v) {
			f.last[f.latest[p]] = s
		}
		for _, p := range f.takes.of(v) {
			f.from = append(f.from, f.latest[p])
		}
		f.prev[s], f.last[s] = f.latest[v], s
		f.latest[v] = s
	}
	frees := f.excess // what goes away behind a step
	clear(frees)
	for s, until := range f.last {
		frees[until] += g.Memory[f.sequence[s]]
	}
	var live, excess, lots int64
	top, taken := int32(0), f.from
	for k, v := range f.sequence {
		s := int32(k)
		live += g.Memory[v]
		m := live + g.extra(v)
		if t := len(f.takes.of(v)); t > 0 {
			var most int64
			for _, c := range taken[:t] {
				if f.last[c] == s {
					most = max(most, min(g.Memory[f.sequence[c]], g.Memory[v]))
				}
			}
			m -= most
			taken = taken[t:]
		}
		live -= frees[s]
		f.memory[s] = m
		if m > f.memory[top] {
			top = s
		}
		f.excess[s], f.lots[s] = excess, lots
		if m > f.budget {
			excess, lots = excess+m-f.budget, lots+1
		}
	}
	f.excess[n], f.lots[n] = excess, lots
	return top
}

// before returns the last computation of v in front of step s, -1 for none.
func (f *fitter) before(v, s int32) int32 {
	c := f.latest[v]
	for c >= s {
		c = f.prev[c]
	}
	return c
}

// around returns the last step up to top that uses the computation c, itself if none does, and the first one behind it;
// there is one.
func (f *fitter) around(c, top int32) (last, next int32) {
	last, next = c, f.last[c]
	for _, u := range f.children.of(f.sequence[c]) {
		for s := f.latest[u]; s > last; s = f.prev[s] {
			if s <= top {
				last = s
				break
			}
			next = min(next, s)
		}
	}
	return last, next
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
	f.round++
	f.offer(top)
	excess := f.memory[top] - f.budget
	var added []insertion
	for excess > 0 && len(added) < 1+len(f.g.Names)/batch && len(f.options) > 0 {
		o := f.best()
		if f.dropped[o.node] == f.round || f.needed[o.node] == f.round {
			continue
		}
		cost, _, _ := f.price(o.node, o.reader, top)
		if f.clashes() {
			continue
		}
		for _, u := range f.recipe {
			f.needed[u] = f.round
			for _, p := range f.parents.of(u) {
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

// offer lists the results that may be dropped at step top.
func (f *fitter) offer(top int32) {
	at := f.sequence[top]
	f.reads[at] = f.round
	for _, p := range f.parents.of(at) {
		f.reads[p] = f.round
	}
	f.options = f.options[:0]
	for k, until := range f.last[:top] {
		if until <= top {
			continue
		}
		c := int32(k)
		v := f.sequence[c]
		m := f.g.Memory[v]
		if m == 0 || f.reads[v] == f.round || f.g.once(v) {
			continue
		}
		last, next := f.around(c, top)
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
}

// best takes the option with the highest score out of the list, the first one of equals.
func (f *fitter) best() option {
	at := 0
	for i := range f.options {
		if f.options[i].score > f.options[at].score {
			at = i
		}
	}
	o := f.options[at]
	f.options = slices.Delete(f.options, at, at+1)
	return o
}

// clashes reports whether the recipe at hand makes or reads a result that was dropped in this round.
func (f *fitter) clashes() bool {
	for _, u := range f.recipe {
		if f.dropped[u] == f.round {
			return true
		}
		for _, p := range f.parents.of(u) {
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
	out := f.spare[:0]
	from := int32(0)
	for _, in := range list {
		out = append(out, f.sequence[from:in.step]...)
		out = append(out, in.recipe...)
		from = in.step
	}
	f.sequence, f.spare = append(out, f.sequence[from:]...), f.sequence
}

// price returns the cost of computing v in front of a step with all of its operands that are not at hand there, and the
// bytes that it keeps alive at step top because they are little or must not be computed again.
func (f *fitter) price(v, step, top int32) (cost, kept int64, ok bool) {
	f.query++
	f.recipe, f.wanted = f.recipe[:0], 0
	ok = f.gather(v, step, top, &cost, &kept)
	return cost, kept, ok
}

// light is the share of a result's memory up to which operands are kept for it and not computed again.
const light = 16

func (f *fitter) gather(v, step, top int32, cost, kept *int64) bool {
	if f.wanted++; f.wanted > recipeMost {
		return false
	}
	f.seen[v] = f.query
	*cost += f.g.Cost[v]
	for _, p := range f.parents.of(v) {
		if f.seen[p] == f.query {
			continue
		}
		c := f.before(p, step)
		if c < 0 {
			return false
		}
		until := f.last[c]
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
		if !f.gather(p, step, top, cost, kept) {
			return false
		}
	}
	f.recipe = append(f.recipe, v)
	return true
}
