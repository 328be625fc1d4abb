package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/term"
)

// verb is one thing that gradtool does.
type verb struct {
	name     string
	group    string // heading in the root help
	summary  string // one line
	args     string // what stands after the flags in the usage line
	maxArgs  int    // how many plain arguments it takes; -1 for any number
	about    string // a paragraph or two, wrapped by hand
	examples []string
	flags    []cli.Flag
	run      func(s *session) error
}

// Groups of the root help.
const (
	groupStage = "stages (model in, model out)"
	groupRead  = "reading models"
	groupRun   = "running models"
	groupOther = "others"
)

// verbs returns all verbs in the order of the root help.
func verbs() []verb {
	return []verb{
		gradVerb(),
		jvpVerb(),
		pruneVerb(),
		fuseVerb(),
		inlineVerb(),
		lowerVerb(),
		infoVerb(),
		showVerb(),
		diffVerb(),
		disasmVerb(),
		profileVerb(),
		vizVerb(),
		opsVerb(),
		passesVerb(),
		runVerb(),
		checkVerb(),
		planVerb(),
		asmVerb(),
		machineVerb(),
		demoVerb(),
		versionVerb(),
		completionVerb(),
	}
}

// session is one run of a verb.
type session struct {
	*cli.Context
	*process
	verb    *verb
	quiet   bool
	verbose bool
	paint   term.Painter // for standard error
	report  *report
	// messages is standard error; progress draws on it where it is a terminal.
	messages io.Writer
	progress term.Progress

	rules   map[op.Key]*autodiff.Rule // from files of derivative rules
	closers []io.Closer               // of files that are read until the end
	// rewrites is how many were done, where --bisect-limit counts them, over all runs of passes.
	rewrites int

	declared []declaration   // of the outputs of the model that is worked on
	noted    map[string]bool // what was said of models that violate the standard
	sound    *graph.Model    // violates nothing, as it was read
}

// commonFlags are those that every verb takes. The library refuses global flags behind a verb, so each gets its own.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no messages but errors; run prints no table either, check and diff only where something differs"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say more about each step"},
		&cli.StringFlag{Name: "color", Value: "auto", DefaultText: "auto", Usage: "when to colour: `auto|always|never`"},
	}
}

// command returns the library's form of v.
func (v verb) command(p *process) *cli.Command {
	return &cli.Command{
		Name:               v.name,
		Usage:              v.summary,
		Flags:              append(v.flags, commonFlags()...),
		HideHelpCommand:    true,
		CustomHelpTemplate: v.help(),
		OnUsageError:       onUsageError,
		Action: func(c *cli.Context) error {
			s, err := p.session(c, &v)
			if err != nil {
				return err
			}
			defer func() {
				for _, c := range s.closers {
					c.Close()
				}
			}()
			s.progress.Start("gradtool "+v.name, 0)
			defer s.progress.Done()
			if err := s.report.open(s); err != nil {
				return err
			}
			defer s.onAbort(s.report.drop)()
			defer s.report.drop()
			if err := v.run(s); err != nil {
				return err
			}
			return s.report.write()
		},
	}
}

func (p *process) session(c *cli.Context, v *verb) (*session, error) {
	color, err := term.ParseColor(c.String("color"))
	if err != nil {
		return nil, usagef("--color: %v", err)
	}
	p.color = color
	if n := c.NArg(); v.maxArgs >= 0 && n > v.maxArgs {
		return nil, usagef("%s takes %s, got %d: %s", v.name, argCount(v.maxArgs), n, strings.Join(c.Args().Slice(), " "))
	}
	if c.IsSet("output") && c.String("output") == "" {
		return nil, hint(usagef("-o: the name of the output is empty"), "- stands for standard output")
	}
	s := &session{Context: c, process: p, verb: v, quiet: c.Bool("quiet"), verbose: c.Bool("verbose")}
	s.paint = term.NewPainter(color.Enabled(p.stderr, p.getenv))
	s.report = newReport(v.name)
	s.messages, s.progress = p.stderr, term.Silent{}
	if !s.quiet {
		s.progress = term.NewProgress(p.stderr, p.getenv)
	}
	if w, ok := s.progress.(io.Writer); ok {
		s.messages = w
	}
	return s, nil
}

