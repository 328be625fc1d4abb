package op

import (
	"errors"
	"slices"

	"gradtool/graph"
)

// Call adds the nodes of a function's body, applied to the given operands (nil: omitted) and, of the attributes, those that the
// function declares, and returns its results. The body must be in canonical form and call no other function.
func (b *Builder) Call(f *graph.Function, attrs []*graph.Attr, in []*graph.Value) ([]*graph.Value, error) {
	m := b.G.Model
	if errs := importOpsets(m, f); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	name := f.Name
	if b.Prefix != "" {
		name = b.Prefix + "/" + name
	}
	outs := make([]string, len(f.Body.Outputs))
	for i, v := range f.Body.Outputs {
		outs[i] = m.Fresh(name + "/" + v.Name)
	}
	n := b.G.NewNode(f.Domain, f.Name, in, outs)
	n.Name = m.FreshNode(name)
	for _, a := range attrs {
		if slices.Contains(f.Attrs, a.Name) || slices.ContainsFunc(f.Defaults, func(d *graph.Attr) bool { return d.Name == a.Name }) {
			n.SetAttr(a)
		}
	}
	if b.Role != "" {
		n.Meta.Set(graph.MetaRole, b.Role)
	}
	if b.From != "" {
		n.Meta.Set(graph.MetaFrom, b.From)
	}
	results := slices.Clone(n.Out)
	nodes, err := newUpgrader(m).instance(n, f)
	for i := range n.In { // the call itself goes
		n.SetIn(i, nil)
	}
	if err != nil {
		return nil, err
	}
	for _, k := range nodes {
		b.Put(k)
	}
	return results, nil
}
