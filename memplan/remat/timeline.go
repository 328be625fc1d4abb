package remat

import "slices"

// timeline is a sequence that can be changed a little at a small cost: steps stand in numbered slots, most of them
// empty, and memory per slot is in a tree of maxima to which ranges are added.
type timeline struct {
	g        *Graph
	children [][]int32
	slots    int32
	at       []int32 // by slot, the node, -1 for none
	when     [][]int32
	until    [][]int32 // by node and computation, the last slot that reads it, its own if none does
	peak     []int64   // tree: highest memory below a node, with its own addend
	add      []int64
	steps    int32
	cost     int64
	work     int64
	log      []change
	dups     []int32 // nodes that are computed more than once
	dupAt    []int32 // where they are in dups, -1
	taken    []int64 // by slot, the memory that its step takes over from an operand
	room     int     // slots for each step, at least
	delta    []int64 // scratch
}

// change is one that can be taken back.
type change struct {
	node, slot int32
	added      bool
}

// empty lowers the memory of slots without a step below everything.
const empty = int64(1) << 60

// newTimeline lays out a sequence.
func newTimeline(g *Graph, sequence []int32) *timeline {
	t := &timeline{g: g, children: g.children(), room: 10}
	t.makeLists()
	t.layOut(sequence)
	return t
}

// makeLists makes what there is for each node.
func (t *timeline) makeLists() {
	n := len(t.g.Names)
	t.when, t.until, t.dupAt = make([][]int32, n), make([][]int32, n), make([]int32, n)
}

// sequence returns the steps.
func (t *timeline) sequence() []int32 {
	list := make([]int32, 0, t.steps)
	for _, v := range t.at {
		if v >= 0 {
			list = append(list, v)
		}
	}
	return list
}

// layOut sets the sequence anew, with room around every step.
func (t *timeline) layOut(sequence []int32) {
	t.slots = 256
	for int(t.slots) < t.room*len(sequence) {
		t.slots *= 2
	}
	t.at = sized(t.at, int(t.slots))
	for k := range t.at {
		t.at[k] = -1
	}
	for v := range t.when {
		t.when[v] = t.when[v][:0]
		t.until[v] = t.until[v][:0]
		t.dupAt[v] = -1
	}
	t.dups = t.dups[:0]
	t.steps, t.cost = int32(len(sequence)), 0
	t.delta = sized(t.delta, int(t.slots)+1)
	delta := t.delta
	clear(delta)
	for k, v := range sequence {
		slot := int32((2*int64(k) + 1) * int64(t.slots) / int64(2*len(sequence)))
		t.at[slot] = v
		for _, p := range t.g.Parents[v] {
			t.until[p][len(t.until[p])-1] = slot
		}
		t.when[v] = append(t.when[v], slot)
		t.until[v] = append(t.until[v], slot)
		t.cost += t.g.Cost[v]
	}
	for v, when := range t.when {
		for k, slot := range when {
			delta[slot] += t.g.Memory[v]
			delta[t.until[v][k]+1] -= t.g.Memory[v]
		}
		if len(when) > 1 {
			t.mark(int32(v))
		}
	}
	t.taken, t.peak, t.add = sized(t.taken, int(t.slots)), sized(t.peak, 2*int(t.slots)), sized(t.add, int(t.slots))
	clear(t.add)
	var live int64
	for k := range t.slots {
		live += delta[k]
		t.taken[k] = t.takeover(k)
		t.peak[t.slots+k] = live - t.taken[k]
		if v := t.at[k]; v >= 0 {
			t.peak[t.slots+k] += t.g.extra(v)
		}
		if t.at[k] < 0 {
			t.peak[t.slots+k] -= empty
		}
	}
	for k := t.slots - 1; k > 0; k-- {
		t.peak[k] = max(t.peak[2*k], t.peak[2*k+1])
	}
	t.log = t.log[:0]
	t.work += int64(t.slots)
}

func (t *timeline) mark(v int32) {
	t.dupAt[v] = int32(len(t.dups))
	t.dups = append(t.dups, v)
}

