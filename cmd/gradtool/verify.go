package main

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// ruleScope is the rule of graph.Verify that every value that is read is defined.
const ruleScope = 3

// inspect verifies a model that was just read. Undefined values make it unfit for any stage. Other violations of the
// standard, which public models have many of, are remembered, so that verify can tell them from those of a stage.
func (s *session) inspect(m *graph.Model) error {
	var undefined []error
	s.known = map[string]bool{}
	for _, err := range violations(m) {
		var v *graph.VerifyError
		if errors.As(err, &v) && v.Rule == ruleScope {
			undefined = append(undefined, err)
		}
		s.known[violationKey(err)] = true
	}
	if n := len(s.known); n > 0 && len(undefined) == 0 {
		s.verbosef("the input violates the ONNX standard in %s; whatever can be is done all the same", count(n, "place"))
	}
	return badModel(joinErrors(undefined))
}

// verify checks a model about to be written. A violation that its input did not have is a bug of a stage.
func (s *session) verify(m *graph.Model) error {
	var fresh []error
	for _, err := range violations(m) {
		if !s.known[violationKey(err)] {
			fresh = append(fresh, err)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return hint(fmt.Errorf("the result is not valid: %w", joinErrors(fresh)),
		"this is a bug in gradtool: please report it with the command line and, if you can, the model")
}

func violations(m *graph.Model) []error {
	var out []error
	for _, err := range []error{graph.Verify(m), op.Verify(m)} {
		if err != nil {
			out = append(out, problems(err)...)
		}
	}
	return out
}

// violationKey identifies a violation across the changes that a stage makes around it.
func violationKey(err error) string {
	var v *graph.VerifyError
	if !errors.As(err, &v) {
		return err.Error()
	}
	key := fmt.Sprint(v.Rule)
	if v.Node != nil {
		key += " node " + v.Node.Label()
	}
	if v.Value != nil {
		key += " value " + v.Value.Name
	}
	if v.Graph != nil && v.Node == nil && v.Value == nil {
		key += " graph " + v.Graph.Name
	}
	return key
}
