package memplan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gradtool/graph"
)

// MetaPlan is the key of a model's metadata_props under which its plan is kept, as JSON.
const MetaPlan = "gradtool.plan"

// ErrNoPlan says that a model has no plan.
var ErrNoPlan = errors.New("the model has no memory plan")

// Write puts the plan in the model's metadata.
func (p *Plan) Write(m *graph.Model) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	m.Meta.Set(MetaPlan, string(text))
	return nil
}

// Read returns the plan in the model's metadata; ErrNoPlan if it has none.
func Read(m *graph.Model) (*Plan, error) {
	text := m.Meta.Get(MetaPlan)
	if text == "" {
		return nil, ErrNoPlan
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	p := &Plan{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("metadata %q: %w", MetaPlan, err)
	}
	if p.Schema != PlanSchema {
		return nil, fmt.Errorf("metadata %q has the schema %q, want %q", MetaPlan, p.Schema, PlanSchema)
	}
	return p, nil
}
