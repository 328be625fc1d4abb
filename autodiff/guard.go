package autodiff

import (
	"fmt"
	"runtime/debug"

	"gradtool/graph"
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

// apply runs a rule's function.
func (c *Ctx) apply(rule func(*Ctx) []*graph.Value) (cts []*graph.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &RuleError{c.Node, r, debug.Stack()}
		}
	}()
	return rule(c), nil
}
