package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/suggest"
)

// feedFlags say what goes into a model that is run.
func feedFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "in", Usage: "read inputs from `[NAME=]FILE`, a .pb, .npy or .npz file, or from a folder with input_0.pb, ...; repeatable"},
		&cli.GenericFlag{Name: "random", Value: &optional{accepts: isSeed}, Usage: "make random values for inputs that are not given: `SEED`"},
		dimFlag(),
	}
}

func isSeed(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// seed returns what --random says.
func (s *session) seed() (seed uint64, given bool, err error) {
	o, _ := s.Generic("random").(*optional)
	if o == nil || !o.given {
		return 0, false, nil
	}
	if o.value == "" {
		return 1, true, nil
	}
	seed, err = strconv.ParseUint(o.value, 10, 64)
	if err != nil {
		return 0, true, usagef("--random: %q is not a seed: want a number", o.value)
	}
	return seed, true, nil
}

// givenInputs reads what --in names, by input.
func (s *session) givenInputs(m *graph.Model) (map[*graph.Value]*op.Array, error) {
	out := map[*graph.Value]*op.Array{}
	var bad []error
	for _, arg := range s.StringSlice("in") {
		if err := s.readInput(m, arg, out); err != nil {
			bad = append(bad, err)
		}
	}
	return out, joinErrors(bad)
}

func (s *session) readInput(m *graph.Model, arg string, out map[*graph.Value]*op.Array) error {
	name, path, ok := "", arg, false
	if !fileExists(arg) {
		if name, path, ok = cutInput(m, arg); !ok {
			path = arg
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("--in: %w", err)
	}
	if info.IsDir() {
		given, err := readDir(m, path)
		if err != nil {
			return err
		}
		for i, a := range given {
			out[m.Graph.Inputs[i]] = a
		}
		return nil
	}
	var v *graph.Value
	if ok {
		if v, err = inputNamed(m, name); err != nil {
			return err
		}
	}
	list, err := readValues(path, v)
	if err != nil {
		return err
	}
	for _, x := range list {
		w := v
		if w == nil {
			if w, err = inputFor(m, x.name, path); err != nil {
				return err
			}
		}
		a, err := s.convert(w, x.value)
		if err != nil {
			return err
		}
		out[w] = a
	}
	return nil
}

// cutInput splits NAME=FILE; names may contain the separator, so an input's own name goes first.
func cutInput(m *graph.Model, arg string) (name, path string, ok bool) {
	for _, v := range m.Graph.Inputs {
		if rest, found := strings.CutPrefix(arg, v.Name+"="); found {
			return v.Name, rest, true
		}
	}
	return strings.Cut(arg, "=")
}

func inputNamed(m *graph.Model, name string) (*graph.Value, error) {
	for _, v := range m.Graph.Inputs {
		if v.Name == name {
			return v, nil
		}
	}
	err := usagef("--in: the model has no input %q", name)
	if near := suggest.Nearest(name, names(m.Graph.Inputs)); len(near) > 0 {
		return nil, hint(err, "did you mean %s?", orList(near))
	}
	return nil, hint(err, "its inputs are %s", few(names(m.Graph.Inputs)))
}

// inputFor returns the input that a file's array is for: that of its name; without a name, the only input.
func inputFor(m *graph.Model, name, path string) (*graph.Value, error) {
	for _, v := range m.Graph.Inputs {
		if v.Name == name && name != "" {
			return v, nil
		}
	}
	required := slices.DeleteFunc(slices.Clone(m.Graph.Inputs), func(v *graph.Value) bool { return v.Init != nil })
	if len(required) == 1 && (name == "" || filepath.Ext(path) != ".npz") {
		return required[0], nil
	}
	if name == "" {
		return nil, usagef("--in: which input is %s for? want --in NAME=%s; the inputs are %s", path, path, few(names(required)))
	}
	return inputNamed(m, name)
}

// readValues reads one file. v is the input it is for, if that is known.
func readValues(path string, v *graph.Value) ([]named, error) {
	switch filepath.Ext(path) {
	case ".npy", ".npz":
		list, err := readNumPy(path)
		if err == nil && v != nil && len(list) != 1 {
			return nil, fmt.Errorf("%s holds %d arrays: leave out the name before =", path, len(list))
		}
		return list, err
	case ".pb":
		t := graph.Type{}
		if v != nil {
			t = v.Type
		}
		x, err := readProto(path, t)
		return []named{x}, err
	}
	return nil, usagef("--in: %s: want a .pb, .npy or .npz file or a folder", path)
}

// readDir reads input_0.pb, input_1.pb, ... of a folder, for the inputs in order.
func readDir(m *graph.Model, dir string) ([]*op.Array, error) {
	var out []*op.Array
	for i := 0; ; i++ {
		path := filepath.Join(dir, fmt.Sprintf("input_%d.pb", i))
		if !fileExists(path) {
			break
		}
		if i >= len(m.Graph.Inputs) {
			return nil, fmt.Errorf("%s: the model has only %s", path, count(len(m.Graph.Inputs), "input"))
		}
		x, err := readProto(path, m.Graph.Inputs[i].Type)
		if err != nil {
			return nil, err
		}
		out = append(out, x.value)
	}
	if len(out) == 0 && len(m.Graph.Inputs) > 0 {
		return nil, fmt.Errorf("%s holds no input_0.pb", dir)
	}
	return out, nil
}

// convert brings a to the element type of input v where no value is lost but to rounding: NumPy makes
// float64 and int64 of whatever is typed.
func (s *session) convert(v *graph.Value, a *op.Array) (*op.Array, error) {
	want := v.Type.Elem
	if !v.Type.IsTensor() || want == graph.Undefined || a.Elem == want || !a.IsTensor() {
		return a, nil
	}
	out := op.NewArray(want, a.Shape, false)
	switch {
	case a.IsFloat() && out.IsFloat():
		for i := range a.Len() {
			out.SetFloat(i, a.Float(i))
		}
		out.Round()
	case a.I64 != nil && out.I64 != nil:
		copy(out.I64, a.I64)
		out.Round()
		if !slices.Equal(out.I64, a.I64) {
			return nil, fmt.Errorf("input %q is %s: values of the given %s do not fit", v.Name, v.Type, a.Elem)
		}
	default:
		return nil, fmt.Errorf("input %q is %s, got %s", v.Name, v.Type, a.Type())
	}
	s.verbosef("input %q: converted from %s to %s", v.Name, a.Elem, want)
	return out, nil
}

// bindGiven puts the sizes that given inputs show in place of symbols in the other inputs' types, and returns
// the sizes.
func bindGiven(m *graph.Model, given map[*graph.Value]*op.Array) map[string]int64 {
	sizes := map[string]int64{}
	for _, v := range m.Graph.Inputs {
		a := given[v]
		if a == nil || len(v.Type.Shape) != len(a.Shape) {
			continue
		}
		for i, d := range v.Type.Shape {
			if syms := d.Symbols(); len(syms) == 1 && d.Same(graph.Sym(syms[0])) {
				sizes[syms[0]] = int64(a.Shape[i])
			}
		}
	}
	return sizes
}

// randomInputs makes values for the inputs that have none, of the sizes that their types and the given
// symbols say: normal floats, integers below what bound says of an input, fair bools. Inputs of unknown size
// are errors, all of them.
func randomInputs(m *graph.Model, given map[*graph.Value]*op.Array, sizes map[string]int64, seed uint64, bound func(v *graph.Value) int64) error {
	rng := rand.New(rand.NewPCG(seed, 5))
	var bad []error
	var missing []string
	for _, v := range m.Graph.Inputs {
		if given[v] != nil || v.Init != nil {
			continue
		}
		if !v.Type.IsTensor() || !v.Type.Elem.Valid() || v.Type.Shape == nil {
			bad = append(bad, fmt.Errorf("input %q is %s: no random value can be made of that; give it with --in", v.Name, v.Type))
			continue
		}
		shape := make([]int, len(v.Type.Shape))
		known := true
		for i, d := range v.Type.Shape {
			e := d.Eval(sizes)
			n, ok := e.Int()
			if !ok {
				known = false
				for _, name := range e.Symbols() {
					if !containsString(missing, name) {
						missing = append(missing, name)
					}
				}
			}
			shape[i] = int(n)
		}
		switch err := op.CheckSize(v.Type.Elem, shape, false); {
		case !known:
			bad = append(bad, fmt.Errorf("the size of input %q, %s, is not known", v.Name, v.Type))
		case err != nil:
			bad = append(bad, fmt.Errorf("input %q, %s, is too large for random values: %w", v.Name, v.Type, err))
		default:
			given[v] = randomArray(rng, v, shape, bound(v))
		}
	}
	err := joinErrors(bad)
	if len(missing) > 0 {
		var flags []string
		for _, name := range missing {
			flags = append(flags, "--dim "+name+"=SIZE")
		}
		return hint(err, "say how large: %s", strings.Join(flags, " "))
	}
	if err != nil {
		return hint(err, "give it with --in")
	}
	return nil
}

func randomArray(rng *rand.Rand, v *graph.Value, shape []int, bound int64) *op.Array {
	a := op.NewArray(v.Type.Elem, shape, false)
	for i := range a.Len() {
		switch {
		case a.IsFloat():
			a.SetFloat(i, rng.NormFloat64())
		case a.I64 != nil:
			a.I64[i] = rng.Int64N(bound)
		case a.C128 != nil:
			a.C128[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		case a.Str != nil:
			a.Str[i] = string(rune('a' + rng.IntN(26)))
		}
	}
	return a.Round()
}

// indexBound returns a number above every integer that may be fed to v: the least size of the axes that
// v, or what is made of it without change of values, indexes; else what its element type suggests.
func indexBound(v *graph.Value) int64 {
	least := int64(math.MaxInt64)
	seen := map[*graph.Value]bool{}
	var visit func(x *graph.Value)
	visit = func(x *graph.Value) {
		if x == nil || seen[x] {
			return
		}
		seen[x] = true
		for _, u := range x.Uses() {
			if u.Node == nil {
				continue
			}
			if d, ok := indexedSize(u); ok {
				least = min(least, d)
			}
			if keepsValues(u) {
				visit(u.Node.Result(0))
			}
		}
	}
	visit(v)
	switch {
	case v.Type.Elem == graph.Bool:
		return 2
	case least < math.MaxInt64:
		return max(least, 1)
	case v.Type.Elem == graph.Uint8:
		return 256
	}
	return 2
}

// keepsValues reports whether the first result of the using node holds values of the used operand.
func keepsValues(u graph.Use) bool {
	switch u.Node.Op {
	case "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand", "Tile", "Slice", "Gather", "GatherElements", "ReduceMax":
		return u.Index == 0
	case "Concat", "Max", "Min":
		return true
	case "Where":
		return u.Index > 0
	}
	return false
}

// indexedSize returns the size of the axis that the used value indexes, if the use is an index.
func indexedSize(u graph.Use) (int64, bool) {
	n := u.Node
	data := n.Operand(0)
	if data == nil || data.Type.Shape == nil {
		return 0, false
	}
	shape := data.Type.Shape
	dim := func(axis int64) (int64, bool) {
		if axis < 0 {
			axis += int64(len(shape))
		}
		if axis < 0 || axis >= int64(len(shape)) {
			return 0, false
		}
		return shape[axis].Int()
	}
	switch n.Op {
	case "Gather", "GatherElements", "ScatterElements", "Scatter":
		if u.Index == 1 {
			return dim(n.Int("axis", 0))
		}
	case "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss":
		if u.Index == 1 {
			return dim(1)
		}
	case "GatherND", "ScatterND":
		if u.Index == 1 {
			return leastDim(shape)
		}
	}
	return 0, false
}

func leastDim(shape graph.Shape) (int64, bool) {
	least, found := int64(math.MaxInt64), false
	for _, d := range shape {
		if n, ok := d.Int(); ok {
			least, found = min(least, n), true
		}
	}
	return least, found
}

// feed returns one value per input of m: given by --in, random with --random or always (for checks), else nil
// for inputs with a default. The model's types must be inferred; symbols take the sizes of --dim and of given inputs.
func (s *session) feed(m *graph.Model, given map[*graph.Value]*op.Array, always bool) ([]*op.Array, error) {
	return s.feedBelow(m, given, always, indexBound)
}

// feedBelow is feed with what random integers are below of.
func (s *session) feedBelow(m *graph.Model, given map[*graph.Value]*op.Array, always bool, bound func(v *graph.Value) int64) ([]*op.Array, error) {
	seed, random, err := s.seed()
	if err != nil {
		return nil, err
	}
	if !random {
		seed = 1
	}
	dims, err := s.dims()
	if err != nil {
		return nil, err
	}
	sizes := bindGiven(m, given)
	for name, n := range dims {
		sizes[name] = n
	}
	if random || always {
		if err := randomInputs(m, given, sizes, seed, bound); err != nil {
			return nil, err
		}
	}
	var bad []error
	out := make([]*op.Array, len(m.Graph.Inputs))
	for i, v := range m.Graph.Inputs {
		out[i] = given[v]
		if out[i] == nil && v.Init == nil {
			bad = append(bad, fmt.Errorf("input %q (%s) is missing", v.Name, v.Type))
		}
	}
	return out, hint(joinErrors(bad), "give inputs with --in NAME=FILE, or random ones with --random")
}
