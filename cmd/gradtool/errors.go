package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"gradtool/graph/op"
	"gradtool/internal/selector"
	"gradtool/internal/term"
)

// Exit codes, as the root help documents them.
const (
	codeFailed      = 1
	codeUsage       = 2
	codeDifferent   = 3
	codeBadModel    = 4
	codeInterrupted = 130 // 128 + SIGINT, as shells count
	codePipe        = 141 // 128 + SIGPIPE
	codeTerminated  = 143 // 128 + SIGTERM
)

// codeError is an error with an exit code.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// errSilent is the error of a run that has said all there is to say.
var errSilent = errors.New("failed")

// usagef returns an error about the command line.
func usagef(format string, args ...any) error {
	return &codeError{codeUsage, fmt.Errorf(format, args...)}
}

// badModel marks err as a fault of the input model. What is only too large for us is no such fault.
func badModel(err error) error {
	if err == nil || tooLarge(err) {
		return err
	}
	return &codeError{codeBadModel, err}
}

// tooLarge reports whether err is about the size of what a model asks for.
func tooLarge(err error) bool {
	var tensor *op.SizeError
	var nodes *op.ExpansionError
	return errors.As(err, &tensor) || errors.As(err, &nodes)
}

// differencesf returns the error of a comparison that found differences.
func differencesf(format string, args ...any) error {
	return &codeError{codeDifferent, fmt.Errorf(format, args...)}
}

// hinted is an error with advice.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// hint adds advice to an error; nil stays nil.
func hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// internalError is what a panic becomes.
func internalError(verb string, cause any) error {
	where := ""
	if verb != "" {
		where = " in " + verb
	}
	return hint(fmt.Errorf("internal error%s: %v", where, cause), "%s", reportBug)
}

// exitCode returns the code that err ends the program with.
func exitCode(err error) int {
	var c *codeError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EPIPE):
		return codePipe
	case errors.As(err, &c):
		return c.code
	}
	return codeFailed
}

// problems returns the single errors of a joined one.
func problems(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, problems(e)...)
		}
		return out
	}
	return []error{err}
}

// maxProblems limits how many problems of one run are printed.
const maxProblems = 20

// printError writes err to standard error: "gradtool: error: ..." or, for several problems, their number
// and a list, and then what can be done about it.
func (p *process) printError(err error) {
	if errors.Is(err, errSilent) || errors.Is(err, syscall.EPIPE) {
		return // all is said, or whoever read our output has gone
	}
	paint := term.NewPainter(p.color.Enabled(p.stderr, p.getenv))
	var hints []string
	var text []string
	for _, e := range problems(unwrapForList(err, &hints)) {
		var h *hinted
		if errors.As(e, &h) {
			hints = append(hints, h.hint)
		}
		text = append(text, describe(e))
	}
	prefix := "gradtool: " + paint.Red("error:") + " "
	if len(text) == 1 {
		fmt.Fprintln(p.stderr, prefix+text[0])
	} else {
		fmt.Fprintf(p.stderr, "%s%d problems\n", prefix, len(text))
		for i, t := range text {
			if i == maxProblems {
				fmt.Fprintf(p.stderr, "  ... and %d more\n", len(text)-i)
				break
			}
			fmt.Fprintln(p.stderr, "  "+strings.ReplaceAll(t, "\n", "\n    "))
		}
	}
	slices.Reverse(hints) // the one given first stands inside
	var c *codeError
	if errors.As(err, &c) && c.code == codeUsage {
		help := "gradtool --help"
		if p.name != "" {
			help = "gradtool " + p.name + " --help"
		}
		hints = append(hints, fmt.Sprintf("%q tells how to use it", help))
	}
	seen := map[string]bool{}
	for _, h := range hints {
		if !seen[h] {
			seen[h] = true
			fmt.Fprintln(p.stderr, "gradtool: "+paint.Cyan("hint:")+" "+h)
		}
	}
}

// unwrapForList takes off the wrappers around a joined error that add no text, and collects their hints.
func unwrapForList(err error, hints *[]string) error {
	for {
		switch e := err.(type) {
		case *codeError:
			err = e.err
		case *hinted:
			*hints = append(*hints, e.hint)
			err = e.err
		default:
			var s *selector.Error
			if errors.As(err, &s) && len(s.Problems) > 1 {
				var list []error
				for _, p := range s.Problems {
					list = append(list, errors.New(p))
				}
				return errors.Join(list...)
			}
			return err
		}
	}
}

// describe returns the text of one error; errors of the file system lead with the file.
func describe(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) && err.Error() == pe.Error() {
		return fmt.Sprintf("%s: cannot %s: %v", pe.Path, pe.Op, pe.Err)
	}
	return err.Error()
}

// orList joins words as "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// joinErrors is errors.Join that leaves a single error as it is.
func joinErrors(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
