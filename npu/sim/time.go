package sim

import (
	"fmt"
	"math"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
)

// Reason is what a unit does in a stretch of time.
type Reason uint8

// The reasons: the first NumQueues say that the unit waits for a signal of that queue.
const (
	Busy    Reason = Reason(isa.NumQueues) + iota
	Latency        // the next instruction is on its way: DMA latency, first weights, decoding
	Done           // no instruction is left
	NumReasons
)

func (r Reason) String() string {
	switch r {
	case Busy:
		return "busy"
	case Latency:
		return "latency"
	case Done:
		return "done"
	}
	return "waits for " + isa.Queue(r).String()
}

// Span is the time that an instruction occupies its unit, in cycles from the start.
type Span struct {
	Instr      int32 // index in the queue
	Node       int32
	Start, End float64
}

// NodeTime is what a source node costs.
type NodeTime struct {
	// Cycles is the time that counts for the node: of each stretch of time that of the matrix unit if it is busy, else of the
	// vector unit, else of the load, else of the store queue. The sum over nodes is the whole time.
	Cycles float64
	// Busy is the time of its instructions in each unit.
	Busy         [isa.NumQueues]float64
	Instructions [isa.NumQueues]int64
	MACs         int64
	Elements     int64
	Read         [isa.NumPurposes]int64 // bytes from DRAM
	Written      [isa.NumPurposes]int64
	BusBytes     int64 // DRAM bandwidth taken, whole bursts
}

// Timeline is the simulated time of a program.
type Timeline struct {
	Cycles float64
	Spans  [isa.NumQueues][]Span
	// Time is, for each queue, the cycles by reason.
	Time [isa.NumQueues][NumReasons]float64
	// Contended is, for each queue, the busy cycles lost to others that use the same memory.
	Contended [isa.NumQueues]float64
	Nodes     []NodeTime
	// Other is the cost of instructions without a node.
	Other NodeTime
	// Memory holds, for scratchpad and accumulator, the bytes in use in equal stretches of time.
	Scratchpad, Accumulator []int64
}

// job is an instruction between issue and the end of its streaming.
type job struct {
	index     int
	node      int32
	work      isa.Work
	ready     float64
	start     float64
	remaining float64
}

// unit is a queue and the unit behind it.
type unit struct {
	q         isa.Queue
	code      []isa.Instr
	next      int
	front     float64 // when the next instruction can be issued
	issued    int
	complete  int
	depth     int
	fifo      []job
	active    *job
	current   job
	draining  []float64 // completion times of jobs that have left the unit, in order
	signals   []pending
	blockedBy int // semaphore that a wait at the head needs, -1 for none
}

// pending is a signal that fires once a number of instructions is complete.
type pending struct {
	after int
	sem   int32
}

// clockwork is the state of Time.
type clockwork struct {
	m     *machine.Machine
	p     *isa.Program
	units [isa.NumQueues]unit
	sems  []int32
	owner []isa.Queue
	t     float64
	tl    *Timeline
}

// Time simulates the time of a program: each queue in order, with the latencies, bandwidths, bank conflicts and contention of
// the machine. It depends on no data. The program must pass Check.
//
// Each unit works on one instruction at a time; DMA latencies overlap up to the machine's number of outstanding transfers, and
// the first weights of a matmul and the decoding of the next instruction pass under the one before. Units that use the
// DRAM path or an on-chip memory at the same time share its bandwidth: if they ask for more than there is, all of them
// slow down in proportion.
func Time(p *isa.Program) (*Timeline, error) {
	if err := Check(p); err != nil {
		return nil, err
	}
	c := &clockwork{m: p.Machine, p: p, tl: &Timeline{Nodes: make([]NodeTime, len(p.Nodes))}}
	c.sems = make([]int32, p.Machine.Queues.Semaphores)
	c.owner = make([]isa.Queue, len(c.sems))
	for q := range c.units {
		u := &c.units[q]
		*u = unit{q: isa.Queue(q), code: p.Queues[q], depth: min(2, p.Machine.Queues.Depth), blockedBy: -1}
		if u.q == isa.Load || u.q == isa.Store {
			u.depth = min(p.Machine.DMA.Outstanding, p.Machine.Queues.Depth)
		}
		for i := range u.code {
			if u.code[i].Op == isa.OpSignal {
				c.owner[u.code[i].Args.(*isa.Sync).Sem] = u.q
			}
		}
	}
	for {
		c.settle()
		next, running := c.nextEvent()
		if !running {
			break
		}
		if math.IsInf(next, 1) {
			return nil, fmt.Errorf("deadlock at cycle %.0f: every queue waits for a signal that does not come", c.t)
		}
		c.advance(next)
	}
	c.tl.Cycles = c.t
	c.tl.usage(p)
	return c.tl, nil
}

// settle does everything that happens at the present time.
func (c *clockwork) settle() {
	for changed := true; changed; {
		changed = false
		for q := range c.units {
			u := &c.units[q]
			if u.active != nil && u.active.remaining <= 0 {
				c.finish(u)
				changed = true
			}
			for len(u.draining) > 0 && u.draining[0] <= c.t {
				u.draining = u.draining[1:]
				u.complete++
				changed = true
			}
			for len(u.signals) > 0 && u.signals[0].after <= u.complete {
				c.sems[u.signals[0].sem]++
				u.signals = u.signals[1:]
				changed = true
			}
			if c.issue(u) {
				changed = true
			}
			if u.active == nil && len(u.fifo) > 0 && u.fifo[0].ready <= c.t {
				u.current = u.fifo[0]
				u.fifo = u.fifo[1:]
				u.active = &u.current
				u.active.start = c.t
				u.active.remaining = float64(u.active.work.Cycles)
				changed = true
			}
		}
	}
}

