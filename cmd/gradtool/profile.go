package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/npu/isa"
	"gradtool/npu/profile"
	"gradtool/npu/sim"
)

func profileVerb() verb {
	return verb{
		name: "profile", group: groupRead, args: "[PROGRAM|-]", maxArgs: 1,
		summary: "what the time of a program of an NPU goes into, in simulated cycles of its machine",
		about: `
Simulates the time, not the values, of a program that "gradtool lower" made, and prints what its nodes cost: cycles, use of
the array, DRAM traffic, place under the roofline, the unit that binds. These are simulated cycles of the described
machine, not a measurement. The matrix unit's node is charged where it is busy, else the vector unit's, else that of
a transfer, so that the nodes' cycles sum up to the whole.`,
		examples: []string{
			"gradtool profile step.npu",
			"gradtool profile --by cluster step.npu",
			"gradtool profile --by time step.npu",
			"gradtool profile step.npu --draw step.html --draw step.csv",
		},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "by", Value: "node", DefaultText: "node", Usage: "a row for each `node|cluster|op|role|time`: time is cut into 20 stretches"},
			&cli.IntFlag{Name: "top", Value: 20, DefaultText: "20", Usage: "show the `N` nodes, operators or clusters that take most time; 0 for all, in order of the program"},
			&cli.StringSliceFlag{Name: "draw", Usage: "write the timeline to `FILE`: .html, .json (Chrome trace), or .csv (a row for each node); repeatable"},
			jsonFlag(), reportFlag(),
		},
		run: runProfile,
	}
}

func runProfile(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	for _, file := range s.StringSlice("draw") {
		switch filepath.Ext(file) {
		case ".html", ".json", ".csv":
		default:
			return usagef("--draw %s: want a name that ends in .html, .json or .csv", file)
		}
	}
	by := s.String("by")
	switch by {
	case "node", "cluster", "op", "role", "time":
	default:
		return usagef("--by %q: want node, cluster, op, role or time", by)
	}
	if n := s.Int("top"); n < 0 {
		return usagef("--top %d: want a number of rows, or 0 for all", n)
	}
	if by == "role" || by == "time" {
		if err := s.idleFlags("with --by "+by+", which has a few rows", "top"); err != nil {
			return err
		}
	}
	p, err := s.readProgram(path)
	if err != nil {
		return err
	}
	tl, err := sim.Time(p)
	if err != nil {
		return err
	}
	r := profile.New(p, tl)
	for _, file := range s.StringSlice("draw") {
		if err := s.writeFile(file, false, func(w io.Writer) error { return drawProfile(w, file, p, tl, r) }); err != nil {
			return err
		}
	}
	s.report.set("profile", r)
	if s.Bool("json") {
		return s.print(s.report.encode)
	}
	return s.print(func(w io.Writer) error { return s.profileText(w, r, by) })
}

func drawProfile(w io.Writer, file string, p *isa.Program, tl *sim.Timeline, r *profile.Report) error {
	switch filepath.Ext(file) {
	case ".html":
		return profile.HTML(w, p, tl)
	case ".csv":
		return r.CSV(w)
	}
	return profile.Trace(w, p, tl)
}

