package lower

import (
	"fmt"

	"gradtool/graph"
	"gradtool/npu/emit"
	"gradtool/npu/legal"
)

// fitting makes the kernels of m, each of which fits on chip, and names them by the clusters that they compute parts of.
func fitting(m *graph.Model, opt Options) (*legal.Program, error) {
	p, err := kernels(m, opt)
	if err != nil || len(p.Fallbacks) > 0 {
		return p, err
	}
	p.Cut(emit.New(opt.Machine, nil).FitsAlone)
	if err := p.Verify(); err != nil {
		return nil, fmt.Errorf("internal error in cutting kernels: %w", err)
	}
	p.Attribute()
	return p, nil
}

// Marks returns for each kernel that m is computed by the marks of the nodes that went into it, those in the metadata entry
// [graph.MetaCluster]. A model of which a part cannot be lowered is an error.
func Marks(m *graph.Model, opt Options) ([][]string, error) {
	p, err := fitting(m, opt)
	if err != nil {
		return nil, err
	}
	if n := len(p.Fallbacks); n > 0 {
		f := p.Fallbacks[0]
		return nil, fmt.Errorf("%d nodes cannot be lowered, the first: %s: %s", n, f.Node, f.Reason)
	}
	var out [][]string
	for _, k := range p.Kernels {
		out = append(out, k.Origin().List())
	}
	return out, nil
}
