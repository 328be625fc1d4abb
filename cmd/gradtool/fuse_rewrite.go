package main

import (
	"fmt"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/graph/rewrite"
)

// rewritePass puts fewer operators in the place of several, as the target says.
func rewritePass(t *fuse.Target, res *rewrite.Result) pass.Pass {
	return pass.Pass{
		Name: "rewrite", Doc: "with --for and --frozen: fused standard operators; batch normalization inside convolutions",
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			info, err := c.Info(m)
			if err != nil {
				return false, err
			}
			t.Allow = c.Allow
			*res, err = fuse.Rewrite(m, info, *t)
			return res.Rewrites > 0, err
		},
	}
}

// rewriteFor rewrites m as --for and --frozen say, and reports whether anything was done.
func (s *session) rewriteFor(m *graph.Model) (bool, error) {
	version := m.Opset("")
	if s.IsSet("opset") {
		version = s.Int64("opset")
	}
	t := &fuse.Target{Standard: s.IsSet("for"), Opset: version, Explain: s.Bool("explain")}
	var err error
	if t.Frozen, err = s.frozenInits(m); err != nil {
		return false, err
	}
	if len(m.Functions) > 0 {
		s.notef("bodies of functions stay as they are; gradtool inline puts them in the place of their calls")
	}
	before := computing(m)
	var res rewrite.Result
	passes := []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), rewritePass(t, &res)}
	if err := s.runPasses(m, passes); err != nil {
		return false, err
	}
	what := count(res.Rewrites, "rewrite")
	if res.Rewrites > 0 || s.IsSet("opset") {
		asked := int64(0)
		if s.IsSet("opset") {
			asked = version
		}
		if err := s.runPasses(m, []pass.Pass{opsetPass(asked)}); err != nil {
			return false, err
		}
		removeUnread(m)
	}
	s.summaryf("%s -> %s, %s", count(before, "node"), count(computing(m), "node"), what)
	if s.Bool("explain") && !s.quiet {
		for _, c := range res.Counts {
			s.say(fmt.Sprintf("%6d  ", c.N), c.Rule.Name+": "+c.Rule.Doc)
		}
		for _, x := range res.Misses {
			s.say("near miss: ", x.String())
		}
	}
	rules := map[string]int{}
	for _, c := range res.Counts {
		rules[c.Rule.Name] = c.N
	}
	s.report.set("rewrites", rules)
	return res.Rewrites > 0 || s.IsSet("opset"), nil
}

// removeUnread removes the weights that rewriting left without readers.
func removeUnread(m *graph.Model) {
	m.Graph.RemoveInits(func(v *graph.Value) bool { return v.NumUses() == 0 && !v.IsInput() })
}
