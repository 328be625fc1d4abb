package prune

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// control inlines Ifs whose condition is known and Loops that run once or not at all. What trained weights decide is left
// to run time.
func (p *pruner) control() error {
	n := op.InlineIfsWhere(p.m, p.info, func(n *graph.Node) bool {
		return p.known(n.In[0]) != nil && p.allow("inline %s", label{n})
	})
	p.stats.Ifs += n
	if n > 0 {
		p.reinfer()
	}
	loops := 0
	for _, g := range roots(p.m) {
		loops += p.loops(g)
	}
	p.stats.Loops += loops
	if loops > 0 {
		p.reinfer()
	}
	return nil
}

// reinfer computes anew what is known of the model. Nodes that cannot work stay as they are: what inference knows of the
// others holds all the same.
func (p *pruner) reinfer() {
	p.info, _ = op.Infer(p.m)
	for _, f := range p.m.Functions {
		_ = p.info.Function(f)
	}
	p.trained = map[*graph.Value]bool{}
}
