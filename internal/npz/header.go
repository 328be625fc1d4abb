package npz

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseHeader reads the Python dictionary literal of a header: the keys descr
// (a string), fortran_order (a bool) and shape (a tuple of ints), each once.
func parseHeader(s string) (header, error) {
	p := literal{rest: s}
	var h header
	seen := map[string]bool{}
	if !p.accept("{") {
		return h, errors.New("no dictionary")
	}
	for !p.accept("}") {
		key, err := p.str()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("key %q appears twice", key)
		}
		seen[key] = true
		if !p.accept(":") {
			return h, fmt.Errorf("no colon after key %q", key)
		}
		switch key {
		case "descr":
			if p.peek("[") {
				return h, errors.New("structured element types are not supported")
			}
			h.descr, err = p.str()
		case "fortran_order":
			switch {
			case p.accept("True"):
				h.fortran = true
			case !p.accept("False"):
				err = errors.New("fortran_order is neither True nor False")
			}
		case "shape":
			h.shape, err = p.tuple()
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return h, err
		}
		if !p.accept(",") && !p.peek("}") {
			return h, fmt.Errorf("no comma after the value of %q", key)
		}
	}
	if p.skip(); p.rest != "" {
		return h, errors.New("text after the dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("key %q is missing", key)
		}
	}
	return h, nil
}

type literal struct{ rest string }

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *literal) peek(tok string) bool {
	p.skip()
	return strings.HasPrefix(p.rest, tok)
}

func (p *literal) accept(tok string) bool {
	if !p.peek(tok) {
		return false
	}
	p.rest = p.rest[len(tok):]
	return true
}

// str reads a quoted string without escapes: no supported value has any.
func (p *literal) str() (string, error) {
	p.skip()
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", errors.New("no string where one is due")
	}
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		return "", errors.New("unfinished string")
	}
	s := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	if strings.ContainsAny(s, "\\\n") {
		return "", errors.New("escape in a string")
	}
	return s, nil
}

// tuple reads "()", "(3,)", "(3, 4)"; Python 2 wrote longs, "3L".
func (p *literal) tuple() ([]int, error) {
	if !p.accept("(") {
		return nil, errors.New("shape is not a tuple")
	}
	shape := []int{}
	for !p.accept(")") {
		p.skip()
		n := 0
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		d, err := strconv.Atoi(p.rest[:n])
		if err != nil {
			return nil, errors.New("shape holds something other than sizes")
		}
		p.rest = p.rest[n:]
		p.accept("L")
		if shape = append(shape, d); len(shape) > maxRank {
			return nil, fmt.Errorf("more than %d dimensions", maxRank)
		}
		if !p.accept(",") && !p.peek(")") {
			return nil, errors.New("shape is not a tuple")
		}
	}
	return shape, nil
}
