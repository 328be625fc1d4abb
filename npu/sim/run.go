// Package sim runs programs of the reference NPU: their values, with every hazard an error, and their time.
package sim

import (
	"context"
	"fmt"
	"strings"

	"gradtool/npu/isa"
)

// Options are choices of Run that do not change values.
type Options struct {
	Workers int // goroutines that a large instruction may use; 0: 1
}

// Result is what a run leaves.
type Result struct {
	// Outputs are the output tensors' elements in the types of the model, little-endian.
	Outputs map[string][]byte
}

// clock is, for each queue, the number of the last instruction known to be complete.
type clock [isa.NumQueues]uint32

func (c *clock) join(o *clock) {
	for i := range c {
		c[i] = max(c[i], o[i])
	}
}

// semaphore is a counter: what is known to be complete at each of its values.
type semaphore struct {
	owner isa.Queue
	at    []clock
}

// runner is the state of a run.
type runner struct {
	p       *isa.Program
	core    *isa.Core
	shadows [3]*shadow
	next    [isa.NumQueues]int // index of the next instruction
	clocks  [isa.NumQueues]clock
	sems    []semaphore
	effects []isa.Access
}

// Run executes a program. Inputs are given in the types of the model, little-endian; those with a default may be left out.
// Errors are programs that Check refuses, inputs that do not fit, hazards, reads of words that nothing has written, indices
// out of range, and deadlocks.
func Run(ctx context.Context, p *isa.Program, inputs map[string][]byte, opt Options) (*Result, error) {
	if err := Check(p); err != nil {
		return nil, err
	}
	r := &runner{p: p, core: isa.NewCore(p.Machine, p.DRAMBytes)}
	r.core.Workers = max(opt.Workers, 1)
	for space, bytes := range map[isa.Space]int64{isa.DRAM: p.DRAMBytes, isa.Scratch: int64(p.Machine.Scratchpad.Bytes), isa.Accum: int64(p.Machine.Accumulator.Bytes)} {
		r.shadows[space] = newShadow(bytes)
	}
	for q := range r.clocks {
		for o := range r.clocks[q] {
			r.clocks[q][o] = preset
		}
	}
	r.sems = make([]semaphore, p.Machine.Queues.Semaphores)
	for _, s := range p.Segments {
		r.preset(s.Addr, s.Data)
	}
	if err := r.feed(inputs); err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.outputs()
}

// preset puts bytes into DRAM before the program starts.
func (r *runner) preset(addr int64, data []byte) {
	if len(data) == 0 {
		return
	}
	r.core.LoadBytes(addr, data)
	r.shadows[isa.DRAM].visit(addr, addr+int64(len(data)), func(c *cell, _ int64) bool {
		c.w = stamp(0, preset)
		return true
	})
}

// run executes the queues in turn, each until it has to wait.
func (r *runner) run(ctx context.Context) error {
	for {
		progress, done := false, true
		for q := isa.Queue(0); q < isa.NumQueues; q++ {
			for r.next[q] < len(r.p.Queues[q]) {
				if err := ctx.Err(); err != nil {
					return err
				}
				in := &r.p.Queues[q][r.next[q]]
				ok, err := r.step(q, in)
				if err != nil {
					return fmt.Errorf("%s queue, instruction %d, %s%s: %w", q, r.next[q], in.Op, r.at(in), err)
				}
				if !ok {
					done = false
					break
				}
				progress = true
				r.next[q]++
			}
		}
		if done {
			return nil
		}
		if !progress {
			return r.deadlock()
		}
	}
}

// at names the source node of an instruction.
func (r *runner) at(in *isa.Instr) string {
	if in.Node < 0 {
		return ""
	}
	n := &r.p.Nodes[in.Node]
	return fmt.Sprintf(" of node %q (%s)", n.Name, n.Op)
}

// deadlock says what each queue waits for.
func (r *runner) deadlock() error {
	var b strings.Builder
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		if r.next[q] == len(r.p.Queues[q]) {
			continue
		}
		in := &r.p.Queues[q][r.next[q]]
		a := in.Args.(*isa.Sync)
		fmt.Fprintf(&b, "; %s queue, instruction %d%s waits for semaphore %d to reach %d, it is %d", q, r.next[q], r.at(in), a.Sem, a.Value, len(r.sems[a.Sem].at))
	}
	return fmt.Errorf("deadlock%s", b.String())
}

