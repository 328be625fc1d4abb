package lower

import (
	"cmp"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/memplan/offset"
	"gradtool/npu/emit"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// stay is a time, in steps of the schedule, for which a buffer lies in the scratchpad.
type stay struct {
	buf      *legal.Buffer
	from, to int
	// load says that it begins with a load of the whole buffer, not with the kernel that makes it.
	load bool
	// inside says that the buffer is never in DRAM.
	inside bool
	at     emit.Resident
}

// event is a step that touches a buffer.
type event struct {
	step  int
	write bool
	reads int  // elements that are read, those read twice counted twice
	full  bool // one read takes all of it
}

// timeline is what happens to a buffer, in order.
type timeline struct {
	buf      *legal.Buffer
	events   []event
	accesses []*legal.Access
	dims     [][]int
	barred   bool // used in a way that needs it in DRAM
}

// maxGap is the longest time, in steps, that a buffer is kept for between two uses.
const maxGap = 24

// timelines returns what the steps do to buffers, by ID of the buffer.
func timelines(p *legal.Program, groups []group) []*timeline {
	out := make([]*timeline, len(p.Buffers))
	for i, b := range p.Buffers {
		out[i] = &timeline{buf: b, barred: b.Stored != graph.Undefined}
	}
	for step, g := range groups {
		for _, k := range append([]legal.Kernel{g.kernel}, g.others...) {
			touch := func(a *legal.Access, dims []int, write bool) {
				if a == nil {
					return
				}
				l := out[a.Buf.ID]
				l.accesses, l.dims = append(l.accesses, a), append(l.dims, dims)
				if n := len(l.events); n == 0 || l.events[n-1].step != step {
					l.events = append(l.events, event{step: step})
				}
				e := &l.events[len(l.events)-1]
				if write {
					e.write = true
					return
				}
				l.barred = l.barred || !a.Inside(dims) // a border is made by the transfer
				n := 1
				for i, d := range dims {
					if a.Varies()>>i&1 != 0 {
						n *= d
					}
				}
				e.reads += min(n, a.Buf.Len)
				e.full = e.full || n >= a.Buf.Len
			}
			nest := func(n *legal.Nest) {
				for _, a := range n.In {
					touch(a, n.Dims, false)
				}
				for _, o := range n.Out {
					touch(o.To, n.Dims, true)
				}
			}
			switch k := k.(type) {
			case *legal.Nest:
				nest(k)
			case *legal.Contract:
				touch(k.A, k.Dims, false)
				touch(k.B, k.Dims, false)
				if k.Post != nil {
					nest(k.Post)
				} else {
					touch(k.C, k.Dims, true)
				}
			case *legal.Walk:
				for _, s := range k.Scores {
					touch(s.A, k.Dims, false)
					touch(s.B, k.Dims, false)
				}
				nest(k.Body)
				for _, s := range k.Sinks {
					touch(s.B, k.Dims, false)
					nest(s.Post)
					for _, o := range s.Post.Out { // perhaps it is added up in memory
						l := out[o.To.Buf.ID]
						l.barred = l.barred || s.Plain()
					}
				}
			case *legal.Gather:
				out[k.Table.Buf.ID].barred = true
				touch(k.Table, []int{k.TableRows, k.Width}, false)
				touch(k.Index, []int{k.Rows}, false)
				touch(k.Out, []int{k.Rows, k.Width}, true)
			case *legal.Scatter:
				out[k.Table.Buf.ID].barred = true
				touch(k.Table, []int{k.TableRows, k.Width}, true)
				touch(k.Index, []int{k.Rows}, false)
				touch(k.From, []int{k.Rows, k.Width}, false)
			}
		}
	}
	return out
}

// choice is a stretch of a timeline, from event i to event j, for which the buffer could stay.
type choice struct {
	l       *timeline
	i, j    int
	gain    int // elements that are then not moved
	density float64
}

// choices returns what could be won, the best use of the memory first.
func choices(lines []*timeline, limit int) []choice {
	var out []choice
	for _, l := range lines {
		size := l.buf.Len
		if l.barred || len(l.events) < 2 || 4*size > limit {
			continue
		}
		add := func(i, j, gain int) {
			for x := i; x < j; x++ {
				if l.events[x+1].step-l.events[x].step > maxGap {
					return
				}
			}
			steps := l.events[j].step - l.events[i].step + 1
			out = append(out, choice{l, i, j, gain, float64(gain) / float64(size) / float64(steps)})
		}
		last := 0 // event that writes last
		all := 0
		for i, e := range l.events {
			if e.write {
				last = i
			}
			all += e.reads
		}
		if l.buf.Role == legal.Temp && l.events[0].write && len(l.events) > 2 {
			add(0, len(l.events)-1, all+size)
		}
		for i := last; i+1 < len(l.events); i++ {
			if i > last || !l.events[i].write || last == 0 {
				gain := l.events[i+1].reads
				if len(l.events) == 2 && l.buf.Role == legal.Temp && l.events[0].write {
					gain += size
				}
				add(i, i+1, gain)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b choice) int { return cmp.Compare(b.density, a.density) })
	return out
}

// reside decides which buffers stay in the scratchpad between the steps that use them. caps says how many bytes may be taken so in each
// step.
func reside(p *legal.Program, groups []group, m *machine.Machine, caps []int) ([]stay, error) {
	lines := timelines(p, groups)
	used := make([]int, len(groups))
	joined := map[*timeline][]bool{} // by gap between events
	for _, c := range choices(lines, slices.Max(append([]int{0}, caps...))) {
		gaps := joined[c.l]
		if gaps == nil {
			gaps = make([]bool, len(c.l.events)-1)
			joined[c.l] = gaps
		}
		if first := c.l.events[c.i]; !first.write && !first.full && (c.i == 0 || !gaps[c.i-1]) {
			continue // it would have to be loaded for this alone
		}
		r := emit.Rows(c.l.buf.Len, c.l.accesses, c.l.dims)
		bytes := roundUp(4*r.Words(c.l.buf.Len), m.DMA.Align)
		there := func(step int) bool {
			for i, g := range gaps {
				if g && c.l.events[i].step <= step && step <= c.l.events[i+1].step {
					return true
				}
			}
			return false
		}
		fits := true
		for s := c.l.events[c.i].step; s <= c.l.events[c.j].step && fits; s++ {
			fits = there(s) || used[s]+bytes <= caps[s]
		}
		if !fits {
			continue
		}
		for s := c.l.events[c.i].step; s <= c.l.events[c.j].step; s++ {
			if !there(s) {
				used[s] += bytes
			}
		}
		for x := c.i; x < c.j; x++ {
			gaps[x] = true
		}
	}
	var stays []stay
	for _, l := range lines {
		gaps := joined[l]
		for i := 0; i < len(gaps); i++ {
			if !gaps[i] {
				continue
			}
			j := i
			for j < len(gaps) && gaps[j] {
				j++
			}
			s := stay{buf: l.buf, from: l.events[i].step, to: l.events[j].step, load: !l.events[i].write, at: emit.Rows(l.buf.Len, l.accesses, l.dims)}
			s.inside = !s.load && i == 0 && j == len(gaps) && l.buf.Role == legal.Temp
			s.at.Through = !s.inside
			stays = append(stays, s)
			i = j
		}
	}
	return stays, place(stays, m)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// place gives each stay an address, from the end of the scratchpad on.
func place(stays []stay, m *machine.Machine) error {
	if len(stays) == 0 {
		return nil
	}
	var list []offset.Buffer
	for i, s := range stays {
		list = append(list, offset.Buffer{ID: fmt.Sprintf("s%d", i), Lower: int64(s.from), Upper: int64(s.to + 1),
			Size: int64(roundUp(4*s.at.Words(s.buf.Len), m.DMA.Align)), Align: int64(m.DMA.Align)})
	}
	r, err := offset.Solve(list, 0, placeEffort)
	if err != nil {
		return fmt.Errorf("places in the scratchpad: %w", err)
	}
	if r.Plan.Height > int64(m.Scratchpad.Bytes) {
		return fmt.Errorf("places in the scratchpad: %w", emit.ErrSpace)
	}
	for i := range stays {
		stays[i].at.At = m.Scratchpad.Bytes - int(r.Plan.Offsets[i]) - int(list[i].Size)
	}
	return nil
}
