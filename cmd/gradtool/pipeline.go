package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/pass"
	"gradtool/onnxio"
)

// passFlags show what the passes of a stage do.
func passFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "print-after", Usage: "print the model as text on standard error after a `PASS`, or all, or changed"},
		&cli.StringFlag{Name: "dump-passes", Usage: "write the model as text to `DIR` after each pass"},
		&cli.BoolFlag{Name: "time-passes", Usage: "print what each pass took"},
		&cli.BoolFlag{Name: "no-verify", Usage: "skip the verifier after each pass, for time measurements"},
	}
}

// order says which pass must come before which, and why.
func order() []pass.Constraint {
	return append(pass.Order(),
		pass.Constraint{Before: "infer", After: "grad", Why: "rules ask for types and shapes, and cover the newest form of each operator"},
		pass.Constraint{Before: "infer", After: "jvp", Why: "rules ask for types and shapes, and cover the newest form of each operator"},
		pass.Constraint{Before: "grad", After: "opset", Why: "the operators of the gradient take part in choosing the opset"},
		pass.Constraint{Before: "upgrade", After: "prune", Why: "rules cover the newest form of each operator"},
		pass.Constraint{Before: "prune", After: "opset", Why: "an operator that goes needs no opset"},
		pass.Constraint{Before: "infer", After: "rewrite", Why: "rules ask for types and shapes, and cover the newest form of each operator"},
		pass.Constraint{Before: "infer", After: "chunk", Why: "pieces are made where shapes are known"},
		pass.Constraint{Before: "chunk", After: "rewrite", Why: "the products of the pieces take part in the choice of operators"},
		pass.Constraint{Before: "recompute", After: "fuse", Why: "copies become part of the clusters of gradients"},
		pass.Constraint{Before: "rewrite", After: "opset", Why: "the operators put in take part in choosing the opset"},
		pass.Constraint{Before: "opset", After: "fuse", Why: "bodies of clusters hold operators in the form that is written"},
		pass.Constraint{Before: "unfuse", After: "inline", Why: "a cluster gets its names and constants back from its call"},
		pass.Constraint{Before: "jvp", After: "opset", Why: "the operators of the derivative take part in choosing the opset"},
		pass.Constraint{Before: "grad", After: "prune", Why: "an intermediate value that nothing read may be what the gradient needs"},
	)
}

// gradDoc says what the pass grad does.
const gradDoc = "append the gradient"

// gradPasses are the passes of grad. options is asked once types are known; the result is put in res.
func gradPasses(keep func(*graph.Function) bool, version int64, options func(*graph.Model) (autodiff.GradOptions, error), res **autodiff.GradResult) []pass.Pass {
	return derivativePasses("grad", gradDoc, keep, version, appendGradient(options, res))
}

func appendGradient(options func(*graph.Model) (autodiff.GradOptions, error), res **autodiff.GradResult) func(c *pass.Ctx, m *graph.Model) error {
	return func(c *pass.Ctx, m *graph.Model) error {
		info, err := c.Info(m)
		if err != nil {
			return err
		}
		opt, err := options(m)
		if err != nil {
			return err
		}
		*res, err = autodiff.Gradient(m, info, opt)
		return err
	}
}

// derivativePasses are the passes of a stage that appends derivatives, which add does once types are known.
func derivativePasses(name, doc string, keep func(*graph.Function) bool, version int64, add func(c *pass.Ctx, m *graph.Model) error) []pass.Pass {
	return []pass.Pass{
		pass.Sort(), pass.Inline(keep), pass.Upgrade(), pass.Infer(),
		{
			Name: name, Doc: doc, Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) { return true, blocked(add(c, m)) },
		},
		opsetPass(version),
	}
}

// opsetPass lowers a model to the opset, or for 0 to the lowest that it can have.
func opsetPass(version int64) pass.Pass {
	return pass.Pass{
		Name: "opset", Doc: "bring operators into the form of the lowest opset that has them all, or of the one asked for", Required: true,
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			before := m.Opset("")
			err := setOpset(m, version)
			c.Note("opset %d to %d", before, m.Opset(""))
			return true, err
		},
	}
}

// runPasses runs passes over m as the flags say. A pass that is at fault itself, by a panic or an invalid result, is named and
// the error asks for a report; other errors speak for themselves.
func (s *session) runPasses(m *graph.Model, passes []pass.Pass) error {
	return s.runPassesOf(m, passes, false)
}

