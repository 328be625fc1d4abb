package pass

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/suggest"
)

// Options says how a [Manager] runs its passes. The zero value verifies and is silent.
type Options struct {
	NoVerify   bool
	Sound      bool      // the model is known to violate nothing: it need not be verified before the first pass
	PrintAfter string    // name of a pass, "all" or "changed": print the model to Log after it
	DumpDir    string    // write the model's text to files in this folder, one per pass
	Limit      int       // with Bisect: how many rewrites may be done
	Bisect     bool      // stop rewriting after Limit rewrites
	Strict     bool      // check that a pass that reports no change made none; slow, for tests
	Log        io.Writer // nil: nowhere
	// After, if set, is called after the reading (pass "input") and after each pass.
	After func(name string, changed bool, m *graph.Model)
}

// Manager is a list of passes in an allowed order.
type Manager struct {
	passes []Pass
	opt    Options
}

// Stat is what one pass did.
type Stat struct {
	Name          string
	Changed       bool
	Time          time.Duration // without verifying and dumping
	VerifyTime    time.Duration
	Before, After int // nodes in all graphs
	Rewrites      int // as counted by Ctx.Allow
	Notes         []string
}

// Report is what a run did.
type Report struct {
	Stats []Stat
	// Prior are violations that the model had before the first pass. Passes are not blamed for them.
	Prior []error
	// Rewrites is the number of rewrites done, LastRewrite the last of them if there was a limit.
	Rewrites    int
	LastRewrite string
}

// Error is a pass that failed.
type Error struct {
	Pass string
	Err  error
}

// Error names the pass.
func (e *Error) Error() string { return fmt.Sprintf("pass %s: %v", e.Pass, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// PanicError is a panic in a pass: a bug.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the panic's value; the stack is for who asks for it.
func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// New returns a manager of the passes in the given order. It fails if a name occurs twice, if the order breaks a
// constraint, or if the options name no pass.
func New(passes []Pass, order []Constraint, opt Options) (*Manager, error) {
	at := map[string]int{}
	var names []string
	var errs []error
	for i, p := range passes {
		if _, twice := at[p.Name]; twice {
			errs = append(errs, fmt.Errorf("pass %s is listed twice", p.Name))
		}
		if p.Run == nil {
			errs = append(errs, fmt.Errorf("pass %s does nothing", p.Name))
		}
		at[p.Name] = i
		names = append(names, p.Name)
	}
	for _, c := range order {
		i, ok := at[c.Before]
		j, ok2 := at[c.After]
		if ok && ok2 && i > j {
			errs = append(errs, fmt.Errorf("pass %s must come before %s: %s", c.Before, c.After, c.Why))
		}
	}
	if want := opt.PrintAfter; want != "" && !slices.Contains([]string{"all", "changed"}, want) && !slices.Contains(names, want) {
		hint := "passes are " + strings.Join(names, ", ")
		if near := suggest.Nearest(want, names); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ")
		}
		errs = append(errs, fmt.Errorf("there is no pass %q; %s", want, hint))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if opt.Log == nil {
		opt.Log = io.Discard
	}
	return &Manager{slices.Clone(passes), opt}, nil
}

// Run runs the passes over m, in order. The first that fails ends the run with an [*Error]; the model is then not fit
// for use. The report covers what was run.
func (mg *Manager) Run(m *graph.Model) (*Report, error) {
	r := &Report{}
	limit := &limiter{max: -1}
	if mg.opt.Bisect {
		limit.max = mg.opt.Limit
	}
	var prior *blameless
	if !mg.opt.NoVerify {
		if !mg.opt.Sound {
			r.Prior = violations(m)
		}
		prior = blamelessOf(m, r.Prior)
	}
	if err := mg.show(0, "input", true, m); err != nil {
		return r, err
	}
	c := &Ctx{Log: mg.opt.Log, limit: limit}
	var failed error
	for i := range mg.passes {
		if failed = mg.step(c, r, i, m, prior); failed != nil {
			break
		}
	}
	r.Rewrites, r.LastRewrite = limit.done, limit.last
	return r, failed
}

// step runs pass i and what goes with it.
func (mg *Manager) step(c *Ctx, r *Report, i int, m *graph.Model, prior *blameless) error {
	p := &mg.passes[i]
	if !p.Required && c.limit.max >= 0 && c.limit.done >= c.limit.max {
		return nil
	}
	text := ""
	if mg.opt.Strict {
		text = m.String()
	}
	r.Stats = append(r.Stats, Stat{Name: p.Name, Before: nodes(m)})
	s := &r.Stats[len(r.Stats)-1]
	c.pass, c.stat = p, s
	start := time.Now()
	info := c.info
	changed, err := guard(p, c, m)
	s.Time, s.Changed, s.After = time.Since(start), changed, nodes(m)
	if err != nil {
		return &Error{p.Name, err}
	}
	if changed && c.info == info {
		c.info = nil // what a pass put there itself is current
	}
	if mg.opt.Strict && !changed && m.String() != text {
		return &Error{p.Name, errors.New("internal error: the pass changed the model but reports that it did not")}
	}
	if changed && !mg.opt.NoVerify {
		start := time.Now()
		var fresh []error
		for _, e := range violations(m) {
			if !prior.has(e) {
				fresh = append(fresh, e)
			}
		}
		s.VerifyTime = time.Since(start)
		if len(fresh) > 0 {
			return &Error{p.Name, fmt.Errorf("internal error: the model is not valid any more: %w", errors.Join(fresh...))}
		}
	}
	if p.Ensures != nil {
		if err := p.Ensures(m); err != nil {
			return &Error{p.Name, err}
		}
	}
	return mg.show(i+1, p.Name, changed, m)
}

// guard runs a pass; a panic becomes an error.
func guard(p *Pass, c *Ctx, m *graph.Model) (changed bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return p.Run(c, m)
}

// violations returns what the verifiers find, one by one.
func violations(m *graph.Model) []error {
	var out []error
	for _, err := range []error{graph.Verify(m), op.Verify(m)} {
		if j, ok := err.(interface{ Unwrap() []error }); ok {
			out = append(out, j.Unwrap()...)
		} else if err != nil {
			out = append(out, err)
		}
	}
	return out
}

func nodes(m *graph.Model) int {
	n := 0
	for range m.Graph.AllNodes() {
		n++
	}
	for _, f := range m.Functions {
		for range f.Body.AllNodes() {
			n++
		}
	}
	return n
}
