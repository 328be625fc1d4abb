package profile

import (
	"encoding/csv"
	"io"
	"strconv"

	"gradtool/npu/isa"
)

// CSV writes a row for each node, in the order of the program, then for each cluster, operator and role, and the total, with a header. The
// first column says which of them a row is.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{
		"kind", "name", "op", "role", "cluster", "cycles", "share", "load_cycles", "store_cycles", "matrix_cycles", "vector_cycles", "macs", "vector_elements",
		"dram_read_bytes", "dram_written_bytes", "utilisation", "macs_per_byte", "roofline_cycles", "roof", "roofline_achieved", "binds",
	}
	for i := range isa.NumPurposes {
		head = append(head, i.String()+"_read_bytes", i.String()+"_written_bytes")
	}
	rows := [][]string{head}
	for _, g := range []struct {
		kind string
		list []Cost
	}{{"node", r.Nodes}, {"cluster", r.Clusters}, {"operator", r.Operators}, {"role", r.Roles}, {"total", []Cost{r.Total}}} {
		for _, n := range g.list {
			f := func(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
			d := func(x int64) string { return strconv.FormatInt(x, 10) }
			row := []string{
				g.kind, n.Name, n.Op, n.Role, n.Cluster, f(n.Cycles), f(n.Share), f(n.Load), f(n.Store), f(n.Matrix), f(n.Vector), d(n.MACs), d(n.Elements),
				d(n.Read), d(n.Written), f(n.Utilisation), f(n.Intensity), f(n.Bound), n.Roof, f(n.Achieved), n.Binds,
			}
			for i := range isa.NumPurposes {
				var b Bytes
				for _, t := range n.Traffic {
					if t.Purpose == i.String() {
						b = t
					}
				}
				row = append(row, d(b.Read), d(b.Written))
			}
			rows = append(rows, row)
		}
	}
	return c.WriteAll(rows)
}