// fraction writes a part of a whole as a percentage.
func fraction(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func (s *session) profileText(w io.Writer, r *profile.Report, by string) error {
	fmt.Fprintf(w, "%s at %d MHz: %s\n\n", r.Machine.Name, r.Machine.ClockMHz, r.Note)
	if by == "time" {
		if err := s.timeTable(w, r); err != nil {
			return err
		}
		return s.profileTotals(w, r)
	}
	rows := r.Clusters
	switch by {
	case "node":
		rows = r.Nodes
	case "op":
		rows = r.Operators
	case "role":
		rows = r.Roles
	}
	if n := s.Int("top"); by != "role" && n > 0 {
		rows = profile.Top(rows, n)
	}
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	columns := []table.Column{{Title: by}, {Title: "operator"}, num("cycles"), num("time"), num("matrix"), num("vector"), num("load"), num("store"),
		num("MACs"), num("array"), num("DRAM"), num("MAC/B"), num("roofline"), {Title: "roof", Fixed: true}, {Title: "binds", Fixed: true}}
	if by != "node" {
		columns = slices.Delete(columns, 1, 2)
	}
	t := table.New(columns...)
	row := func(c profile.Cost) {
		cy := func(x float64) string { return fmt.Sprintf("%.0f", x) }
		cells := []string{c.Name, c.Op, cy(c.Cycles), fraction(c.Share), cy(c.Matrix), cy(c.Vector), cy(c.Load), cy(c.Store), size.Count(c.MACs), fraction(c.Utilisation),
			size.Bytes(c.Read + c.Written), fmt.Sprintf("%.2f", c.Intensity), fraction(c.Achieved), c.Roof, c.Binds}
		if by != "node" {
			cells = slices.Delete(cells, 1, 2)
		}
		t.Row(cells...)
	}
	for _, c := range rows {
		row(c)
	}
	if by != "role" {
		for _, c := range r.Roles {
			c.Name = "all " + c.Name
			row(c)
		}
	}
	row(r.Total)
	if by == "cluster" && len(rows) == 0 {
		s.notef("no node of this program belongs to a cluster")
	}
	if err := s.writeTable(w, t); err != nil {
		return err
	}
	return s.profileTotals(w, r)
}

// timeTable shows what the units do and what is in use on chip, stretch by stretch.
func (s *session) timeTable(w io.Writer, r *profile.Report) error {
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	t := table.New(num("from"), num("to"), num("load"), num("store"), num("matrix"), num("vector"), num("scratchpad"), num("accumulator"))
	for _, x := range r.Time {
		part := func(busy float64) string { return fraction(busy / max(x.To-x.From, 1e-9)) }
		t.Row(fmt.Sprintf("%.0f", x.From), fmt.Sprintf("%.0f", x.To), part(x.Load), part(x.Store), part(x.Matrix), part(x.Vector), size.Bytes(x.Scratchpad), size.Bytes(x.Accumulator))
	}
	return s.writeTable(w, t)
}

// profileTotals prints what is about the whole program.
func (s *session) profileTotals(w io.Writer, r *profile.Report) error {
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	fmt.Fprintf(w, "\n%.0f cycles, %.3g ms; DRAM: %s read, %s written, %s allocated\n", r.Total.Cycles, 1e3*r.Seconds, size.Bytes(r.Total.Read), size.Bytes(r.Total.Written), size.Bytes(r.DRAM))
	fmt.Fprintf(w, "scratchpad: %s of %s at the peak; accumulator: %s of %s\n\n", size.Bytes(r.Scratchpad.Peak), size.Bytes(int64(r.Scratchpad.Bytes)), size.Bytes(r.Accumulator.Peak), size.Bytes(int64(r.Accumulator.Bytes)))
	u := table.New(table.Column{Title: "unit", Fixed: true}, num("busy"), num("contended"), table.Column{Title: "stands still"})
	for _, x := range r.Units {
		idle := ""
		for i, why := range x.Idle {
			if i > 0 {
				idle += ", "
			}
			idle += why.Why + " " + fraction(why.Cycles/max(r.Total.Cycles, 1))
		}
		u.Row(x.Name, fraction(x.Busy/max(r.Total.Cycles, 1)), fraction(x.Contended/max(r.Total.Cycles, 1)), idle)
	}
	if err := s.writeTable(w, u); err != nil {
		return err
	}
	if len(r.Traffic) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	columns := []table.Column{{Title: "DRAM traffic", Fixed: true}, num("read"), num("written")}
	for _, c := range r.Roles {
		columns = append(columns, num(c.Name))
	}
	d := table.New(columns...)
	for _, b := range r.Traffic {
		row := []string{b.Purpose, size.Bytes(b.Read), size.Bytes(b.Written)}
		for _, c := range r.Roles {
			n := int64(0)
			for _, x := range c.Traffic {
				if x.Purpose == b.Purpose {
					n = x.Read + x.Written
				}
			}
			row = append(row, size.Bytes(n))
		}
		d.Row(row...)
	}
	return s.writeTable(w, d)
}