// runPassesOf is runPasses for a model that is sound, as inspect has found, and was not changed since; or one of which that is not known.
func (s *session) runPassesOf(m *graph.Model, passes []pass.Pass, sound bool) error {
	if s.IsSet("bisect-limit") && s.Int("bisect-limit") < 0 {
		return usagef("--bisect-limit %d: want a number of rewrites, 0 or more", s.Int("bisect-limit"))
	}
	mg, err := pass.New(passes, order(), pass.Options{
		Sound: sound, NoVerify: s.Bool("no-verify"), PrintAfter: s.String("print-after"), DumpDir: s.String("dump-passes"), Log: s.messages,
		Bisect: s.IsSet("bisect-limit"), Limit: s.Int("bisect-limit") - s.rewrites,
	})
	if err != nil {
		return usagef("%v", err)
	}
	r, err := mg.Run(m)
	if s.Bool("time-passes") {
		if werr := r.WriteTimes(s.messages); err == nil {
			err = werr
		}
	}
	if err == nil {
		s.noteDeclared()
	}
	for _, st := range r.Stats {
		for _, note := range st.Notes {
			s.verbosef("%s: %s", st.Name, note)
		}
	}
	if s.IsSet("bisect-limit") {
		s.rewrites += r.Rewrites
		switch {
		case r.Rewrites > 0:
			s.notef("%s done, the last: %s", count(s.rewrites, "rewrite"), r.LastRewrite)
		case s.rewrites == 0:
			s.notef("0 rewrites done")
		}
	}
	return s.passError(err)
}

func (s *session) passError(err error) error {
	var pe *pass.Error
	if !errors.As(err, &pe) {
		return err
	}
	var panicked *pass.PanicError
	var rule *autodiff.RuleError
	var invalid *graph.VerifyError
	var stack []byte
	switch {
	case errors.As(err, &panicked):
		stack = panicked.Stack
	case errors.As(err, &rule):
		stack = rule.Stack
	case errors.As(err, &invalid):
	case slices.Contains([]string{"sort", "inline", "upgrade", "infer"}, pe.Pass):
		return badModel(pe.Err)
	default:
		return pe.Err
	}
	if s.getenv("GRADTOOL_DEBUG") != "" {
		fmt.Fprintf(s.stderr, "%s", stack)
	}
	return hint(err, "%s", reportBug)
}

// reportBug is the advice for errors that are gradtool's own.
const reportBug = "this is a bug in gradtool: please report it with the command line and, if you can, the model; GRADTOOL_DEBUG=1 shows where it happened"

// setOpset lowers m to the opset, or for 0 to the lowest that it can have.
func setOpset(m *graph.Model, version int64) error {
	if version == 0 {
		return op.SetLowestOpset(m)
	}
	err := op.SetOpset(m, version)
	var oe *op.OpsetError
	if errors.As(err, &oe) {
		if low, lerr := op.LowestOpset(m); lerr == nil {
			return hint(fmt.Errorf("--opset %d: %w", version, err), "the lowest opset for this model is %d", low)
		}
	}
	return err
}

// saveModel writes m to the target. Where that is a file beside m's external data, those stay there.
func (s *session) saveModel(t target, m *graph.Model) error {
	if s.Bool("external-data") {
		return s.saveExternal(t, m)
	}
	var o onnxio.WriteOptions
	if t.path != "-" {
		o.Dir = filepath.Dir(t.path)
	}
	err := s.save(t, func(w io.Writer) error { return o.Write(w, m) })
	if errors.Is(err, onnxio.ErrTooLarge) {
		return hint(err, "use -o FILE --external-data")
	}
	return err
}

// saveExternal writes m and, beside it, its weights. Both are written to a folder of their own first, so
// that an interruption leaves nothing.
func (s *session) saveExternal(t target, m *graph.Model) error {
	s.progress.Done()
	dir, err := os.MkdirTemp(filepath.Dir(t.path), ".gradtool-")
	if err != nil {
		return fileError(t.path, err)
	}
	clean := func() { os.RemoveAll(dir) }
	defer s.onAbort(clean)()
	defer clean()
	base := filepath.Base(t.path)
	if err := (onnxio.WriteOptions{External: true}).WriteFile(filepath.Join(dir, base), m); err != nil {
		return fileError(t.path, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b os.DirEntry) int { return len(b.Name()) - len(a.Name()) }) // the weights, FILE.data, first
	for _, f := range files {
		if err := os.Rename(filepath.Join(dir, f.Name()), filepath.Join(filepath.Dir(t.path), f.Name())); err != nil {
			return fileError(t.path, err)
		}
	}
	if t.chosen {
		s.notef("wrote %s", t.path)
	}
	return nil
}
