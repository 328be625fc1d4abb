// Package token turns one list of instructions that is right when executed one after the other into the streams of the
// queues, with the signals and waits that keep it right when the queues run at the same time.
package token

import (
	"fmt"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
)

// shifts are, for each memory, the sizes in bits of the pages by which accesses are looked up.
var shifts = [...]uint{isa.DRAM: 12, isa.Scratch: 8, isa.Accum: 8}

// users are the queues whose instructions touch a memory.
var users = [...][]isa.Queue{
	isa.DRAM:    {isa.Load, isa.Store},
	isa.Scratch: {isa.Load, isa.Store, isa.Matrix, isa.Vector},
	isa.Accum:   {isa.Load, isa.Store, isa.Matrix, isa.Vector},
}

// clock counts completed instructions of each queue.
type clock [isa.NumQueues]int32

// record is an access of an instruction that later ones may have to wait for.
type record struct {
	acc   isa.Access
	queue isa.Queue
	seq   int32 // number of the instruction in its queue, from 1
	seen  int   // number of the last look-up that compared it
}

// inserter is the state of Insert.
type inserter struct {
	clocks [isa.NumQueues]clock   // what each queue knows to be complete
	after  [isa.NumQueues][]clock // by queue and instruction: what is known once it is complete
	pages  [3][][]*record         // by memory and page
	known  [3]clock               // by memory: what all other queues that use it know of each queue
	looks  int
	waits  [isa.NumQueues][]need // in order of the waiting instruction
	signal [isa.NumQueues]map[int32]bool
}

// need says that an instruction waits for another of another queue.
type need struct {
	before int32 // number of the waiting instruction in its queue, from 1
	queue  isa.Queue
	seq    int32
	node   int32
}

// Insert splits a list into queues. Semaphore q is signalled by queue q. A wait is inserted where an instruction touches words
// that an earlier instruction of another queue touches, one of them writing, unless earlier waits imply that one. The list
// must hold no signals or waits; each instruction is checked against the machine.
func Insert(m *machine.Machine, dramBytes int64, list []isa.Instr) ([isa.NumQueues][]isa.Instr, error) {
	var out [isa.NumQueues][]isa.Instr
	x := &inserter{}
	for space, bytes := range [...]int64{isa.DRAM: dramBytes, isa.Scratch: int64(m.Scratchpad.Bytes), isa.Accum: int64(m.Accumulator.Bytes)} {
		x.pages[space] = make([][]*record, bytes>>shifts[space]+1)
	}
	for q := range x.signal {
		x.signal[q] = map[int32]bool{}
	}
	var streams [isa.NumQueues][]isa.Instr
	var effects []isa.Access
	for i := range list {
		in := &list[i]
		d := in.Op.Intrinsic()
		if d == nil || d.Any {
			return out, fmt.Errorf("instruction %d, %s: not one that does something", i, in.Op)
		}
		if err := in.Check(m, d.Queue, dramBytes); err != nil {
			return out, fmt.Errorf("instruction %d, %s: %w", i, in.Text(), err)
		}
		effects = in.Effects(effects[:0])
		x.add(d.Queue, in.Node, effects)
		streams[d.Queue] = append(streams[d.Queue], *in)
	}
	return x.streams(streams), nil
}

// add finds what the next instruction of queue q waits for and records its accesses.
func (x *inserter) add(q isa.Queue, node int32, effects []isa.Access) {
	seq := int32(len(x.after[q]) + 1)
	var want clock
	for i := range effects {
		x.find(q, &effects[i], &want)
	}
	for p := range want {
		if want[p] <= x.clocks[q][p] {
			continue
		}
		implied := false
		for o := range want {
			if o != p && want[o] > x.clocks[q][o] && x.after[o][want[o]-1][p] >= want[p] {
				implied = true
			}
		}
		if !implied {
			x.waits[q] = append(x.waits[q], need{seq, isa.Queue(p), want[p], node})
			x.signal[p][want[p]] = true
		}
	}
	for p := range want {
		if want[p] > 0 {
			x.clocks[q].join(&x.after[p][want[p]-1])
		}
	}
	x.clocks[q][q] = seq
	x.after[q] = append(x.after[q], x.clocks[q])
	x.learn()
	for i := range effects {
		if e := &effects[i]; e.Write {
			x.record(q, seq, e)
		}
	}
	for i := range effects {
		if e := &effects[i]; !e.Write {
			x.record(q, seq, e)
		}
	}
}

