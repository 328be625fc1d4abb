// Gradtool takes ONNX models and appends their gradients, as plain ONNX operators.
//
// It is a set of stages that can stand in a pipeline (a model in on standard input, a model out on
// standard output) and of verbs that look at models and run them. There is one file per verb; the parts
// that they share are main.go (start and end of a run), verb.go (what a verb is), args.go (flags anywhere),
// io.go (models in and out), report.go (what is said about a stage) and errors.go (errors and exit codes).
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"gradtool/graph/op"
	"gradtool/internal/suggest"
	"gradtool/internal/term"
)

func main() { os.Exit(Main(os.Args)) }

// Main runs one command line and returns the exit code.
func Main(args []string) int {
	delayCollection()
	p := &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	stop := p.handleSignals()
	defer stop()
	err := p.run(args)
	if err != nil {
		p.printError(err)
	}
	return exitCode(err)
}

// process is the surroundings of one run.
type process struct {
	stdin, stdout, stderr *os.File
	getenv                func(string) string
	color                 term.Color
	name                  string // the verb, once known

	mu    sync.Mutex
	abort map[int]func() // what an interruption must undo
	next  int
}

// run finds the verb, puts its arguments in the order that the flag parser understands, and runs it. A
// panic in it becomes an error that names the verb.
func (p *process) run(args []string) (err error) {
	defer p.recovered(&err)
	help := &watched{w: p.stdout}
	app := p.app(help)
	defer func() {
		if err == nil {
			err = stdoutError(help.err)
		}
	}()
	if len(args) < 2 {
		fmt.Fprint(p.stderr, rootHelp())
		return &codeError{codeUsage, errSilent}
	}
	switch args[1] {
	case "-h", "--help", "help":
		if len(args) > 2 && app.Command(args[2]) == nil {
			return unknownVerb(args[2])
		}
		return app.RunContext(context.Background(), helpArgs(args))
	case "-v", "--version":
		args = append([]string{args[0], "version"}, args[2:]...)
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return unknownVerb(args[1])
	}
	p.name = cmd.Name
	rest, err := permute(cmd, args[2:])
	if err != nil {
		return err
	}
	return app.RunContext(context.Background(), slices.Concat(args[:2], rest))
}

// recovered, deferred, turns a panic into an error.
func (p *process) recovered(err *error) {
	r := recover()
	if r == nil {
		return
	}
	if p.getenv("GRADTOOL_DEBUG") != "" {
		fmt.Fprintf(p.stderr, "panic: %v\n%s", r, debug.Stack())
	}
	if size, ok := r.(*op.SizeError); ok { // outside of an operator
		*err = size
		return
	}
	*err = internalError(p.name, r)
}

// helpArgs brings the ways to ask for help to the two forms that the library knows.
func helpArgs(args []string) []string {
	if len(args) > 2 {
		return []string{args[0], "help", args[2]}
	}
	return []string{args[0], "--help"}
}

func unknownVerb(word string) error {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	err := usagef("unknown verb %q", word)
	if near := suggest.Nearest(word, names); len(near) > 0 {
		return hint(err, "did you mean %s?", orList(near))
	}
	if _, serr := os.Stat(word); serr == nil {
		return hint(err, "say what to do with the file: gradtool info %s", word)
	}
	return err
}

// watched notes the first error of a writer, for the library, which prints help and does not look.
type watched struct {
	w   io.Writer
	err error
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// app assembles the library's view of the verbs; help goes to the writer.
func (p *process) app(help io.Writer) *cli.App {
	app := &cli.App{
		Name:                      "gradtool",
		HelpName:                  "gradtool",
		Usage:                     "append gradients to ONNX models",
		CustomAppHelpTemplate:     rootHelp(),
		Writer:                    help,
		ErrWriter:                 p.stderr,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		// Without this the library would call os.Exit in the middle of a run.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
	}
	for _, v := range verbs() {
		app.Commands = append(app.Commands, v.command(p))
	}
	return app
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }

// handleSignals makes an interruption undo what is half done and end with the shell's code for it. A signal that
// whoever started the program has it ignore stays ignored.
func (p *process) handleSignals() (stop func()) {
	c := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	go func() {
		s, ok := <-c
		if !ok {
			return
		}
		p.undo()
		if s == syscall.SIGTERM {
			os.Exit(codeTerminated)
		}
		os.Exit(codeInterrupted)
	}()
	return func() { signal.Stop(c); close(c) }
}

// undo removes what is half done. The lock is kept: nothing may be begun or finished after it.
func (p *process) undo() {
	p.mu.Lock()
	for _, f := range p.abort {
		f()
	}
}

// onAbort has f called on an interruption, until the function it returns is.
func (p *process) onAbort(f func()) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abort == nil {
		p.abort = map[int]func(){}
	}
	id := p.next
	p.next++
	p.abort[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.abort, id)
	}
}
