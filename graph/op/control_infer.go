package op

import (
	"errors"
	"fmt"

	"gradtool/graph"
)

// joinTypes returns what the types a and b of values that can take each other's place have in common. Element types
// and kinds must agree.
func joinTypes(a, b graph.Type) (graph.Type, error) {
	switch {
	case a.Kind == graph.KindUnknown:
		return vague(b), nil
	case b.Kind == graph.KindUnknown:
		return vague(a), nil
	case a.Kind != b.Kind:
		return a, fmt.Errorf("types differ: %s and %s", a, b)
	}
	t := a
	if t.Elem == graph.Undefined {
		t.Elem = b.Elem
	} else if b.Elem != graph.Undefined && b.Elem != t.Elem {
		return a, fmt.Errorf("element types differ: %s and %s", a, b)
	}
	t.Shape = joinShapes(a.Shape, b.Shape)
	if a.Inner != nil && b.Inner != nil {
		inner, err := joinTypes(*a.Inner, *b.Inner)
		if err != nil {
			return a, err
		}
		t.Inner = &inner
	} else if t.Inner == nil {
		t.Inner = b.Inner
	}
	return t, nil
}

// vague returns t without its shape: the type of a value that takes the place of one of which nothing is known.
func vague(t graph.Type) graph.Type {
	t.Shape = nil
	if t.Inner != nil {
		inner := vague(*t.Inner)
		t.Inner = &inner
	}
	return t
}

// joinShapes keeps the dimensions on which a and b agree.
func joinShapes(a, b graph.Shape) graph.Shape {
	if a == nil || b == nil || len(a) != len(b) {
		return nil
	}
	out := make(graph.Shape, len(a))
	for i := range a {
		if a[i].Equal(b[i]) {
			out[i] = a[i]
		}
	}
	return out
}

// maxRounds bounds how often a body is inferred until the types it carries stay the same; what still changes then is
// taken to be of unknown shape.
const maxRounds = 6

// bodyInfer infers the body of a loop. The body's inputs from inAt on hold, in the first iteration, the values init and
// later what the body's outputs from outAt on were.
type bodyInfer struct {
	c           *InferCtx
	body        *graph.Graph
	inAt, outAt int
	init        []*graph.Value
	prepare     func() // types the other inputs
	declared    map[*graph.Value]graph.Type
}

// input merges the type t into the declared one of body input i.
func (l *bodyInfer) input(i int, t graph.Type) {
	v := l.body.Inputs[i]
	v.Type, _ = merge(v.Type, t)
}

// invariant reports whether carried value k keeps its first value throughout.
func (l *bodyInfer) invariant(k int) bool {
	return l.body.Outputs[l.outAt+k] == l.body.Inputs[l.inAt+k]
}

// run returns the types that hold for the carried values in every iteration and after the last. bodyErr is what is
// wrong inside the body, of which nothing is known to run; err what is wrong with the loop.
func (l *bodyInfer) run() (types []graph.Type, bodyErr, err error) {
	in := l.c.Info
	l.declared = map[*graph.Value]graph.Type{}
	for g := range l.body.Graphs() {
		for v := range g.Values() {
			l.declared[v] = v.Type
		}
	}
	types = make([]graph.Type, len(l.init))
	for k, v := range l.init {
		if v == nil {
			return nil, nil, l.c.Errorf("carried value %d has no initial value", k)
		}
		var clash bool
		if types[k], clash = merge(l.body.Inputs[l.inAt+k].Type, v.Type); clash {
			types[k] = v.Type
		}
	}
	for round := 0; ; round++ {
		l.forget()
		l.prepare()
		for k := range l.init {
			l.carry(k, types[k], round == 0)
		}
		bodyErr = errors.Join(in.graph(l.body)...)
		changed := false
		for k := range types {
			next := l.body.Outputs[l.outAt+k]
			if opensOptional(types[k], next.Type) {
				continue
			}
			t, err := joinTypes(types[k], next.Type)
			if err != nil {
				return nil, bodyErr, l.c.Errorf("carried value %d: it starts as %s and becomes %s", k, types[k], next.Type)
			}
			if round == 0 && in.isEmpty(l.init[k]) && next.Type.Kind == graph.KindSequence {
				t = next.Type // nothing was in the sequence that could contradict
			}
			if !t.Same(types[k]) {
				changed = true
				if round >= maxRounds {
					t = vague(t)
				}
				types[k] = t
			}
		}
		if !changed {
			for k := range types {
				if next := l.body.Outputs[l.outAt+k].Type; opensOptional(types[k], next) {
					types[k] = next
				}
			}
			return types, bodyErr, nil
		}
	}
}

// opensOptional reports whether a loop that starts with an optional t goes on with its element type u, as the standard
// allows: an element stands for the optional that holds it.
func opensOptional(t, u graph.Type) bool {
	if t.Kind != graph.KindOptional || t.Inner == nil || u.Kind == graph.KindOptional || u.Kind == graph.KindUnknown {
		return false
	}
	_, err := joinTypes(*t.Inner, u)
	return err == nil
}

// carry gives body input k its type and, in as far as it is sure for every iteration, its value.
func (l *bodyInfer) carry(k int, t graph.Type, first bool) {
	in, v, x := l.c.Info, l.body.Inputs[l.inAt+k], l.init[k]
	v.Type = t
	if n, ok := in.lens[x]; ok && (l.invariant(k) || first && in.isEmpty(x)) {
		in.lens[v] = n
	}
	if !l.invariant(k) {
		return
	}
	if d, ok := in.dims[x]; ok {
		in.dims[v] = d
	}
	if a := in.Const(x); a != nil {
		in.consts[v] = a
	}
}

// forget takes back what an earlier round found out about the body.
func (l *bodyInfer) forget() {
	in := l.c.Info
	for v, t := range l.declared {
		v.Type = t
		delete(in.consts, v)
		delete(in.dims, v)
		delete(in.lens, v)
	}
}
