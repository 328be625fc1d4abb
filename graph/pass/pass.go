// Package pass runs passes over a model: named steps in a checked order, with verification after each that changed
// something, dumps, times, and a limit to find the step that broke a model.
//
// There is no registry. Whoever builds a pipeline lists its passes, and the constraints on their order, and gives them to
// [New]; the passes that need nothing but the IR and the operator table are here, others come from the stages.
package pass

import (
	"fmt"
	"io"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Pass is one named step over a model.
type Pass struct {
	Name string
	Doc  string // one line for the list of passes
	// Run edits the model and reports whether it changed anything. The model is lost if it fails.
	Run func(c *Ctx, m *graph.Model) (changed bool, err error)
	// Ensures, if set, checks what holds after Run, whether it changed something or not.
	Ensures func(m *graph.Model) error
	// Required passes run beyond the bisect limit too: later ones rely on them.
	Required bool
}

// Constraint says that one pass may only run before another, and why. It concerns lists that hold both.
type Constraint struct{ Before, After, Why string }

// Order returns the constraints on the passes of this package.
func Order() []Constraint {
	return []Constraint{
		{"inline", "upgrade", "a body whose attributes refer to the function's can be upgraded only once their values are known"},
		{"upgrade", "infer", "inference knows the newest form of each operator only"},
		{"sort", "infer", "inference needs operands before their readers"},
	}
}

// Ctx is what a pass sees of the run.
type Ctx struct {
	Log io.Writer // for messages to people; never nil

	pass   *Pass
	stat   *Stat
	limit  *limiter
	info   *op.Info
	infoOf *graph.Model
}

// Allow asks whether one more rewrite may be done and counts it if so. Passes that do independent rewrites ask before
// each, so that a bisection can find the one at fault. The words say what and where.
func (c *Ctx) Allow(format string, args ...any) bool {
	ok := c.limit.allow(func() string { return c.pass.Name + ": " + fmt.Sprintf(format, args...) })
	if ok {
		c.stat.Rewrites++
	}
	return ok
}

// Note adds a line about what the pass did to its statistics.
func (c *Ctx) Note(format string, args ...any) {
	c.stat.Notes = append(c.stat.Notes, fmt.Sprintf(format, args...))
}

// Info returns what inference knows of m: that of the pass infer, if nothing changed since, else it infers anew. A node
// that cannot work is an error.
func (c *Ctx) Info(m *graph.Model) (*op.Info, error) {
	if c.info != nil && c.infoOf == m {
		return c.info, nil
	}
	info, err := op.Infer(m)
	if err != nil {
		return nil, err
	}
	c.info, c.infoOf = info, m
	return info, nil
}

// limiter counts rewrites for bisection.
type limiter struct {
	max  int // negative: no limit
	done int
	last string // the last rewrite that was allowed
}

func (l *limiter) allow(what func() string) bool {
	if l.max >= 0 && l.done >= l.max {
		return false
	}
	l.done++
	if l.max >= 0 {
		l.last = what()
	}
	return true
}
