package graph

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseError is text that is no model: where, counted from 1 in lines and characters, and what is wrong.
type ParseError struct {
	Line, Col int
	Msg       string
}

// Error returns line:column: message.
func (e *ParseError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// maxParseDepth bounds the nesting of subgraphs and types.
const maxParseDepth = 100

// Parse reads a model in the text syntax of the ONNX standard, with the extensions that [Print] lists. Nodes may
// stand in any order. Tensors whose elements are elided, and data in other files, are refused. Errors are
// [*ParseError]. The structure is not checked beyond what the reading needs; see [Verify].
func Parse(src string) (*Model, error) {
	p := &parser{src: src}
	raw := p.model()
	var m *Model
	if p.err == nil {
		m = p.build(raw)
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// parser reads text into raw parts, with sticky errors: after the first, the input is at its end.
type parser struct {
	src   string
	pos   int
	err   *ParseError
	meta  string // text of the last metadata comment that was skipped, "" if none
	depth int
}

// fail records an error at a position.
func (p *parser) fail(pos int, format string, args ...any) {
	if p.err == nil {
		before := p.src[:pos]
		line := 1 + strings.Count(before, "\n")
		col := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
		p.err = &ParseError{line, col, fmt.Sprintf(format, args...)}
	}
	p.pos = len(p.src)
}

// skip passes over white space and comments.
func (p *parser) skip() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			p.pos++
		case c == '#':
			end := strings.IndexByte(p.src[p.pos:], '\n')
			if end < 0 {
				end = len(p.src) - p.pos
			}
			if rest, ok := strings.CutPrefix(p.src[p.pos:p.pos+end], metaComment); ok {
				p.meta = rest
			}
			p.pos += end
		default:
			return
		}
	}
}

// peek returns the next character that is no space, 0 at the end.
func (p *parser) peek() byte {
	p.skip()
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// got passes over tok if it is next.
func (p *parser) got(tok string) bool {
	p.skip()
	if p.err == nil && strings.HasPrefix(p.src[p.pos:], tok) {
		p.pos += len(tok)
		return true
	}
	return false
}

// want passes over tok, which must be next.
func (p *parser) want(tok string) {
	if !p.got(tok) && p.err == nil {
		p.fail(p.pos, "want %q, got %s", tok, p.next())
	}
}

// next describes what stands at the position, for messages.
func (p *parser) next() string {
	p.skip()
	rest := p.src[p.pos:]
	if rest == "" {
		return "the end"
	}
	if w := word(rest); w != "" {
		return fmt.Sprintf("%q", w)
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return fmt.Sprintf("%q", string(r))
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// word returns the identifier that s begins with, "" if none.
func word(s string) string {
	i := 0
	for i < len(s) && (isLetter(s[i]) || i > 0 && isDigit(s[i])) {
		i++
	}
	return s[:i]
}

// peekWord returns the next identifier without passing over it.
func (p *parser) peekWord() string {
	p.skip()
	return word(p.src[p.pos:])
}

// ident reads an identifier or a quoted name.
func (p *parser) ident() string {
	if p.peek() == '"' {
		return p.str()
	}
	w := p.peekWord()
	if w == "" && p.err == nil {
		p.fail(p.pos, "want a name, got %s", p.next())
	}
	p.pos += len(w)
	return w
}

// str reads a quoted string; a backslash stands for the character behind it.
func (p *parser) str() string {
	p.skip()
	start := p.pos
	if !p.got(`"`) {
		p.fail(start, "want a string, got %s", p.next())
		return ""
	}
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		switch {
		case c == '"':
			return b.String()
		case c == '\\' && p.pos < len(p.src):
			c = p.src[p.pos]
			p.pos++
		}
		b.WriteByte(c)
	}
	p.fail(start, "the string does not end")
	return ""
}

// number reads the text of a number; float tells that it has a point or an exponent or is no number of digits.
func (p *parser) number() (text string, float bool) {
	p.skip()
	start := p.pos
	i := p.pos
	s := p.src
	if i < len(s) && s[i] == '-' {
		i++
	}
	if w := word(s[i:]); w != "" {
		if !isFloatWord(w) {
			p.fail(start, "want a number, got %s", p.next())
			return "0", false
		}
		p.pos = i + len(w)
		return s[start:p.pos], true
	}
	digits := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == digits {
		p.fail(start, "want a number, got %s", p.next())
		return "0", false
	}
	if i < len(s) && s[i] == '.' {
		float = true
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		float = true
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		for i < len(s) && isDigit(s[i]) {
			i++
		}
	}
	p.pos = i
	return s[start:i], float
}

// items reads item, a comma, item, ... up to the closing token, which it passes over. No items are fine.
func (p *parser) items(end string, item func()) {
	if p.got(end) {
		return
	}
	for p.err == nil {
		item()
		if !p.got(",") {
			p.want(end)
			return
		}
	}
}

// enter counts a level of nesting; the function it returns leaves it.
func (p *parser) enter() (leave func()) {
	p.depth++
	if p.depth > maxParseDepth {
		p.fail(p.pos, "nested deeper than %d levels", maxParseDepth)
	}
	return func() { p.depth-- }
}
