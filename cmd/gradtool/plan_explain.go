package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/memplan"
)

// Layout of an explanation.
const (
	chartWidth    = 100
	chartHeight   = 16
	explainedRows = 25
	smallHolding  = 1000 // buffers of less than the peak divided by this are only counted
)

// explainPlan prints what a plan needs and why.
func (s *session) explainPlan(m *memplan.Made, p *memplan.Plan) error {
	var b bytes.Buffer
	share := func(n int64) string {
		if m.Given == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(m.Given))
	}
	num := table.Column{Right: true, Fixed: true}
	t := table.New(table.Column{Title: "memory", Fixed: true}, num, num, table.Column{})
	weights, inputs := m.Beside()
	for _, r := range []struct {
		what  string
		bytes int64
		note  string
	}{
		{"own order", m.Given, "every value has bytes of its own until its last reader has run"},
		{"own order, shared", m.Shared, "views share bytes, results are written over operands that die"},
		{"planned order", m.Peak, fmt.Sprintf("%s in place, %s written over inputs", count(len(p.InPlace), "result"), count(len(p.State), "result"))},
		{"bound", p.Bound, fmt.Sprintf("the most bytes alive at one time, each value rounded up to %d", p.Align)},
		{"arena", p.Arena, fmt.Sprintf("%.2f %% above the bound (%s)", percent(p.Arena, p.Bound), m.Method)},
		{"floor", m.Floor, "no order needs less"},
	} {
		if r.what == "arena" && len(m.Memories) > 0 {
			for _, k := range m.Memories {
				note := "no limit"
				if k.Capacity > 0 {
					note = "of " + size.Bytes(k.Capacity)
				}
				t.Row("in "+k.Name, size.Bytes(k.Bytes), share(k.Bytes), fmt.Sprintf("%s; nodes move %s there", note, size.Bytes(k.Moved)))
			}
			t.Row("spilled", size.Bytes(m.Spilled), "", fmt.Sprintf("at least %s; bytes moved, once for each memory behind the first", size.Bytes(m.SpilledBound)))
			continue
		}
		t.Row(r.what, size.Bytes(r.bytes), share(r.bytes), r.note)
	}
	t.Row("beside: weights", size.Bytes(weights), "", "initializers and constants")
	t.Row("beside: inputs", size.Bytes(inputs), "", "")
	if err := t.Write(&b, table.Options{}); err != nil {
		return err
	}
	if len(m.Order) > 0 {
		if err := s.explainPeak(&b, m); err != nil {
			return err
		}
	}
	s.progress.Done()
	_, err := s.messages.Write(b.Bytes())
	return err
}

// explainPeak writes what is alive at the peak, and how memory is used over time.
func (s *session) explainPeak(b *bytes.Buffer, m *memplan.Made) error {
	fmt.Fprintf(b, "\npeak: %s alive at step %d of %d, node %s\n", size.Bytes(m.Peak), m.At, len(m.Order), m.Order[m.At].Label())
	t := table.New(table.Column{Title: "bytes", Right: true, Fixed: true}, table.Column{Title: "value", Fixed: true}, table.Column{Title: "category", Fixed: true}, table.Column{Title: "alive because"})
	var small, rest int64
	left := 0
	for i, h := range m.Holdings(m.At) {
		if i >= explainedRows || h.Buffer.Bytes*smallHolding < m.Peak {
			left++
			rest += h.Buffer.Bytes
			small = max(small, h.Buffer.Bytes)
			continue
		}
		t.Row(size.Bytes(h.Buffer.Bytes), h.Name(), h.Category().String(), h.Why)
	}
	if err := t.Write(b, table.Options{}); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(b, "and %s of at most %s, %s together\n", count(left, "buffer"), size.Bytes(small), size.Bytes(rest))
	}
	if c, ok := m.Cheapest(m.At); ok {
		fmt.Fprintf(b, "next saving: %s: %s less here for %s FLOPs more\n", c.Text, size.Bytes(c.Bytes), size.Count(int64(c.FLOPs)))
	} else {
		b.WriteString("next saving: nothing alive at the peak can be computed again from what is alive later\n")
	}
	b.WriteString("\n")
	return m.Chart(b, chartWidth, chartHeight)
}

// drawing returns the form of --draw that a file's name ends in.
func drawing(path string) (func(m *memplan.Made, title string, w io.Writer) error, bool) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		return func(m *memplan.Made, _ string, w io.Writer) error { return m.SVG(w) }, true
	case ".html":
		return func(m *memplan.Made, title string, w io.Writer) error { return m.HTML(w, title) }, true
	case ".csv":
		return func(m *memplan.Made, _ string, w io.Writer) error { return m.CSV(w) }, true
	case ".json":
		return func(m *memplan.Made, _ string, w io.Writer) error { return m.Trace(w) }, true
	case ".txt":
		return func(m *memplan.Made, _ string, w io.Writer) error { return m.Chart(w, chartWidth, chartHeight) }, true
	}
	return nil, false
}

// checkDrawings refuses files of --draw whose form is not known.
func (s *session) checkDrawings() error {
	for _, path := range s.StringSlice("draw") {
		if _, ok := drawing(path); !ok {
			return usagef("--draw %s: want a name that ends in .svg, .html, .csv, .json or .txt", path)
		}
	}
	return nil
}

// drawPlan writes what --draw asks for.
func (s *session) drawPlan(m *memplan.Made, model string) error {
	title := "memory plan"
	if model != "-" {
		title += " of " + filepath.Base(model)
	}
	for _, path := range s.StringSlice("draw") {
		draw, _ := drawing(path)
		if err := s.writeFile(path, false, func(w io.Writer) error { return draw(m, title, w) }); err != nil {
			return err
		}
	}
	return nil
}