func (t *timeline) unmark(v int32) {
	k, last := t.dupAt[v], t.dups[len(t.dups)-1]
	t.dups[k], t.dupAt[last] = last, k
	t.dups = t.dups[:len(t.dups)-1]
	t.dupAt[v] = -1
}

// lift adds x to the memory of slots [lo, hi].
func (t *timeline) lift(lo, hi int32, x int64) {
	if lo > hi || x == 0 {
		return
	}
	n := t.slots
	l, r := lo+n, hi+n+1
	l0, r0 := l, r-1
	for ; l < r; l, r = l>>1, r>>1 {
		if l&1 == 1 {
			t.peak[l] += x
			if l < n {
				t.add[l] += x
			}
			l++
		}
		if r&1 == 1 {
			r--
			t.peak[r] += x
			if r < n {
				t.add[r] += x
			}
		}
	}
	t.pull(l0)
	t.pull(r0)
	t.work++
}

// pull mends the maxima above a leaf.
func (t *timeline) pull(k int32) {
	for k >>= 1; k > 0; k >>= 1 {
		t.peak[k] = max(t.peak[2*k], t.peak[2*k+1]) + t.add[k]
	}
}

// fill marks a slot as holding a step, or not.
func (t *timeline) fill(slot, v int32) {
	t.at[slot] = v
	k := slot + t.slots
	if v >= 0 {
		t.peak[k] += empty
		t.steps++
	} else {
		t.peak[k] -= empty
		t.steps--
	}
	t.pull(k)
}

// before returns the index of the last computation of v before slot, -1 if there is none.
func (t *timeline) before(v, slot int32) int {
	when := t.when[v]
	k := len(when) - 1
	for k >= 0 && when[k] >= slot {
		k--
	}
	return k
}

// lastRead returns the last slot before next that reads v, or else from, where v is computed.
func (t *timeline) lastRead(v, from, next int32) int32 {
	last := from
	for _, c := range t.children[v] {
		when := t.when[c]
		for k := len(when) - 1; k >= 0; k-- {
			if when[k] < next {
				last = max(last, when[k])
				break
			}
		}
	}
	t.work += int64(len(t.children[v])) / 4
	return last
}

// ready reports whether all that v reads has been computed before slot.
func (t *timeline) ready(v, slot int32) bool {
	for _, p := range t.g.Parents[v] {
		if t.when[p][0] >= slot {
			return false
		}
	}
	return true
}

// takeover returns the memory that the step at slot takes over.
func (t *timeline) takeover(slot int32) int64 {
	v := t.at[slot]
	if v < 0 {
		return 0
	}
	var most int64
	for _, p := range t.g.takes(v) {
		if k := t.before(p, slot); k >= 0 && t.until[p][k] == slot {
			most = max(most, min(t.g.Memory[p], t.g.Memory[v]))
		}
	}
	return most
}

// retake mends what the step at slot takes over.
func (t *timeline) retake(slot int32) {
	if t.g.Takes == nil {
		return
	}
	if m := t.takeover(slot); m != t.taken[slot] {
		t.lift(slot, slot, t.taken[slot]-m)
		t.taken[slot] = m
	}
}

// insert computes v in an empty slot, for which it is ready.
func (t *timeline) insert(v, slot int32) {
	t.put(v, slot)
	t.log = append(t.log, change{v, slot, true})
}

func (t *timeline) put(v, slot int32) {
	m := t.g.Memory[v]
	for _, p := range t.g.Parents[v] {
		k := t.before(p, slot)
		if u := t.until[p][k]; u < slot {
			t.lift(u+1, slot, t.g.Memory[p])
			t.until[p][k] = slot
			t.retake(u)
		}
	}
	k := t.before(v, slot)
	last, mid := slot, int32(-1)
	if k >= 0 && t.until[v][k] > slot {
		last = t.until[v][k]
		mid = t.lastRead(v, t.when[v][k], slot)
		t.until[v][k] = mid
		t.lift(mid+1, slot-1, -m)
	} else {
		t.lift(slot, slot, m)
	}
	t.when[v] = slices.Insert(t.when[v], k+1, slot)
	t.until[v] = slices.Insert(t.until[v], k+1, last)
	if len(t.when[v]) == 2 {
		t.mark(v)
	}
	t.fill(slot, v)
	t.lift(slot, slot, t.g.extra(v))
	t.retake(slot)
	if mid >= 0 {
		t.retake(mid)
	}
	t.cost += t.g.Cost[v]
	t.work += 2
}

