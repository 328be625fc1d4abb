package lower

import (
	"fmt"
	"slices"

	"gradtool/internal/size"
	"gradtool/npu/emit"
	"gradtool/npu/legal"
)

// Cluster is a cluster of fuse and the kernels that compute it.
type Cluster struct {
	Name    string `json:"name"`
	Kernels int    `json:"kernels"`
	// Together says that the kernels, if there are several, follow each other in the schedule, with what they hand each other on chip.
	Together bool     `json:"together,omitempty"`
	Parts    []Part   `json:"parts,omitempty"`   // where there are several
	Borders  []Border `json:"borders,omitempty"` // of each part but the first
}

// Part is a kernel that computes a part of a cluster.
type Part struct {
	Kernel int      `json:"kernel"` // place in the schedule
	Node   string   `json:"node"`
	Ops    string   `json:"operators"`
	With   []string `json:"with,omitempty"` // other clusters that it computes parts of
}

// Border is what lies between a part of a cluster and an earlier one, and why the two are not one kernel.
type Border struct {
	From   int    `json:"from"` // kernels
	To     int    `json:"to"`
	Buffer string `json:"buffer,omitempty"` // what one makes and the other reads, or both read
	Bytes  int64  `json:"bytes,omitempty"`
	Shared bool   `json:"shared,omitempty"`  // both read it
	OnChip bool   `json:"on_chip,omitempty"` // it stays on chip between the two
	Why    string `json:"why"`
}

// String says so in a line.
func (b Border) String() string {
	what := ""
	if b.Buffer != "" {
		way := "stored and loaded"
		switch {
		case b.OnChip:
			way = "stays on chip"
		case b.Shared:
			way = "read twice"
		}
		what = fmt.Sprintf("%q, %s, %s: ", b.Buffer, size.Bytes(b.Bytes), way)
	}
	return fmt.Sprintf("%d | %d: %s%s", b.From, b.To, what, b.Why)
}

// Clusters returns the clusters that the model's nodes are marked with, in the order in which they begin.
func (r *Result) Clusters() []Cluster {
	var out []Cluster
	for i, k := range r.Legal.Kernels {
		for _, name := range k.Origin().List() {
			at := slices.IndexFunc(out, func(c Cluster) bool { return c.Name == name })
			if at < 0 {
				at = len(out)
				out = append(out, Cluster{Name: name})
			}
			c := &out[at]
			c.Kernels++
			o := k.Origin()
			with := slices.DeleteFunc(o.List(), func(s string) bool { return s == name })
			c.Parts = append(c.Parts, Part{i, o.Node, o.Ops, with})
		}
	}
	for i := range out {
		if out[i].Kernels == 1 {
			out[i].Parts = nil
		}
		out[i].Together = r.together(out[i].Parts)
	}
	return out
}

// together reports whether nothing comes between kernels, but what runs in the time of them, and what one of them makes and another reads stays
// on chip.
func (r *Result) together(parts []Part) bool {
	if len(parts) == 0 {
		return false
	}
	made := map[*legal.Buffer]int{}
	for i, p := range parts {
		if i > 0 && r.steps[p.Kernel] > r.steps[parts[i-1].Kernel]+1 {
			return false
		}
		k := r.Legal.Kernels[p.Kernel]
		for _, a := range k.Reads() {
			if a == nil {
				continue
			}
			if from, ok := made[a.Buf]; ok && !r.stayed(a.Buf, from, p.Kernel) {
				return false
			}
		}
		for _, a := range k.Writes() {
			made[a.Buf] = p.Kernel
		}
	}
	return true
}

// Explained returns the clusters of a model that was lowered, with what lies between their kernels.
func (r *Result) Explained() []Cluster {
	e := emit.New(r.Program.Machine, nil)
	f := &legal.Fuser{Fits: e.Fits, FitsPost: e.FitsPost}
	f.Look(r.Legal)
	out := r.Clusters()
	for i := range out {
		c := &out[i]
		for j := 1; j < len(c.Parts); j++ {
			// The part before that hands it something, else one that reads the same, else the one right before.
			var best legal.Border
			from := -1
			for x := j - 1; x >= 0; x-- {
				b := f.Between(c.Parts[x].Kernel, c.Parts[j].Kernel)
				if from < 0 || b.Buf != nil && (best.Buf == nil || best.Shared && !b.Shared) {
					best, from = b, x
				}
			}
			p, q := c.Parts[from].Kernel, c.Parts[j].Kernel
			b := Border{From: p, To: q, Shared: best.Shared, Why: f.Why(p, q)}
			if best.Buf != nil {
				b.Buffer, b.Bytes, b.OnChip = best.Buf.Name, int64(best.Buf.Bytes()), r.stayed(best.Buf, p, q)
			}
			c.Borders = append(c.Borders, b)
		}
	}
	return out
}

// stayed reports whether a buffer lies in the scratchpad from kernel p to kernel q.
func (r *Result) stayed(b *legal.Buffer, p, q int) bool {
	return slices.ContainsFunc(r.stays, func(s stay) bool { return s.buf == b && s.from <= r.steps[p] && r.steps[q] <= s.to })
}
