package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/fuse"
	"gradtool/graph/pass"
)

func passesVerb() verb {
	return verb{
		name: "passes", group: groupRead, maxArgs: 0,
		summary: "list the passes of each stage and the constraints on their order",
		about: `
A stage runs its passes in the order listed; after each that changed something the result is verified.
--print-after, --dump-passes and --time-passes of the stages show what they do.`,
		examples: []string{"gradtool passes", "gradtool grad --time-passes model.onnx -o out.onnx"},
		flags:    []cli.Flag{jsonFlag()},
		run:      listPasses,
	}
}

// stagePasses returns the passes of each stage.
func stagePasses() []struct {
	stage  string
	passes []pass.Pass
} {
	return []struct {
		stage  string
		passes []pass.Pass
	}{
		{"grad", gradPasses(nil, 0, nil, nil)},
		{"prune", prunePasses(nil)},
		{"fuse", []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), chunkPass(fuse.Chunking{}, nil), recomputePass(fuse.Options{}, nil), rewritePass(nil, nil), opsetPass(0), fusePass(fuse.Options{}, nil, nil)}},
		{"inline", []pass.Pass{pass.Sort(), unfusePass(nil), pass.Inline(nil)}},
	}
}

func listPasses(s *session) error {
	type entry struct {
		Stage string `json:"stage"`
		Pass  string `json:"pass"`
		Doc   string `json:"doc"`
	}
	type constraint struct {
		Before string `json:"before"`
		After  string `json:"after"`
		Why    string `json:"why"`
	}
	var list []entry
	var rules []constraint
	for _, st := range stagePasses() {
		for _, p := range st.passes {
			list = append(list, entry{st.stage, p.Name, p.Doc})
		}
	}
	for _, c := range order() {
		rules = append(rules, constraint{c.Before, c.After, c.Why})
	}
	if s.Bool("json") {
		s.report.set("passes", list)
		s.report.set("order", rules)
		return s.print(s.report.encode)
	}
	return s.print(func(w io.Writer) error {
		last := ""
		for _, e := range list {
			if e.Stage != last {
				fmt.Fprintf(w, "%s\n", s.paintOut().Bold(e.Stage))
				last = e.Stage
			}
			fmt.Fprintf(w, "  %-8s %s\n", e.Pass, e.Doc)
		}
		fmt.Fprintf(w, "%s\n", s.paintOut().Bold("order"))
		for _, c := range rules {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(fmt.Sprintf("%s before %s: %s", c.Before, c.After, c.Why)))
		}
		return nil
	})
}
