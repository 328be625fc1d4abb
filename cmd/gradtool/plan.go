package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"gradtool/internal/size"
	"gradtool/memplan/offset"
)

func planVerb() verb {
	return verb{
		name: "plan", group: groupOther, maxArgs: 0,
		summary: "plan memory: give buffers their places in one arena",
		about: `
Only the planner on its own is offered so far: it reads a table of buffers, not a model.
--buffers reads CSV with the columns id, lower, upper (lifetime, half-open), size and optionally alignment, gaps,
hint and offset (where a buffer is fixed), as MiniMalloc does, and writes it with the offsets. The bound is the
most bytes that live at one time: no plan is lower.`,
		examples: []string{"gradtool plan --buffers live.csv -o plan.csv", "gradtool plan --buffers live.csv --capacity 1048576 -o plan.csv"},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "buffers", Usage: "read buffers from `FILE`, - for standard input"},
			&cli.StringFlag{Name: "capacity", Usage: "find a plan of at most `BYTES`, in place of the lowest"},
			&cli.Int64Flag{Name: "effort", Value: offset.DefaultBudget / 1_000_000, DefaultText: fmt.Sprint(offset.DefaultBudget / 1_000_000),
				Usage: "stop after about `N` million steps of search"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the plan to `FILE` in place of standard output"},
			reportFlag(),
		},
		run: runPlan,
	}
}

func runPlan(s *session) error {
	if s.String("buffers") == "" {
		return hint(usagef("nothing to plan"), "name a table of buffers with --buffers FILE")
	}
	return s.planBuffers()
}

// planBuffers assigns offsets to the buffers of a table.
func (s *session) planBuffers() error {
	if s.Int64("effort") < 1 {
		return usagef("--effort %d, want 1 or more", s.Int64("effort"))
	}
	var capacity int64
	if c := s.String("capacity"); c != "" {
		a, err := size.Parse(c)
		if err == nil && (a.IsShare || a.Bytes < 1) {
			err = fmt.Errorf("size %q: want a number of bytes, 1 or more", c)
		}
		if err != nil {
			return usagef("--capacity: %v", err)
		}
		capacity = a.Bytes
	}
	var t *offset.Table
	err := s.readFile(s.String("buffers"), func(r io.Reader) (err error) {
		t, err = offset.ReadCSV(r)
		return err
	})
	if err != nil {
		return err
	}
	begin := time.Now()
	r, err := offset.Solve(t.Buffers, capacity, s.Int64("effort")*1_000_000)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := offset.Check(t.Buffers, r.Plan, capacity); err != nil {
		return fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	out := target{path: s.String("output")}
	if out.path == "" {
		out.path = "-"
	}
	if err := s.save(out, func(w io.Writer) error { return t.Write(w, r.Offsets) }); err != nil {
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

// readFile has read read a file, or standard input for "-"; errors name the file.
func (s *session) readFile(path string, read func(io.Reader) error) error {
	if path == "-" {
		if err := read(bufio.NewReader(s.stdin)); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(bufio.NewReader(f)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
