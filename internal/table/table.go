// Package table writes text tables: aligned for people, tab-separated for
// programs. Cells hold plain text; widths are counted in runes.
package table

import (
	"bufio"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Column describes one column.
type Column struct {
	Title string
	Right bool // align to the right, for numbers
	Fixed bool // never cut to make the table fit
}

// Table is a list of rows under columns.
type Table struct {
	columns []Column
	rows    [][]string
}

// New returns an empty table.
func New(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row. Missing cells are empty; cells beyond the last column are
// dropped.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Options says how a table is written.
type Options struct {
	// Width is the number of columns of the terminal to fit, 0 for no limit.
	Width int
	// Header wraps the finished header line, in bold for instance; nil leaves it.
	Header func(string) string
}

// gap separates columns.
const gap = "  "

// minCut is the width below which no column is cut.
const minCut = 4

// Write writes the table with aligned columns. If it is wider than the limit,
// its widest columns are cut, the cut marked by "…"; a table that cannot be
// made to fit is written too wide. Tabs, newlines and other control characters
// become blanks.
func (t *Table) Write(w io.Writer, o Options) error {
	head := make([]string, len(t.columns))
	for i, c := range t.columns {
		head[i] = c.Title
	}
	widths := make([]int, len(t.columns))
	measure := func(row []string) {
		for i, s := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	measure(head)
	for _, row := range t.rows {
		measure(row)
	}
	t.fit(widths, o.Width)

	b := bufio.NewWriter(w)
	line := t.line(head, widths)
	if o.Header != nil {
		line = o.Header(line)
	}
	b.WriteString(line + "\n")
	for _, row := range t.rows {
		b.WriteString(t.line(row, widths) + "\n")
	}
	return b.Flush()
}

// fit narrows the widest columns that may be cut, one rune at a time, from the
// right on a tie, until the line has limit runes.
func (t *Table) fit(widths []int, limit int) {
	if limit <= 0 {
		return
	}
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > limit; total-- {
		widest := -1
		for i, w := range widths {
			if !t.columns[i].Fixed && w > minCut && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// line returns one row without blanks at its end.
func (t *Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, s := range row {
		if i > 0 {
			b.WriteString(gap)
		}
		s = cut(printable(s), widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
		if t.columns[i].Right {
			s = pad + s
		} else {
			s += pad
		}
		b.WriteString(s)
	}
	return strings.TrimRight(b.String(), " ")
}

// cut shortens s to n runes, the last of them an ellipsis.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// WriteTSV writes a header line and one line per row, cells separated by tabs.
// In cells, backslash, tab, newline and carriage return are written \\, \t, \n,
// \r, so that every line has the same number of fields.
func (t *Table) WriteTSV(w io.Writer) error {
	esc := strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
	b := bufio.NewWriter(w)
	for i, c := range t.columns {
		if i > 0 {
			b.WriteByte('\t')
		}
		esc.WriteString(b, c.Title)
	}
	b.WriteByte('\n')
	for _, row := range t.rows {
		for i, s := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			esc.WriteString(b, s)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
