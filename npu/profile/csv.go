package profile

import (
	"encoding/csv"
	"io"
	"strconv"
)

// CSV writes a row for each node, in the order of the program, with a header.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{
		"name", "op", "role", "cluster", "cycles", "share", "load_cycles", "store_cycles", "matrix_cycles", "vector_cycles", "macs", "vector_elements",
		"dram_read_bytes", "dram_written_bytes", "utilisation", "macs_per_byte", "roofline_cycles", "roof", "roofline_achieved", "binds",
	}}
	for _, n := range append(r.Nodes[:len(r.Nodes):len(r.Nodes)], r.Total) {
		f := func(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
		d := func(x int64) string { return strconv.FormatInt(x, 10) }
		rows = append(rows, []string{
			n.Name, n.Op, n.Role, n.Cluster, f(n.Cycles), f(n.Share), f(n.Load), f(n.Store), f(n.Matrix), f(n.Vector), d(n.MACs), d(n.Elements),
			d(n.Read), d(n.Written), f(n.Utilisation), f(n.Intensity), f(n.Bound), n.Roof, f(n.Achieved), n.Binds,
		})
	}
	return c.WriteAll(rows)
}