// finish lets the job leave the unit.
func (c *clockwork) finish(u *unit) {
	j := u.active
	u.active = nil
	at := c.t + float64(j.work.Tail)
	if n := len(u.draining); n > 0 {
		at = max(at, u.draining[n-1])
	}
	u.draining = append(u.draining, at)
	c.tl.Spans[u.q] = append(c.tl.Spans[u.q], Span{Instr: int32(j.index), Node: j.node, Start: j.start, End: c.t})
	n := c.node(j.node)
	n.Busy[u.q] += c.t - j.start
	n.Instructions[u.q]++
	n.MACs += j.work.MACs
	n.Elements += j.work.Elements
	n.BusBytes += j.work.Busy
	purpose := isa.Activation
	switch a := u.code[j.index].Args.(type) {
	case *isa.DMA:
		purpose = a.Purpose
	case *isa.Gather:
		purpose = a.Purpose
	}
	n.Read[purpose] += j.work.Read
	n.Written[purpose] += j.work.Written
}

func (c *clockwork) node(i int32) *NodeTime {
	if i < 0 {
		return &c.tl.Other
	}
	return &c.tl.Nodes[i]
}

// issue takes instructions from the queue as far as they can go.
func (c *clockwork) issue(u *unit) bool {
	changed := false
	u.blockedBy = -1
	for u.next < len(u.code) && u.front <= c.t {
		in := &u.code[u.next]
		sync := float64(c.m.Queues.SyncCycles)
		switch in.Op {
		case isa.OpWait:
			a := in.Args.(*isa.Sync)
			if c.sems[a.Sem] < a.Value {
				u.blockedBy = int(a.Sem)
				return changed
			}
			u.front = c.t + sync
		case isa.OpSignal:
			u.signals = append(u.signals, pending{u.issued, in.Args.(*isa.Sync).Sem})
			u.front = c.t + sync
		default:
			if u.issued-u.complete >= u.depth {
				return changed
			}
			w := in.Work(c.m)
			u.fifo = append(u.fifo, job{index: u.next, node: in.Node, work: w, ready: c.t + float64(w.Head)})
			u.issued++
			u.front = c.t + 1
		}
		u.next++
		changed = true
	}
	return changed
}

// rates returns the speed of each unit's job, from 0 to 1.
func (c *clockwork) rates() [isa.NumQueues]float64 {
	var demand [3]float64
	var each [isa.NumQueues][3]float64
	var rate [isa.NumQueues]float64
	for q := range c.units {
		rate[q] = 1
		j := c.units[q].active
		if j == nil || j.work.Cycles == 0 {
			continue
		}
		full := float64(j.work.Cycles)
		each[q] = [3]float64{float64(j.work.Busy) / full, float64(j.work.Scratch) / full, float64(j.work.Accum) / full}
		for r := range demand {
			demand[r] += each[q][r]
		}
	}
	room := [3]float64{float64(c.m.DMA.BytesPerCycle), float64(c.m.Scratchpad.Banks), float64(c.m.Accumulator.Banks)}
	for q := range c.units {
		for r := range demand {
			if each[q][r] > 0 && demand[r] > room[r] {
				rate[q] = min(rate[q], room[r]/demand[r])
			}
		}
	}
	return rate
}

// nextEvent returns the time of the next event, and whether anything is left to do.
func (c *clockwork) nextEvent() (float64, bool) {
	next, running := math.Inf(1), false
	rate := c.rates()
	for q := range c.units {
		u := &c.units[q]
		if u.next < len(u.code) || len(u.fifo) > 0 || u.active != nil || len(u.draining) > 0 || len(u.signals) > 0 {
			running = true
		}
		switch {
		case u.active != nil:
			next = min(next, c.t+u.active.remaining/rate[q])
		case len(u.fifo) > 0:
			next = min(next, u.fifo[0].ready)
		}
		if len(u.draining) > 0 {
			next = min(next, u.draining[0])
		}
		if u.next < len(u.code) && u.front > c.t {
			next = min(next, u.front)
		}
	}
	return next, running
}

// advance moves time on and books it.
func (c *clockwork) advance(to float64) {
	dt := to - c.t
	rate := c.rates()
	var counts *NodeTime
	for _, q := range []isa.Queue{isa.Matrix, isa.Vector, isa.Load, isa.Store} {
		u := &c.units[q]
		reason := Latency
		switch {
		case u.active != nil:
			reason = Busy
			if counts == nil {
				counts = c.node(u.active.node)
			}
			c.tl.Contended[q] += dt * (1 - rate[q])
			u.active.remaining -= dt * rate[q]
			if u.active.remaining < 1e-6 {
				u.active.remaining = 0
			}
		case u.next == len(u.code) && len(u.fifo) == 0:
			reason = Done
		case len(u.fifo) == 0 && u.blockedBy >= 0:
			reason = Reason(c.owner[u.blockedBy])
		}
		c.tl.Time[q][reason] += dt
	}
	if counts == nil {
		for _, q := range []isa.Queue{isa.Load, isa.Store, isa.Matrix, isa.Vector} {
			if u := &c.units[q]; len(u.fifo) > 0 {
				counts = c.node(u.fifo[0].node)
				break
			}
		}
	}
	if counts == nil {
		for q := range c.units {
			if u := &c.units[q]; u.next < len(u.code) {
				counts = c.node(u.code[u.next].Node)
			}
		}
	}
	if counts == nil {
		counts = &c.tl.Other
	}
	counts.Cycles += dt
	c.t = to
}
