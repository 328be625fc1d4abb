package legal

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the program as text, one kernel after the other.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %q\n", p.Name)
	for _, x := range p.Inputs {
		fmt.Fprintf(&b, "input b%d %q %s%v\n", x.Buf.ID, x.Name, x.Elem, x.Shape)
	}
	for _, x := range p.Outputs {
		fmt.Fprintf(&b, "output b%d %q %s%v\n", x.Buf.ID, x.Name, x.Elem, x.Shape)
	}
	for _, x := range p.Buffers {
		fmt.Fprintf(&b, "buffer b%d %s %s[%d] %q\n", x.ID, x.Role, x.Elem, x.Len, x.Name)
	}
	for i, k := range p.Kernels {
		fmt.Fprintf(&b, "%d: %s\n", i, Text(k))
	}
	for _, f := range p.Fallbacks {
		fmt.Fprintf(&b, "fallback %s: %s\n", f.Node, f.Reason)
	}
	return b.String()
}

// Text returns a kernel as text.
func Text(k Kernel) string {
	var b strings.Builder
	switch k := k.(type) {
	case *Nest:
		fmt.Fprintf(&b, "nest %s %s", dimsText(k.Dims, nil), k.Origin0.Node)
		k.text(&b)
	case *Contract:
		fmt.Fprintf(&b, "contract %s %s\n    A = %s\n    B = %s", dimsText(k.Dims, k.Kind), k.Origin0.Node, k.A, k.B)
		if k.Post == nil {
			fmt.Fprintf(&b, "\n    C = %s", k.C)
		} else {
			k.Post.text(&b)
		}
	case *Walk:
		k.text(&b)
	case *Gather:
		fmt.Fprintf(&b, "gather i0<%d i1<%d %s\n    table[%d] = %s\n    index = %s\n    out = %s", k.Rows, k.Width, k.Origin0.Node,
			k.TableRows, k.Table, k.Index, k.Out)
	case *Scatter:
		fmt.Fprintf(&b, "scatter %s i0<%d i1<%d %s\n    table[%d] = %s\n    index = %s\n    from = %s", k.Mode, k.Rows, k.Width, k.Origin0.Node,
			k.TableRows, k.Table, k.Index, k.From)
	}
	return b.String()
}

func dimsText(dims []int, kind []Kind) string {
	var out []string
	for i, d := range dims {
		s := fmt.Sprintf("i%d<%d", i, d)
		if kind != nil {
			s = string(rune(kind[i])) + ":" + s
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func (k *Nest) text(b *strings.Builder) {
	for i, a := range k.In {
		if a != nil {
			fmt.Fprintf(b, "\n    v%d = %s", i, a)
		}
	}
	for i, s := range k.Body {
		fmt.Fprintf(b, "\n    v%d = %s", len(k.In)+i, s)
	}
	for _, o := range k.Out {
		fmt.Fprintf(b, "\n    %s = v%d", o.To, o.Value)
	}
}

// String returns the statement as text.
func (s Stmt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Op, s.Elem)
	for _, a := range s.Args {
		fmt.Fprintf(&b, " v%d", a)
	}
	switch {
	case s.Op == ConstOp:
		b.WriteString(" " + strconv.FormatFloat(s.Imm, 'g', -1, 64))
	case s.Op == Iota:
		fmt.Fprintf(&b, " i%d", s.Dim)
	}
	for i := range 32 {
		if s.Over>>i&1 != 0 {
			fmt.Fprintf(&b, " over i%d", i)
		}
	}
	return b.String()
}

// String returns the access as text: buffer, base, and per axis stride, coordinate and bounds where they matter.
func (a *Access) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "b%d[%d", a.Buf.ID, a.Base)
	for _, x := range a.Axes {
		var terms []string
		for i, c := range x.Coef {
			switch c {
			case 0:
			case 1:
				terms = append(terms, fmt.Sprintf("i%d", i))
			default:
				terms = append(terms, fmt.Sprintf("%d*i%d", c, i))
			}
		}
		if x.Off != 0 || len(terms) == 0 {
			terms = append(terms, strconv.Itoa(x.Off))
		}
		fmt.Fprintf(&b, " + %d*(%s<%d)", x.Stride, strings.Join(terms, "+"), x.Size)
	}
	b.WriteString("]")
	if a.Fill != 0 {
		fmt.Fprintf(&b, " else %g", a.Fill)
	}
	return b.String()
}