// remove takes the computation of v in slot away; an earlier one must be there if this one is read.
func (t *timeline) remove(v, slot int32) {
	t.drop(v, slot)
	t.log = append(t.log, change{v, slot, false})
}

func (t *timeline) drop(v, slot int32) {
	m := t.g.Memory[v]
	k := t.before(v, slot) + 1
	last := t.until[v][k]
	t.when[v] = slices.Delete(t.when[v], k, k+1)
	t.until[v] = slices.Delete(t.until[v], k, k+1)
	if len(t.when[v]) == 1 {
		t.unmark(v)
	}
	t.fill(slot, -1)
	t.lift(slot, slot, -t.g.extra(v))
	t.retake(slot)
	if last > slot {
		mid := t.until[v][k-1]
		t.lift(mid+1, slot-1, m)
		t.until[v][k-1] = last
		t.retake(mid)
	} else {
		t.lift(slot, slot, -m)
	}
	for _, p := range t.g.Parents[v] {
		k := t.before(p, slot)
		if t.until[p][k] != slot {
			continue
		}
		next := t.slots
		if k+1 < len(t.when[p]) {
			next = t.when[p][k+1]
		}
		mid := t.lastRead(p, t.when[p][k], next)
		t.lift(mid+1, slot, -t.g.Memory[p])
		t.until[p][k] = mid
		t.retake(mid)
	}
	t.cost -= t.g.Cost[v]
	t.work += 2
}

// removable reports whether computation k of v can go.
func (t *timeline) removable(v int32, k int) bool {
	return len(t.when[v]) > 1 && (k > 0 || t.until[v][0] == t.when[v][0])
}

// sweep removes computations of the operands of v that nobody reads.
func (t *timeline) sweep(v int32, depth int) {
	for _, p := range t.g.Parents[v] {
		if len(t.when[p]) < 2 {
			continue
		}
		for k := len(t.when[p]) - 1; k >= 0; k-- {
			if t.until[p][k] == t.when[p][k] && len(t.when[p]) > 1 {
				t.remove(p, t.when[p][k])
				if depth > 0 {
					t.sweep(p, depth-1)
				}
				break
			}
		}
	}
}

// undo takes back all changes since the log was emptied.
func (t *timeline) undo() {
	for k := len(t.log) - 1; k >= 0; k-- {
		if c := t.log[k]; c.added {
			t.drop(c.node, c.slot)
		} else {
			t.put(c.node, c.slot)
		}
	}
	t.log = t.log[:0]
}

// over returns the sum over all steps of the memory above budget.
func (t *timeline) over(budget int64) int64 { return t.overBelow(1, budget) }

func (t *timeline) overBelow(k int32, budget int64) int64 {
	if t.peak[k] <= budget {
		return 0
	}
	t.work++
	if k >= t.slots {
		return t.peak[k] - budget
	}
	budget -= t.add[k]
	return t.overBelow(2*k, budget) + t.overBelow(2*k+1, budget)
}

// above returns a slot whose memory is above budget, one of those chosen by coin, -1 if there is none.
func (t *timeline) above(budget int64, coin func() bool) int32 {
	if t.peak[1] <= budget {
		return -1
	}
	k := int32(1)
	for k < t.slots {
		budget -= t.add[k]
		a, b := t.peak[2*k] > budget, t.peak[2*k+1] > budget
		k *= 2
		if b && (!a || coin()) {
			k++
		}
	}
	return k - t.slots
}
