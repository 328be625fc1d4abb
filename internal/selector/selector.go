// Package selector picks names from a list by the patterns that people write on a command line.
//
// A pattern is a keyword, an exact name, a glob in which * stands for any text (also across / and .)
// and ? for one character, a regular expression after "re:" (unanchored, RE2 syntax), or "@file" for
// a file of patterns, one a line, where blank lines and lines beginning with # do not count. A
// pattern that matches nothing but contains commas is taken as a list.
package selector

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gradtool/internal/suggest"
)

// Keyword is a word that stands for a set of names.
type Keyword struct {
	Word  string
	Names []string
}

// Selector holds what there is to select from.
type Selector struct {
	What     string   // what the names are called in messages: "output", "value"
	Names    []string // what patterns match
	Exact    []string // further names that only their exact spelling selects
	Keywords []Keyword
	ReadFile func(path string) ([]byte, error)
}

// Error lists the patterns that select nothing.
type Error struct{ Problems []string }

// Error joins the problems, one per line.
func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

// Select returns the names that some pattern selects, in the order of Names, then of Exact. Every pattern must
// select something, but for a keyword beside other patterns: an *Error lists all that don't, with the names that may
// have been meant.
func (s Selector) Select(patterns []string) ([]string, error) {
	chosen := map[string]bool{}
	var problems []string
	all, err := s.expand(patterns)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		found, err := s.match(p)
		if err != nil {
			problems = append(problems, err.Error())
		}
		if err == nil && len(found) == 0 && strings.Contains(p, ",") && !strings.HasPrefix(p, "re:") {
			for _, part := range strings.Split(p, ",") {
				more, err := s.match(part)
				switch {
				case err != nil:
					problems = append(problems, err.Error())
				case len(more) == 0 && !s.isKeyword(part):
					problems = append(problems, s.nothing(part))
				}
				found = append(found, more...)
			}
		} else if err == nil && len(found) == 0 && !s.isKeyword(p) {
			problems = append(problems, s.nothing(p))
		}
		for _, n := range found {
			chosen[n] = true
		}
	}
	if len(problems) == 0 && len(chosen) == 0 && len(patterns) > 0 {
		problems = append(problems, "there are no "+strings.Join(patterns, " and no "))
	}
	if len(problems) > 0 {
		return nil, &Error{problems}
	}
	var out []string
	for _, n := range slices.Concat(s.Names, s.Exact, s.keywordNames()) {
		if chosen[n] {
			out = append(out, n)
			delete(chosen, n)
		}
	}
	return out, nil
}

func (s Selector) keywordNames() []string {
	var out []string
	for _, k := range s.Keywords {
		out = append(out, k.Names...)
	}
	return out
}

func (s Selector) isKeyword(p string) bool {
	return slices.ContainsFunc(s.Keywords, func(k Keyword) bool { return k.Word == p })
}

// expand replaces @file patterns by the lines of the files.
func (s Selector) expand(patterns []string) ([]string, error) {
	var out []string
	for _, p := range patterns {
		path, ok := strings.CutPrefix(p, "@")
		if !ok || slices.Contains(s.Names, p) {
			out = append(out, p)
			continue
		}
		text, err := s.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, line)
			}
		}
	}
	return out, nil
}

// match returns what one pattern selects.
func (s Selector) match(p string) ([]string, error) {
	for _, k := range s.Keywords {
		if k.Word == p {
			return k.Names, nil
		}
	}
	if slices.Contains(s.Names, p) || slices.Contains(s.Exact, p) {
		return []string{p}, nil
	}
	test := func(name string) bool { return Glob(p, name) }
	if expr, ok := strings.CutPrefix(p, "re:"); ok {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		test = re.MatchString
	}
	var out []string
	for _, n := range s.Names {
		if test(n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// nothing says that p selects nothing, and what was perhaps meant.
func (s Selector) nothing(p string) string {
	msg := fmt.Sprintf("no %s matches %q", s.What, p)
	words := slices.Concat(s.Names, s.Exact)
	for _, k := range s.Keywords {
		words = append(words, k.Word)
	}
	if near := suggest.Nearest(strings.Trim(p, "*"), words); len(near) > 0 {
		return msg + "; did you mean " + quoteList(near) + "?"
	}
	if len(s.Names) > 0 {
		few := s.Names[:min(5, len(s.Names))]
		msg += "; there are " + quoteList(few)
		if len(few) < len(s.Names) {
			msg += fmt.Sprintf(" and %d more", len(s.Names)-len(few))
		}
	}
	return msg
}

func quoteList(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}

// Glob reports whether all of name matches the pattern: * is any text, ? any one character.
func Glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0 // the last * seen, and where in n what follows it was tried
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
