package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type opKey struct{ domain, name string }

// table is the parsed form of the table files, whose notation is described at their top.
type table struct {
	all      []*Schema
	byOp     map[opKey][]*Schema
	maxOpset map[string]int
	domains  []string
	types    map[string]Type     // the short names read so far
	lists    map[string]*TypeSet // the type lists read so far, by their text
}

func newTable() *table {
	return &table{
		byOp:     map[opKey][]*Schema{},
		maxOpset: map[string]int{},
		types:    map[string]Type{},
		lists:    map[string]*TypeSet{},
	}
}

// parse adds the schemas of one table file. Errors name the line.
func (t *table) parse(text string, contrib bool) error {
	p := parser{table: t, contrib: contrib, sets: map[string]*TypeSet{}}
	line := 0
	for s := range strings.SplitSeq(text, "\n") {
		line++
		if s == "" || s[0] == '#' {
			continue
		}
		if err := p.line(s); err != nil {
			return fmt.Errorf("schema: line %d: %q: %w", line, s, err)
		}
	}
	return p.finish()
}

// sort orders the schemas and indexes them by operator.
func (t *table) sort() {
	slices.SortStableFunc(t.all, func(a, b *Schema) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Since, b.Since))
	})
	for _, s := range t.all {
		k := opKey{s.Domain, s.Name}
		t.byOp[k] = append(t.byOp[k], s)
	}
	slices.Sort(t.domains)
}

// parser reads one table file; sets and the open schema are its state between lines.
type parser struct {
	*table
	contrib bool
	sets    map[string]*TypeSet
	domain  string
	open    *Schema
}

func (p *parser) line(s string) error {
	body, indented := strings.CutPrefix(s, "  ")
	word, rest, _ := strings.Cut(body, " ")
	switch {
	case indented && p.open == nil:
		return fmt.Errorf("no schema is open")
	case indented:
		return p.detail(word, rest)
	case word == "set":
		name, list, _ := strings.Cut(rest, " ")
		set, err := p.typeList(list)
		p.sets[name] = set
		return err
	case word == "domain":
		return p.setDomain(rest)
	}
	if err := p.finish(); err != nil {
		return err
	}
	return p.head(word, rest)
}

func (p *parser) setDomain(rest string) error {
	name, opset, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(opset)
	if err != nil {
		return err
	}
	p.domain = canonical(name)
	if _, seen := p.maxOpset[p.domain]; !seen {
		p.domains = append(p.domains, p.domain)
	}
	p.maxOpset[p.domain] = max(p.maxOpset[p.domain], n)
	return nil
}

// head opens a schema.
func (p *parser) head(name, rest string) error {
	f := strings.Fields(rest)
	if len(f) < 3 {
		return fmt.Errorf("a schema needs a version and two counts")
	}
	s := &Schema{Domain: p.domain, Name: name, Contrib: p.contrib}
	var err error
	if s.Since, err = strconv.Atoi(f[0]); err != nil {
		return err
	}
	if s.MinIn, s.MaxIn, err = counts(f[1]); err != nil {
		return err
	}
	if s.MinOut, s.MaxOut, err = counts(f[2]); err != nil {
		return err
	}
	for _, flag := range f[3:] {
		switch flag {
		case "deprecated":
			s.Deprecated = true
		case "function":
			s.Function = true
		case "context-function":
			s.ContextFunction = true
		case "nondeterministic":
			s.Nondeterministic = true
		case "experimental":
			s.Experimental = true
		case "open-attributes":
			s.OpenAttrs = true
		default:
			return fmt.Errorf("unknown flag %q", flag)
		}
	}
	p.open = s
	p.all = append(p.all, s)
	return nil
}

// counts reads "least..most" or "least..".
func counts(s string) (least, most int, err error) {
	a, b, ok := strings.Cut(s, "..")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a range", s)
	}
	if least, err = strconv.Atoi(a); err != nil || b == "" {
		return least, Inf, err
	}
	most, err = strconv.Atoi(b)
	return least, most, err
}

func (p *parser) detail(word, rest string) error {
	base := strings.TrimRight(word, "?*!")
	mark := word[len(base):]
	switch base {
	case "in", "out":
		param, err := p.param(mark, rest)
		if base == "in" {
			p.open.In = append(p.open.In, param)
		} else {
			p.open.Out = append(p.open.Out, param)
		}
		return err
	case "type":
		name, list, _ := strings.Cut(rest, " ")
		set, err := p.typeList(list)
		p.open.TypeVars = append(p.open.TypeVars, TypeVar{name, set})
		return err
	case "attr":
		a, err := parseAttr(rest)
		a.Required = mark == "!"
		p.open.Attrs = append(p.open.Attrs, a)
		return err
	}
	return fmt.Errorf("unknown word %q", word)
}

