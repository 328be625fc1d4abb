package main

import (
	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
)

// recomputePass lets gradients compute again what they read of attentions.
func recomputePass(opt fuse.Options, res *[]fuse.Recomputed) pass.Pass {
	return pass.Pass{
		Name: "recompute", Doc: "with --recompute: let gradients compute again what they read of the forward part", Required: true, // its result is reported
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			opt.Allow = c.Allow
			*res = fuse.Recompute(m, opt)
			for _, r := range *res {
				if r.Why == "" {
					return true, nil
				}
			}
			return false, nil
		},
	}
}

// recompute does what --recompute says, and reports whether that changed anything.
func (s *session) recompute(m *graph.Model) (bool, error) {
	opt, err := s.fuseOptions()
	if err != nil {
		return false, err
	}
	var res []fuse.Recomputed
	if err := s.runPasses(m, []pass.Pass{pass.Sort(), recomputePass(opt, &res)}); err != nil {
		return false, err
	}
	type entry struct {
		Value string  `json:"value"`
		Nodes int     `json:"nodes"`
		Saved string  `json:"saved_bytes"`
		Work  float64 `json:"operations"`
		Why   string  `json:"left_alone,omitempty"`
	}
	list := []entry{}
	done, nodes, saved := 0, 0, 0.0
	for _, r := range res {
		list = append(list, entry{r.Value, r.Nodes, r.Saved.String(), r.Work, r.Why})
		if r.Why != "" {
			if s.Bool("explain") {
				s.notef("not computed again: %s: %s", r.Value, r.Why)
			}
			continue
		}
		done++
		nodes += r.Nodes
		saved += dimNumber(r.Saved, opt.Dims)
	}
	s.report.set("recomputed", list)
	switch {
	case done > 0:
		s.summaryf("the gradients of %s compute the probabilities again: %s, %s less to move", count(done, "attention"), count(nodes, "node"), size.Bytes(int64(saved)))
	case len(res) > 0:
		s.notef("no probabilities are computed again: %s", res[0].Why)
	default:
		s.notef("nothing to compute again: there is no attention whose probabilities a gradient reads (clusters are not looked into: inline them first)")
	}
	return done > 0, nil
}
