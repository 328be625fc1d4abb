package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// naming names the inputs and outputs that a stage adds.
type naming struct {
	Renamed []string // wanted names that were taken, as "want -> got"
}

// input adds a graph input.
func (r *naming) input(b *op.Builder, want string, t graph.Type) *graph.Value {
	t.Shape = t.Shape.Clone()
	v := b.G.AddInput(b.G.Model.Fresh(want), t)
	r.noteName(want, v.Name)
	return v
}

// output makes v a graph output of the given name, through an Identity where v must keep its own.
func (r *naming) output(b *op.Builder, v *graph.Value, want string) *graph.Value {
	role := ""
	if v.Def != nil {
		role = v.Def.Meta.Get(graph.MetaRole)
	}
	if v.Def == nil || v.Graph != b.G || v.IsOutput() || role != graph.RoleBackward && role != graph.RoleTangent && role != graph.RoleLoss {
		v = b.Unary("Identity", v)
	}
	name := b.G.Model.Fresh(want)
	r.noteName(want, name)
	v.Name = name
	b.G.AddOutput(v)
	return v
}

func (r *naming) noteName(want, got string) {
	if want != got {
		r.Renamed = append(r.Renamed, want+" -> "+got)
	}
}
