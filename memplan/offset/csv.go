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
// buffer_id), lower (start, begin), upper (or end, which is inclusive), size, and optionally alignment, hint, gaps and
// offset (where the buffer is fixed; empty or negative for a buffer that is not). Gaps are "LOWER-UPPER", or
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
		Size: number("size", text("size")), Fixed: place("offset"), Hint: place("hint")}
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
	c := csv.NewWriter(w)
	k := slices.IndexFunc(t.Header, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), "offset") })
	put := func(row []string, s string) []string {
		row = slices.Clone(row)
		if k < 0 {
			return append(row, s)
		}
		row[k] = s
		return row
	}
	header := t.Header
	if k < 0 {
		header = put(header, "offset")
	}
	if err := c.Write(header); err != nil {
		return err
	}
	for i, row := range t.Rows {
		if err := c.Write(put(row, strconv.FormatInt(offsets[i], 10))); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
