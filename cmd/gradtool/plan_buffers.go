package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gradtool/internal/size"
	"gradtool/memplan/offset"
)

// byteCount parses a flag's number of bytes, 1 or more.
func byteCount(flag, text string) (int64, error) {
	a, err := size.Parse(text)
	if err == nil && (a.IsShare || a.Bytes < 1) {
		err = fmt.Errorf("size %q: want a number of bytes, 1 or more", text)
	}
	if err != nil {
		return 0, usagef("--%s: %v", flag, err)
	}
	return a.Bytes, nil
}

// memories parses the flags --memory.
func (s *session) memories() ([]offset.Memory, error) {
	var list []offset.Memory
	for _, text := range s.StringSlice("memory") {
		name, bytes, sized := strings.Cut(text, "=")
		m := offset.Memory{Name: name}
		if sized {
			n, err := byteCount("memory "+name, bytes)
			if err != nil {
				return nil, err
			}
			m.Capacity = n
		}
		list = append(list, m)
	}
	if len(list) > 0 {
		if err := offset.CheckMemories(list); err != nil {
			return nil, hint(usagef("--memory: %v", err), "give each a name and a size, such as --memory sram=256KiB --memory dram")
		}
	}
	return list, nil
}

// planBuffers assigns offsets to the buffers of a table.
func (s *session) planBuffers() error {
	var capacity int64
	if c := s.String("capacity"); c != "" {
		var err error
		if capacity, err = byteCount("capacity", c); err != nil {
			return err
		}
	}
	memories, err := s.memories()
	if err != nil {
		return err
	}
	var t *offset.Table
	err = s.readFile(s.String("buffers"), func(r io.Reader) (err error) {
		t, err = offset.ReadCSV(r)
		return err
	})
	if err != nil {
		return err
	}
	if len(memories) > 0 {
		return s.spreadBuffers(t, memories)
	}
	begin := time.Now()
	r, err := offset.Solve(t.Buffers, capacity, s.effort(offset.DefaultBudget))
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := offset.Check(t.Buffers, r.Plan, capacity); err != nil {
		return fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	if err := s.save(s.dataTarget(), func(w io.Writer) error { return t.Write(w, r.Offsets) }); err != nil {
		return err
	}
	gap := 0.0
	if r.Bound > 0 {
		gap = 100 * (float64(r.Height)/float64(r.Bound) - 1)
	}
	s.report.set("buffers", len(t.Buffers))
	s.report.set("bound", r.Bound)
	s.report.set("peak", r.Height)
	s.report.set("gap_percent", gap)
	s.report.set("method", r.Method)
	s.report.set("work", r.Work)
	s.report.set("optimal", r.Optimal)
	s.summaryf("%s, bound %d, peak %d, gap %.3f %%, %s (%s)", count(len(t.Buffers), "buffer"), r.Bound, r.Height, gap, size.Duration(took), r.Method)
	return nil
}

// spreadBuffers puts the buffers of a table in several memories.
func (s *session) spreadBuffers(t *offset.Table, memories []offset.Memory) error {
	begin := time.Now()
	r, err := offset.SpreadOver(t.Buffers, memories, s.effort(offset.DefaultBudget))
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := offset.CheckSpread(t.Buffers, memories, r); err != nil {
		return fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	if err := s.save(s.dataTarget(), func(w io.Writer) error { return t.WriteSpread(w, memories, r) }); err != nil {
		return err
	}
	var parts []string
	list := []map[string]any{}
	for k, m := range memories {
		text := fmt.Sprintf("%s %d", m.Name, r.Heights[k])
		if m.Capacity > 0 {
			text += fmt.Sprintf(" of %d", m.Capacity)
		}
		parts = append(parts, text)
		list = append(list, map[string]any{"name": m.Name, "capacity_bytes": m.Capacity, "bytes": r.Heights[k]})
	}
	s.report.set("buffers", len(t.Buffers))
	s.report.set("memories", list)
	s.report.set("spill_cost", r.Cost)
	s.report.set("spill_bound", r.Bound)
	s.report.set("work", r.Work)
	s.summaryf("%s: %s; spilling costs %d, at least %d; %s", count(len(t.Buffers), "buffer"), strings.Join(parts, ", "), r.Cost, r.Bound, size.Duration(took))
	return nil
}
