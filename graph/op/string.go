package op

import (
	"regexp"
	"slices"
	"strings"

	"gradtool/graph"
)

// stringDefs defines the operators on strings.
func stringDefs() []Def {
	words := func(shape []int, v ...float64) Arg { return TV(graph.String, shape, v...) }
	s := graph.StringAttr
	list := func(name string, v ...string) *graph.Attr {
		return &graph.Attr{Name: name, Type: graph.AttrStrings, Strings: v}
	}
	return []Def{
		{Name: "StringConcat", Facts: Elementwise | Broadcasts, Infer: inferBroadcast(nil), Eval: evalStringConcat, Samples: []Sample{
			pair(words([]int{2, 2}, 1, 2, 3, 4), words([]int{2}, 5, 6)), pair(words([]int{2}, 1, 2), words(nil, 5))}},
		{Name: "StringSplit", Facts: DataDependent, Infer: inferStringSplit, Eval: evalStringSplit, Samples: []Sample{
			{In: []Arg{words([]int{2}, 1.25, 2)}, Attrs: []*graph.Attr{s("delimiter", ".")}, Outs: 2}, {Name: "space", In: []Arg{words([]int{1, 2}, 1, 2)}, Outs: 2},
			{Name: "limit", In: []Arg{words([]int{2}, 12121, 2)}, Attrs: []*graph.Attr{s("delimiter", "1"), graph.IntAttr("maxsplit", 1)}, Outs: 2},
			{Name: "empty", In: []Arg{words([]int{0})}, Outs: 2}}},
		{Name: "StringNormalizer", Facts: DataDependent, Infer: inferStringNormalizer, Eval: evalStringNormalizer, Samples: []Sample{
			{In: []Arg{words([]int{3}, 1, 2, 3)}, Attrs: []*graph.Attr{list("stopwords", "2")}}, {Name: "none-left", In: []Arg{words([]int{1, 1}, 2)}, Attrs: []*graph.Attr{list("stopwords", "2"), s("case_change_action", "UPPER")}}}},
		{Name: "RegexFullMatch", Facts: Elementwise, Infer: inferTest, Eval: evalRegexFullMatch, Samples: []Sample{
			{In: []Arg{words([]int{2}, 12, 3)}, Attrs: []*graph.Attr{s("pattern", "[0-9]{2}")}}}},
		{Name: "TfIdfVectorizer", Infer: inferTfIdf, Eval: evalTfIdf, Samples: tfIdfSamples()},
	}
}

// strings returns string operand i, an error if it is none.
func (c *EvalCtx) strings(i int) ([]string, error) {
	if x := c.In[i]; x.Str != nil {
		return x.Str, nil
	}
	return nil, c.Errorf("operand %d must hold strings, is %s", i, c.In[i].Type())
}

// evalStringConcat appends the second operand's strings to the first's.
func evalStringConcat(c *EvalCtx) error {
	a, b := c.In[0], c.In[1]
	if a.Str == nil || b.Str == nil {
		return errKinds(a, b)
	}
	p, err := newBroadcast(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	y := a.NewLike(p.shape)
	zipRuns(p, y.Str, a.Str, b.Str, workExp, runOf(func(x, y string) string { return x + y }))
	c.Set(0, y)
	return nil
}

func inferStringSplit(c *InferCtx) error {
	shape := c.Shape(0)
	if shape != nil {
		shape = append(shape.Clone(), graph.Unknown())
	}
	c.Set(0, graph.String, shape)
	c.Set(1, graph.Int64, c.Shape(0))
	return nil
}

// evalStringSplit splits at the delimiter, or at runs of white space without one, and pads with empty strings.
func evalStringSplit(c *EvalCtx) error {
	in, err := c.strings(0)
	if err != nil {
		return err
	}
	delimiter, limit := c.Node.Str("delimiter", ""), -1
	if c.Node.HasAttr("maxsplit") {
		limit = int(c.Node.Int("maxsplit", 0)) + 1
	}
	parts, most := make([][]string, len(in)), 0
	for i, s := range in {
		parts[i] = splitString(s, delimiter, limit)
		most = max(most, len(parts[i]))
	}
	shape := c.In[0].Shape
	y, n := c.New(graph.String, append(slices.Clone(shape), most)), c.New(graph.Int64, shape)
	for i, p := range parts {
		copy(y.Str[i*most:], p)
		n.I64[i] = int64(len(p))
	}
	c.Set(0, y)
	c.Set(1, n)
	return nil
}

// splitString returns at most limit pieces of s, all for a negative limit.
func splitString(s, delimiter string, limit int) []string {
	if delimiter != "" {
		return strings.SplitN(s, delimiter, limit)
	}
	if limit < 0 {
		return strings.Fields(s)
	}
	var out []string
	for s = strings.TrimSpace(s); s != ""; {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 || len(out) == limit-1 {
			return append(out, s)
		}
		out = append(out, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	return out
}

func isSpace(r rune) bool { return strings.TrimSpace(string(r)) == "" }

func inferStringNormalizer(c *InferCtx) error {
	s := c.Shape(0)
	if s != nil && len(s) != 1 && len(s) != 2 {
		return c.Errorf("the operand must have shape [C] or [1, C], has %s", c.In(0))
	}
	if s != nil {
		s = s.Clone()
		s[len(s)-1] = graph.Unknown()
	}
	c.Set(0, graph.String, s)
	return nil
}

// evalStringNormalizer drops stop words and changes case. If nothing is left the result is one empty string.
func evalStringNormalizer(c *EvalCtx) error {
	in, err := c.strings(0)
	if err != nil {
		return err
	}
	shape := slices.Clone(c.In[0].Shape)
	if len(shape) != 1 && (len(shape) != 2 || shape[0] != 1) {
		return c.Errorf("the operand must have shape [C] or [1, C], has %v", shape)
	}
	var action func(string) string
	switch a := c.Node.Str("case_change_action", "NONE"); a {
	case "NONE":
		action = func(s string) string { return s }
	case "LOWER":
		action = strings.ToLower
	case "UPPER":
		action = strings.ToUpper
	default:
		return c.Errorf("attribute case_change_action: %q is none of NONE, LOWER, UPPER", a)
	}
	fold := strings.ToLower
	if c.Node.Int("is_case_sensitive", 0) != 0 {
		fold = func(s string) string { return s }
	}
	stop := map[string]bool{}
	if a := c.Node.Attr("stopwords"); a != nil {
		for _, s := range a.Strings {
			stop[fold(s)] = true
		}
	}
	var out []string
	for _, s := range in {
		if !stop[fold(s)] {
			out = append(out, action(s))
		}
	}
	if len(out) == 0 {
		out = []string{""}
	}
	shape[len(shape)-1] = len(out)
	y := c.New(graph.String, shape)
	copy(y.Str, out)
	c.Set(0, y)
	return nil
}

// evalRegexFullMatch tells which strings match the pattern from end to end.
func evalRegexFullMatch(c *EvalCtx) error {
	in, err := c.strings(0)
	if err != nil {
		return err
	}
	re, err := regexp.Compile(`^(?:` + c.Node.Str("pattern", "") + `)$`)
	if err != nil {
		return c.Errorf("attribute pattern: %w", err)
	}
	y := c.New(graph.Bool, c.In[0].Shape)
	for i, s := range in {
		y.I64[i] = truth(re.MatchString(s))
	}
	c.Set(0, y)
	return nil
}
