package profile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

// Trace writes the timeline in Chrome's trace format, which chrome://tracing and Perfetto open: a thread for each queue, a slice
// for each instruction, the bytes in use on chip as counters. A microsecond is a microsecond of the simulated machine.
func Trace(w io.Writer, p *isa.Program, tl *sim.Timeline) error {
	b := bufio.NewWriter(w)
	us := func(cycles float64) float64 { return cycles / float64(p.Machine.ClockMHz) }
	note, _ := json.Marshal(Note)
	name, _ := json.Marshal(p.Machine.Name)
	fmt.Fprintf(b, `{"displayTimeUnit":"ns","otherData":{"note":%s},"traceEvents":[`+"\n"+`{"ph":"M","pid":1,"name":"process_name","args":{"name":%s}}`, note, name)
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		fmt.Fprintf(b, ",\n"+`{"ph":"M","pid":1,"tid":%d,"name":"thread_name","args":{"name":"%s"}}`, q+1, q)
	}
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		for _, s := range tl.Spans[q] {
			op := p.Queues[q][s.Instr].Op.String()
			label, role := op, ""
			if s.Node >= 0 {
				n := &p.Nodes[s.Node]
				label, role = n.Name, n.Role
			}
			l, err := json.Marshal(label)
			if err != nil {
				return err
			}
			c, _ := json.Marshal(role)
			fmt.Fprintf(b, ",\n"+`{"ph":"X","pid":1,"tid":%d,"ts":%.3f,"dur":%.3f,"name":%s,"cat":%s,"args":{"op":"%s","instruction":%d}}`, q+1, us(s.Start), us(s.End-s.Start), l, c, op, s.Instr)
		}
	}
	for i := range tl.Scratchpad {
		at := us(tl.Cycles * float64(i) / float64(len(tl.Scratchpad)))
		fmt.Fprintf(b, ",\n"+`{"ph":"C","pid":1,"ts":%.3f,"name":"bytes on chip","args":{"scratchpad":%d,"accumulator":%d}}`, at, tl.Scratchpad[i], tl.Accumulator[i])
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}
