package legal

import (
	"slices"
	"strings"
)

// Which clusters of fuse a kernel computes parts of is not what went into it once: statements go away, or are computed again where their
// results are read. So each statement knows its cluster, and what a kernel is named by follows from the statements that it has in the end.

// stamp notes the cluster of the node that a kernel was made for.
func stamp(k Kernel, cluster string) {
	if c, ok := k.(*Contract); ok {
		c.Part = cluster
	}
	n := statements(k)
	if n == nil {
		return
	}
	for i := range n.Body {
		n.Body[i].Part = cluster
	}
	for i := range n.Out {
		n.Out[i].Part = cluster
	}
}

// adds notes that the contraction computes what o did.
func (k *Contract) adds(o *Contract) {
	k.Part = join(k.Part, o.Part)
	if k.Post == nil {
		return
	}
	for i := range k.Post.Body {
		k.Post.Body[i].Part = join(k.Post.Body[i].Part, o.Post.Body[i].Part)
	}
	for i := range k.Post.Out {
		k.Post.Out[i].Part = join(k.Post.Out[i].Part, o.Post.Out[i].Part)
	}
}

// parts calls f with the cluster of each thing that a kernel computes, and whether it is computed elsewhere too.
func parts(k Kernel, f func(cluster string, again bool)) {
	each := func(joined string, again bool) {
		for c := range strings.SplitSeq(joined, plus) {
			if c != "" {
				f(c, again)
			}
		}
	}
	of := func(n *Nest) {
		if n == nil {
			return
		}
		for i := range n.Body {
			if n.Body[i].Op != ConstOp {
				each(n.Body[i].Part, n.Body[i].Again)
			}
		}
		for _, o := range n.Out {
			if o.Value < len(n.In) {
				each(o.Part, false)
			}
		}
	}
	switch k := k.(type) {
	case *Contract:
		each(k.Part, false)
	case *Walk:
		for _, s := range k.Scores {
			each(s.Part, false)
		}
		of(k.Body)
		for _, s := range k.Sinks {
			each(s.Part, false)
			of(s.Post)
		}
	case *Gather, *Scatter:
		each(k.Origin().Clusters, false)
	}
	of(statements(k))
}

// Attribute names each kernel by the clusters that it computes parts of. What is computed again somewhere counts only where the cluster has
// nothing else.
func (p *Program) Attribute() {
	first := map[string]bool{} // clusters with something that is not computed again
	for _, k := range p.Kernels {
		parts(k, func(c string, again bool) { first[c] = first[c] || !again })
	}
	for _, k := range p.Kernels {
		var list []string
		parts(k, func(c string, again bool) {
			if !(again && first[c]) && !slices.Contains(list, c) {
				list = append(list, c)
			}
		})
		k.Origin().Clusters = strings.Join(list, plus)
	}
}

// List returns the clusters that the kernel computes parts of.
func (o *Origin) List() []string {
	if o.Clusters == "" {
		return nil
	}
	return strings.Split(o.Clusters, plus)
}