// step carries out an instruction; false says that it is a wait whose time has not come.
func (r *runner) step(q isa.Queue, in *isa.Instr) (bool, error) {
	seq := uint32(r.next[q]) + preset + 1
	switch in.Op {
	case isa.OpSignal:
		s := &r.sems[in.Args.(*isa.Sync).Sem]
		if len(s.at) > 0 && s.owner != q {
			return false, fmt.Errorf("semaphore %d is signalled by the %s queue already", in.Args.(*isa.Sync).Sem, s.owner)
		}
		s.owner = q
		now := r.clocks[q]
		now[q] = seq - 1
		s.at = append(s.at, now)
		return true, nil
	case isa.OpWait:
		a := in.Args.(*isa.Sync)
		s := &r.sems[a.Sem]
		if int(a.Value) > len(s.at) {
			return false, nil
		}
		if a.Value > 0 {
			r.clocks[q].join(&s.at[a.Value-1])
		}
		return true, nil
	}
	r.effects = in.Effects(r.effects[:0])
	for i := range r.effects {
		if e := &r.effects[i]; !e.Write {
			if err := r.touch(q, seq, e); err != nil {
				return false, err
			}
		}
	}
	if err := r.tables(q, seq, in, false); err != nil {
		return false, err
	}
	if err := r.core.Exec(in); err != nil {
		return false, err
	}
	for i := range r.effects {
		if e := &r.effects[i]; e.Write {
			if err := r.touch(q, seq, e); err != nil {
				return false, err
			}
		}
	}
	return true, r.tables(q, seq, in, true)
}

// touch checks and records an access.
func (r *runner) touch(q isa.Queue, seq uint32, e *isa.Access) error {
	var err error
	vc := &r.clocks[q]
	sh := r.shadows[e.Space]
	e.Runs(func(lo, hi int64) bool {
		return sh.visit(lo, hi, func(c *cell, addr int64) bool {
			if c.w == 0 && e.Table {
				return true // whether this row is touched is for tables to say
			}
			if c.w == 0 && !e.Write {
				err = fmt.Errorf("operand %s reads 0x%x of the %s, which nothing has written", e.Name, addr, e.Space)
				return false
			}
			if wq, ws := unstamp(c.w); c.w != 0 && wq != q && ws > vc[wq] {
				err = r.hazard(e, addr, "wrote", wq, ws)
				return false
			}
			if !e.Write {
				c.r[q] = seq
				return true
			}
			for o := range c.r {
				if isa.Queue(o) != q && c.r[o] > vc[o] {
					err = r.hazard(e, addr, "read", isa.Queue(o), c.r[o])
					return false
				}
			}
			*c = cell{w: stamp(q, seq)}
			return true
		})
	})
	return err
}

// hazard describes two accesses that no wait orders.
func (r *runner) hazard(e *isa.Access, addr int64, did string, q isa.Queue, seq uint32) error {
	does := "reads"
	if e.Write {
		does = "writes"
	}
	i := int(seq) - preset - 1
	other := &r.p.Queues[q][i]
	return fmt.Errorf("hazard: operand %s %s 0x%x of the %s, which instruction %d of the %s queue, %s%s, %s, and no wait orders the two",
		e.Name, does, addr, e.Space, i, q, other.Op, r.at(other), did)
}

// tables checks and records the rows of a table that an instruction really touches.
func (r *runner) tables(q isa.Queue, seq uint32, in *isa.Instr, write bool) error {
	var rows []isa.Access
	switch a := in.Args.(type) {
	case *isa.Gather:
		if !write || in.Op == isa.OpScatter {
			rows = a.Touched(r.core, in.Op)
		}
	case *isa.Rows:
		if !write || in.Op == isa.OpRowsPut {
			rows = a.Touched(r.core, in.Op)
		}
	}
	for i := range rows {
		if rows[i].Write != write {
			continue
		}
		if err := r.touch(q, seq, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}
