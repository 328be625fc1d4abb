package profile

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"html"
	"io"
	"strings"

	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

//go:embed page.html
var page string

// HTML writes the timeline as a page that needs nothing else: a lane for each queue, use of the on-chip memories below, zoom
// and drag with the mouse.
func HTML(w io.Writer, p *isa.Program, tl *sim.Timeline) error {
	r := New(p, tl)
	type lane struct {
		Name  string      `json:"name"`
		Spans [][4]uint32 `json:"spans"` // start and length in cycles, node + 1, operation
	}
	data := struct {
		Cycles      float64  `json:"cycles"`
		Clock       int      `json:"clock"`
		Lanes       []lane   `json:"lanes"`
		Nodes       []string `json:"nodes"`
		Roles       []string `json:"roles"`
		Ops         []string `json:"ops"`
		Scratchpad  Memory   `json:"scratchpad"`
		Accumulator Memory   `json:"accumulator"`
		Total       Cost     `json:"total"`
	}{Cycles: tl.Cycles, Clock: p.Machine.ClockMHz, Nodes: []string{}, Roles: []string{}, Scratchpad: r.Scratchpad, Accumulator: r.Accumulator, Total: r.Total}
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		l := lane{Name: q.String(), Spans: [][4]uint32{}}
		for _, s := range tl.Spans[q] {
			l.Spans = append(l.Spans, [4]uint32{uint32(s.Start), uint32(max(s.End-s.Start, 1)), uint32(s.Node + 1), uint32(p.Queues[q][s.Instr].Op)})
		}
		data.Lanes = append(data.Lanes, l)
	}
	for _, n := range p.Nodes {
		label := n.Name + " (" + n.Op + ")"
		if n.Cluster != "" {
			label += " of " + n.Cluster
		}
		data.Nodes = append(data.Nodes, label)
		data.Roles = append(data.Roles, n.Role)
	}
	for op := range isa.NumOps {
		data.Ops = append(data.Ops, op.String())
	}
	text, err := json.Marshal(data) // escapes <, > and &
	if err != nil {
		return err
	}
	title := html.EscapeString(p.Name)
	b := bufio.NewWriter(w)
	if _, err := strings.NewReplacer("{{title}}", title, "{{machine}}", html.EscapeString(p.Machine.Name), "{{note}}", Note, "{{data}}", string(text)).WriteString(b, page); err != nil {
		return err
	}
	return b.Flush()
}