func (c *clock) join(o *clock) {
	for i := range c {
		c[i] = max(c[i], o[i])
	}
}

// learn works out which instructions no queue can have to wait for.
func (x *inserter) learn() {
	for space, queues := range users {
		for _, p := range queues {
			least := int32(1<<31 - 1)
			for _, q := range queues {
				if q != p {
					least = min(least, x.clocks[q][p])
				}
			}
			x.known[space][p] = least
		}
	}
}

// maxRuns is the number of runs up to which only their pages are looked at, and not all between the first and the last.
const maxRuns = 4096

// eachPage calls f for each page that an access touches, once or, for pages with several runs, a few times; whole says that
// one run covers the page.
func eachPage(e *isa.Access, f func(page int64, whole bool)) {
	shift := shifts[e.Space]
	if _, n := e.Run(); n > maxRuns {
		for page := e.Addr >> shift; page <= (e.End()-1)>>shift; page++ {
			f(page, false)
		}
		return
	}
	last := int64(-1)
	e.Runs(func(lo, hi int64) bool {
		for page := lo >> shift; page <= (hi-1)>>shift; page++ {
			whole := lo <= page<<shift && hi >= (page+1)<<shift
			if page != last || whole {
				f(page, whole)
			}
			last = page
		}
		return true
	})
}

// find raises want to the last instruction of each other queue that conflicts with an access.
func (x *inserter) find(q isa.Queue, e *isa.Access, want *clock) {
	x.looks++
	pages := x.pages[e.Space]
	known := &x.known[e.Space]
	eachPage(e, func(page int64, whole bool) {
		recs := pages[page]
		kept := recs[:0]
		for _, r := range recs {
			if r.seq <= known[r.queue] {
				continue
			}
			kept = append(kept, r)
			if r.seen == x.looks || r.queue == q || r.seq <= max(want[r.queue], x.clocks[q][r.queue]) || !e.Write && !r.acc.Write {
				continue
			}
			r.seen = x.looks
			if r.acc.Overlaps(e) {
				want[r.queue] = r.seq
			}
		}
		if len(kept) < len(recs) {
			clear(recs[len(kept):])
			pages[page] = kept
		}
	})
}

// record notes an access and drops, page by page, those that it makes irrelevant: a write, being ordered after all accesses that
// it covers, stands for them; a read stands for earlier reads of the same queue that it covers.
func (x *inserter) record(q isa.Queue, seq int32, e *isa.Access) {
	r := &record{acc: *e, queue: q, seq: seq}
	pages := x.pages[e.Space]
	eachPage(e, func(page int64, whole bool) {
		recs := pages[page]
		kept := recs[:0]
		for _, o := range recs {
			if o == r {
				continue // noted by an earlier run
			}
			stands := e.Write && (o.seq != seq || o.queue != q) || o.queue == q && !o.acc.Write && !e.Write
			if stands && (whole || e.Covers(&o.acc)) {
				continue
			}
			kept = append(kept, o)
		}
		clear(recs[len(kept):])
		pages[page] = append(kept, r)
	})
}

// streams puts the signals and waits into the queues.
func (x *inserter) streams(plain [isa.NumQueues][]isa.Instr) [isa.NumQueues][]isa.Instr {
	var out [isa.NumQueues][]isa.Instr
	var count [isa.NumQueues]map[int32]int32 // by queue and instruction that is signalled: the count of the semaphore
	for q := range plain {
		count[q] = map[int32]int32{}
		n := int32(0)
		for seq := int32(1); seq <= int32(len(plain[q])); seq++ {
			if x.signal[q][seq] {
				n++
				count[q][seq] = n
			}
		}
	}
	for q := range plain {
		waits := x.waits[q]
		s := make([]isa.Instr, 0, len(plain[q])+len(waits)+len(count[q]))
		for i, in := range plain[q] {
			seq := int32(i + 1)
			for ; len(waits) > 0 && waits[0].before == seq; waits = waits[1:] {
				w := waits[0]
				s = append(s, isa.Instr{Op: isa.OpWait, Node: w.node, Args: &isa.Sync{Sem: int32(w.queue), Value: count[w.queue][w.seq]}})
			}
			s = append(s, in)
			if x.signal[q][seq] {
				s = append(s, isa.Instr{Op: isa.OpSignal, Node: in.Node, Args: &isa.Sync{Sem: int32(q)}})
			}
		}
		out[q] = s
	}
	return out
}
