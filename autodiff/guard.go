package autodiff

import (
	"fmt"
	"runtime/debug"

	"gradtool/graph"
	"gradtool/graph/op"
)

// RuleError is a panic in a rule, a bug, with the node that the rule was applied to.
type RuleError struct {
	Node  *graph.Node
	Value any    // what was panicked with
	Stack []byte // for whoever asks for it
}

// Error names the node.
func (e *RuleError) Error() string {
	return fmt.Sprintf("internal error in the derivative rule of node %s: %v", e.Node.Label(), e.Value)
}

// apply runs a rule's function. A constant that is too large to be made is no fault of the rule: the error is an
// [*op.SizeError] then.
func (c *Ctx) apply(rule func(*Ctx) []*graph.Value) (cts []*graph.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *op.SizeError:
			err = fmt.Errorf("derivative of node %s: %w", c.Node.Label(), r)
		default:
			err = &RuleError{c.Node, r, debug.Stack()}
		}
	}()
	return rule(c), nil
}
