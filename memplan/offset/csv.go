package offset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Table is a list of buffers as MiniMalloc's CSV files have it. The header names the columns: id (or buffer,
// buffer_id), lower (start, begin), upper (or end, which is inclusive), size, and optionally alignment, hint, gaps,
// offset (where the buffer is fixed; empty or negative for a buffer that is not), memory (the one of several that it must lie in, if
// not empty) and spill (what it costs to have it one memory further). Gaps are "LOWER-UPPER", or
// "LOWER-UPPER@LOW:HIGH" if the bytes [LOW, HIGH) are kept, separated by blanks. Other columns are kept as they are.
type Table struct {
	Header  []string
	Rows    [][]string
	Buffers []Buffer
}

// maxErrors is how many bad rows are reported.
const maxErrors = 20

// columns maps the spellings of MiniMalloc's columns to one each.
var columns = []struct{ spelling, name string }{
	{"id", "id"}, {"buffer", "id"}, {"buffer_id", "id"},
	{"lower", "lower"}, {"start", "lower"}, {"begin", "lower"},
	{"upper", "upper"}, {"end", "upper"},
	{"size", "size"}, {"alignment", "alignment"}, {"hint", "hint"}, {"gaps", "gaps"}, {"offset", "offset"},
	{"memory", "memory"}, {"spill", "spill"},
}

// ReadCSV reads a table. Its buffers are valid in themselves; errors name the line.
func ReadCSV(r io.Reader) (*Table, error) {
	c := csv.NewReader(r)
	c.TrimLeadingSpace = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: no header, want id,lower,upper,size")
	}
	if err != nil {
		return nil, err
	}
	t := &Table{Header: header}
	at := map[string]int{}
	var inclusive int64
	for i, h := range header {
		h = strings.ToLower(strings.TrimSpace(h))
		k := slices.IndexFunc(columns, func(c struct{ spelling, name string }) bool { return c.spelling == h })
		if k < 0 {
			continue
		}
		if _, twice := at[columns[k].name]; twice {
			return nil, fmt.Errorf("line 1: two columns say %s", columns[k].name)
		}
		at[columns[k].name] = i
		if h == "end" {
			inclusive = 1
		}
	}
	for _, want := range []string{"id", "lower", "upper", "size"} {
		if _, ok := at[want]; !ok {
			return nil, fmt.Errorf("line 1: no column %s in %q", want, strings.Join(header, ","))
		}
	}
	var bad []error
	lines := map[string]int{}
	for len(bad) < maxErrors {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line, _ := c.FieldPos(0)
		if err != nil {
			bad = append(bad, err)
			break
		}
		b, err := parseRow(row, at, inclusive)
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", line, err))
			continue
		}
		if first, twice := lines[b.ID]; twice {
			bad = append(bad, fmt.Errorf("line %d: id %q is that of line %d", line, b.ID, first))
			continue
		}
		lines[b.ID] = line
		t.Rows = append(t.Rows, row)
		t.Buffers = append(t.Buffers, b)
	}
	if len(bad) == 0 {
		bad = append(bad, Validate(t.Buffers))
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	return t, nil
}

// parseRow reads one buffer; inclusive is added to ends.
func parseRow(row []string, at map[string]int, inclusive int64) (Buffer, error) {
	var err error
	text := func(name string) string {
		if i, ok := at[name]; ok {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	number := func(name, s string) int64 {
		v, perr := strconv.ParseInt(s, 10, 64)
		if perr != nil && err == nil {
			err = fmt.Errorf("%s: %q is not a number", name, s)
		}
		return v
	}
	place := func(name string) *int64 {
		s := text(name)
		if s == "" {
			return nil
		}
		if v := number(name, s); v >= 0 {
			return &v
		}
		return nil
	}
	b := Buffer{ID: text("id"), Lower: number("lower", text("lower")), Upper: number("upper", text("upper")) + inclusive,
		Size: number("size", text("size")), Fixed: place("offset"), Hint: place("hint"), Memory: text("memory")}
	if s := text("spill"); s != "" {
		c := number("spill", s)
		b.Spill = &c
	}
	if s := text("alignment"); s != "" {
		b.Align = number("alignment", s)
	}
	for _, s := range strings.Fields(text("gaps")) {
		life, window, kept := strings.Cut(s, "@")
		g := Gap{}
		if i := strings.LastIndexByte(life, '-'); i > 0 {
			g.Lower, g.Upper = number("gaps", life[:i]), number("gaps", life[i+1:])+inclusive
		} else if err == nil {
			err = fmt.Errorf("gaps: %q is not LOWER-UPPER", life)
		}
		if low, high, ok := strings.Cut(window, ":"); ok {
			g.Low, g.High = number("gaps", low), number("gaps", high)
		} else if kept && err == nil {
			err = fmt.Errorf("gaps: %q is not LOW:HIGH", window)
		}
		b.Gaps = append(b.Gaps, g)
	}
	return b, err
}

// Write writes the table with the offsets of a plan, in a column of that name; one that is there already is replaced.
func (t *Table) Write(w io.Writer, offsets []int64) error {
	return t.write(w, []column{{"offset", func(row int) string { return strconv.FormatInt(offsets[row], 10) }}})
}

// WriteSpread writes the table with the memories and offsets of a plan for several, in columns of these names.
func (t *Table) WriteSpread(w io.Writer, memories []Memory, s Spread) error {
	return t.write(w, []column{
		{"memory", func(row int) string { return memories[s.Memory[row]].Name }},
		{"offset", func(row int) string { return strconv.FormatInt(s.Offsets[row], 10) }},
	})
}

// column is a column to be written.
type column struct {
	name string
	text func(row int) string
}

// write writes the table with some columns, which take the places of those that have their names or go behind the others.
func (t *Table) write(w io.Writer, add []column) error {
	header := slices.Clone(t.Header)
	var at []int
	for _, a := range add {
		k := slices.IndexFunc(header, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), a.name) })
		if k < 0 {
			k, header = len(header), append(header, a.name)
		}
		at = append(at, k)
	}
	c := csv.NewWriter(w)
	if err := c.Write(header); err != nil {
		return err
	}
	for i, row := range t.Rows {
		out := make([]string, len(header))
		copy(out, row)
		for n, a := range add {
			out[at[n]] = a.text(i)
		}
		if err := c.Write(out); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
