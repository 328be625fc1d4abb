package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/internal/public"
)

// TestRefereeBackend checks the cases of the ONNX standard's backend tests: the evaluator's outputs against the expected
// ones. Cases of other domains than ai.onnx are counted apart, for the operators that the table
// lacks. Of the others 98 % must hold in each folder; those that do not are listed with what is wrong.
func TestRefereeBackend(t *testing.T) {
	if testing.Short() {
		t.Skip("about 1,900 cases")
	}
	root := public.Path(t, "corpus", "onnx-backend")
	for _, kind := range []string{"node", "simple", "pytorch-operator", "pytorch-converted"} {
		t.Run(kind, func(t *testing.T) {
			models, err := filepath.Glob(filepath.Join(root, kind, "*", "model.onnx"))
			if err != nil || len(models) == 0 {
				t.Skipf("no cases in %s: %v", kind, err)
			}
			slices.Sort(models)
			passed := 0
			var failed, outside []string
			for _, model := range models {
				dir := filepath.Dir(model)
				code, out, errs := gradtool(t, "", "check", "--quiet", dir)
				line := filepath.Base(dir) + ": " + whatIsWrong(out, errs)
				switch {
				case code == 0:
					passed++
				case strings.Contains(errs, "the operator cannot be evaluated") && notRequired(errs):
					outside = append(outside, line)
				default:
					failed = append(failed, line)
				}
			}
			t.Logf("%d of %d cases hold (%.1f %%); %d more have an operator that is not in the table",
				passed, passed+len(failed), 100*float64(passed)/float64(max(passed+len(failed), 1)), len(outside))
			for _, line := range failed {
				t.Log("  fails ", line)
			}
			for _, line := range outside {
				t.Log("  outside ", line)
			}
			if 100*passed < 98*(passed+len(failed)) || passed == 0 {
				t.Errorf("%d of %d cases fail", len(failed), passed+len(failed))
			}
		})
	}
}

// notRequired reports whether an error is about operators that the table need not have.
func notRequired(errs string) bool {
	return strings.Contains(errs, "(ai.onnx.")
}

// whatIsWrong picks the lines of a failed check that tell the cause: a hint, else the first value that differs, else the error.
func whatIsWrong(out, errs string) string {
	lines := strings.Split(out+"\n"+errs, "\n")
	for _, mark := range []string{"hint:", "DIFFERS", "error:"} {
		for _, l := range lines {
			if strings.Contains(l, mark) {
				return strings.Join(strings.Fields(l), " ")
			}
		}
	}
	return strings.Join(strings.Fields(errs), " ")
}
