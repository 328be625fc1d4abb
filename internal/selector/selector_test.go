package selector

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func testSelector() Selector {
	return Selector{
		What:     "value",
		Names:    []string{"x", "fc1.weight", "fc1.bias", "fc2.weight", "block/0/conv,w", "@odd"},
		Exact:    []string{"hidden"},
		Keywords: []Keyword{{"params", []string{"fc1.weight", "fc1.bias"}}, {"inputs", []string{"x"}}, {"none", nil}},
		ReadFile: func(path string) ([]byte, error) {
			if path == "list" {
				return []byte("# comment\n\n  fc2.weight \r\nparams\n"), nil
			}
			return nil, fs.ErrNotExist
		},
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		patterns, want []string
	}{
		{[]string{"x"}, []string{"x"}},
		{[]string{"fc2.weight", "x"}, []string{"x", "fc2.weight"}},
		{[]string{"*.weight"}, []string{"fc1.weight", "fc2.weight"}},
		{[]string{"fc?.bias"}, []string{"fc1.bias"}},
		{[]string{"block*"}, []string{"block/0/conv,w"}},
		{[]string{"block/0/conv,w"}, []string{"block/0/conv,w"}},
		{[]string{"x,fc1.bias"}, []string{"x", "fc1.bias"}},
		{[]string{"params,inputs"}, []string{"x", "fc1.weight", "fc1.bias"}},
		{[]string{`re:^fc\d+\.w`}, []string{"fc1.weight", "fc2.weight"}},
		{[]string{"@list"}, []string{"fc1.weight", "fc1.bias", "fc2.weight"}},
		{[]string{"@odd"}, []string{"@odd"}},
		{[]string{"hidden", "x"}, []string{"x", "hidden"}},
		{[]string{"none", "x"}, []string{"x"}},
		{[]string{"none,x"}, []string{"x"}},
		{nil, nil},
	} {
		got, err := testSelector().Select(c.patterns)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Select(%q) = %q, %v, want %q", c.patterns, got, err, c.want)
		}
	}
}

func TestSelectErrors(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		want     string // parts of the message, separated by |
	}{
		{[]string{"fc1.wieght"}, `no value matches "fc1.wieght"; did you mean "fc1.weight"`},
		{[]string{"zzzz", "yyyy"}, `matches "zzzz"|matches "yyyy"|there are "x"|and 1 more`},
		{[]string{"x,fc1.wieght"}, `no value matches "fc1.wieght"`},
		{[]string{"hid*"}, `did you mean "hidden"`},
		{[]string{"re:("}, "missing closing"},
		{[]string{"none"}, "there are no none"},
		{[]string{"@missing"}, "file does not exist"},
	} {
		_, err := testSelector().Select(c.patterns)
		if err == nil {
			t.Errorf("Select(%q) succeeded, want an error", c.patterns)
			continue
		}
		for part := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Select(%q): error %q does not say %q", c.patterns, err, part)
			}
		}
		var e *Error
		if !errors.As(err, &e) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Select(%q): error is %T", c.patterns, err)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b.c", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"*a*b*", "xaybz", true}, {"a?c", "aßc", true}, {"a?c", "ac", false}, {"[a]", "a", false}, {"[a]", "[a]", true}, {"**", "x", true},
		{"*aab", "aaab", true},
	} {
		if got := Glob(c.pattern, c.name); got != c.want {
			t.Errorf("Glob(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}