// param reads "NAME TYPE [diff|nodiff]". A type that is no fixed type is taken for a variable; finish looks it up.
func (p *parser) param(mark, rest string) (Param, error) {
	name, rest, _ := strings.Cut(rest, " ")
	typ, diff, _ := strings.Cut(rest, " ")
	out := Param{Name: name}
	switch mark {
	case "":
	case "?":
		out.Kind = OptionalParam
	case "*", "**":
		out.Kind, out.Mixed = VariadicParam, mark == "**"
	default:
		return out, fmt.Errorf("unknown mark %q", mark)
	}
	switch diff {
	case "":
	case "diff":
		out.Diff = Differentiable
	case "nodiff":
		out.Diff = NonDifferentiable
	default:
		return out, fmt.Errorf("unknown word %q", diff)
	}
	if !strings.Contains(typ, "(") {
		out.TypeVar = typ
		return out, nil
	}
	set, err := p.typeList(typ)
	out.Types = set
	return out, err
}

// typeList reads types separated by spaces, or "@" and the name of a set.
func (p *parser) typeList(list string) (*TypeSet, error) {
	if name, ok := strings.CutPrefix(list, "@"); ok {
		if set := p.sets[name]; set != nil {
			return set, nil
		}
		return nil, fmt.Errorf("unknown set %q", name)
	}
	if set := p.lists[list]; set != nil {
		return set, nil
	}
	set := &TypeSet{}
	for name := range strings.SplitSeq(list, " ") {
		t, ok := p.types[name]
		if !ok {
			var err error
			if t, err = ParseType(longType(name)); err != nil {
				return nil, err
			}
			p.types[name] = t
		}
		set.add(t)
	}
	p.lists[list] = set
	return set, nil
}

// longType undoes the abbreviation of "tensor(float)" to "float".
func longType(name string) string {
	i := strings.LastIndexByte(name, '(') + 1
	if strings.Contains(name, "tensor(") || strings.Contains(name, "map(") {
		return name
	}
	elem := strings.TrimRight(name[i:], ")")
	return name[:i] + "tensor(" + elem + ")" + name[i+len(elem):]
}

// finish resolves the type variables of the open schema and closes it.
func (p *parser) finish() error {
	s := p.open
	p.open = nil
	if s == nil {
		return nil
	}
	for _, params := range [][]Param{s.In, s.Out} {
		for i := range params {
			if params[i].TypeVar == "" {
				continue
			}
			j := slices.IndexFunc(s.TypeVars, func(v TypeVar) bool { return v.Name == params[i].TypeVar })
			if j < 0 {
				return fmt.Errorf("schema: %s: %s has the unknown type variable %q", s.ID(), params[i].Name, params[i].TypeVar)
			}
			params[i].Types = s.TypeVars[j].Types
		}
	}
	return nil
}

// parseAttr reads "NAME TYPE [= DEFAULT]".
func parseAttr(rest string) (Attr, error) {
	decl, def, hasDef := strings.Cut(rest, " = ")
	name, typ, _ := strings.Cut(decl, " ")
	i := slices.Index(attrTypeNames[:], typ)
	if i <= 0 {
		return Attr{}, fmt.Errorf("unknown attribute type %q", typ)
	}
	a := Attr{Name: name, Type: AttrType(i)}
	if !hasDef {
		return a, nil
	}
	var err error
	a.Default, err = parseDefault(a.Type, def)
	return a, err
}

func parseDefault(t AttrType, s string) (any, error) {
	switch t {
	case AttrInt:
		return parseInt(s)
	case AttrFloat:
		return parseFloat(s)
	case AttrString:
		return strconv.Unquote(s)
	case AttrInts:
		return parseList(s, parseInt)
	case AttrFloats:
		return parseList(s, parseFloat)
	case AttrStrings:
		return parseList(s, strconv.Unquote)
	}
	return nil, fmt.Errorf("an attribute of type %s has no written default", t)
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func parseFloat(s string) (float32, error) {
	f, err := strconv.ParseFloat(s, 32)
	return float32(f), err
}

// parseList reads "[a b c]"; the members hold no spaces.
func parseList[T any](s string, item func(string) (T, error)) ([]T, error) {
	fields := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	out := make([]T, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = item(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}