func argCount(n int) string {
	switch n {
	case 0:
		return "no arguments"
	case 1:
		return "one argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// help returns the help template: usage, text, flags and, last, examples.
func (v verb) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gradtool %s - %s\n\nusage: %s\n", v.name, v.summary, v.usage())
	if v.about != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(v.about))
	}
	b.WriteString("\nflags:\n")
	for _, f := range append(append(v.flags, commonFlags()...), cli.HelpFlag) {
		flagHelp(&b, f)
	}
	if len(v.examples) > 0 {
		b.WriteString("\nexamples:\n")
		for _, e := range v.examples {
			b.WriteString("  " + e + "\n")
		}
	}
	return b.String()
}

// Layout of the list of flags.
const (
	flagColumn = 28 // where the text of a flag begins
	helpWidth  = 110
)

// flagHelp writes one flag: its spellings, what its value is called, and what it does. The text of a flag has the
// name of its value in backquotes; at the end, behind a colon, it stands for the column on the left only.
func flagHelp(b *strings.Builder, f cli.Flag) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return
	}
	var spellings []string
	for _, n := range f.Names() {
		spellings = append(spellings, flagText(n))
	}
	left := strings.Join(spellings, ", ")
	text := d.GetUsage()
	if before, rest, ok := strings.Cut(text, "`"); ok {
		value, after, _ := strings.Cut(rest, "`")
		if _, opt := optionalValue(f); opt {
			left += " [" + value + "]"
		} else {
			left += " " + value
		}
		text = before + value + after
		if after == "" && strings.HasSuffix(before, ": ") {
			text = strings.TrimSuffix(before, ": ")
		}
	}
	if def := d.GetDefaultText(); def != "" && takesValue(f) && def != "0" {
		text += " (default: " + strings.Trim(def, `"`) + ")"
	}
	line := fmt.Sprintf("  %-*s", flagColumn-2, left)
	if len(left) > flagColumn-4 {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		line = strings.Repeat(" ", flagColumn)
	}
	for _, word := range strings.Fields(text) {
		if len(line)+len(word)+1 > helpWidth && len(line) > flagColumn {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", flagColumn)
		}
		if len(line) > flagColumn {
			line += " "
		}
		line += word
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (v verb) usage() string {
	u := "gradtool " + v.name + " [flags]"
	if v.args != "" {
		u += " " + v.args
	}
	return u
}

// rootHelp returns the help of gradtool itself.
func rootHelp() string {
	var b strings.Builder
	b.WriteString("gradtool - append gradients to ONNX models, as plain ONNX operators\n\nusage: gradtool VERB [flags] [MODEL|-]\n")
	for _, g := range []string{groupStage, groupRead, groupRun, groupOther} {
		head := "\n" + g + ":\n"
		for _, v := range verbs() {
			if v.group == g {
				fmt.Fprintf(&b, "%s  %-11s %s\n", head, v.name, v.summary)
				head = ""
			}
		}
	}
	b.WriteString(`
A model comes from the file named, from standard input for "-" or where no file is named and input is
piped, and goes to standard output when that is piped, or to -o FILE. Flags may stand anywhere;
after "--" nothing is a flag. Messages go to standard error.

exit codes:
  0  done
  1  failed: an operator without derivative, a full disk, ...
  2  the command line is wrong
  3  check or diff found differences
  4  the input is not a valid model
  130  interrupted

environment:
  NO_COLOR, TERM=dumb  no colours        GRADTOOL_DEBUG=1  show a stack trace for an internal error

examples:
  gradtool demo
  gradtool grad --loss softmax-cross-entropy model.onnx -o train.onnx
  gradtool grad --wrt inputs model.onnx | gradtool prune | gradtool info
  gradtool help grad
`)
	return b.String()
}

// joinUsage joins errors about the command line.
func joinUsage(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return &codeError{codeUsage, errors.Join(errs...)}
}
