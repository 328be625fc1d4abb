package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// textType returns t in the text syntax, where a scalar has no brackets and a tensor of unknown rank empty ones.
func textType(t Type) string {
	inner := func() string {
		if t.Inner == nil {
			return "undefined[]"
		}
		return textType(*t.Inner)
	}
	switch t.Kind {
	case KindTensor:
		return t.Elem.String() + textShape(t.Shape)
	case KindSparse:
		return "sparse_tensor(" + t.Elem.String() + textShape(t.Shape) + ")"
	case KindSequence:
		return "seq(" + inner() + ")"
	case KindOptional:
		return "optional(" + inner() + ")"
	case KindMap:
		return "map(" + t.Key.String() + ", " + inner() + ")"
	case KindOpaque:
		name := opaqueName(t.Name)
		if t.Domain != "" {
			return "opaque(" + opaqueName(t.Domain) + ", " + name + ")"
		}
		return "opaque(" + name + ")"
	}
	return "undefined[]"
}

// opaqueName writes a dotted name, or a quoted one where a part is no identifier.
func opaqueName(s string) string {
	if s == "" {
		return ""
	}
	for _, part := range strings.Split(s, ".") {
		if !isTextIdent(part) {
			return quote(s)
		}
	}
	return s
}

func textShape(s Shape) string {
	if s == nil {
		return "[]"
	}
	if len(s) == 0 {
		return ""
	}
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = textDim(d)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func textDim(d Dim) string {
	if n, ok := d.Int(); ok {
		return strconv.FormatInt(n, 10)
	}
	if d.IsUnknown() {
		return "?"
	}
	if s := d.String(); !isTextIdent(s) {
		return quote(s)
	}
	return d.String()
}

func (p *printer) attr(a *Attr) {
	p.str(opIdent(a.Name), ": ", a.Type.String(), " = ")
	if a.Ref != "" {
		p.str("@", ident(a.Ref))
		return
	}
	switch a.Type {
	case AttrInt:
		p.str(strconv.FormatInt(a.I, 10))
	case AttrFloat:
		p.str(textFloat(float64(a.F), 32))
	case AttrString:
		p.str(quote(a.S))
	case AttrInts:
		p.list(len(a.Ints), func(i int) { p.str(strconv.FormatInt(a.Ints[i], 10)) })
	case AttrFloats:
		p.list(len(a.Floats), func(i int) { p.str(textFloat(float64(a.Floats[i]), 32)) })
	case AttrStrings:
		p.list(len(a.Strings), func(i int) { p.str(quote(a.Strings[i])) })
	case AttrTensor:
		p.tensor(a.T)
	case AttrTensors:
		p.list(len(a.Tensors), func(i int) { p.tensor(a.Tensors[i]) })
	case AttrGraph:
		p.subgraph(a.G)
	case AttrGraphs:
		p.list(len(a.Graphs), func(i int) { p.subgraph(a.Graphs[i]) })
	case AttrSparseTensor:
		if len(a.Sparse) > 0 {
			p.sparse(a.Sparse[0])
		}
	case AttrSparseTensors:
		p.list(len(a.Sparse), func(i int) { p.sparse(a.Sparse[i]) })
	case AttrTypeProto:
		if len(a.Types) > 0 {
			p.str(textType(a.Types[0]))
		}
	case AttrTypeProtos:
		p.list(len(a.Types), func(i int) { p.str(textType(a.Types[i])) })
	}
}

func (p *printer) list(n int, item func(i int)) {
	p.str("[")
	for i := range n {
		p.sep(i)
		item(i)
	}
	p.str("]")
}

func (p *printer) subgraph(g *Graph) {
	switch {
	case g == nil:
		p.str(`"" () => () {}`)
	case p.short:
		p.str(ident(g.Name), " {...}")
	default:
		p.graph(g)
	}
}

func (p *printer) sparse(s *Sparse) {
	p.str("(")
	p.tensor(s.Values)
	p.str(", ")
	p.tensor(s.Indices)
	p.str(", ")
	p.list(len(s.Dims), func(i int) { p.str(strconv.FormatInt(s.Dims[i], 10)) })
	p.str(")")
}

// tensor writes a tensor with its type, as attributes hold it.
func (p *printer) tensor(t *Tensor) {
	if t == nil {
		p.str("undefined {}")
		return
	}
	p.str(textType(t.Type()))
	if t.Name != "" {
		p.str(" ", ident(t.Name))
	}
	p.str(" ")
	p.data(t)
}

// data writes the elements of t in braces.
func (p *printer) data(t *Tensor) {
	n := t.Len()
	if p.opt.MaxElems >= 0 && n > int64(p.opt.MaxElems) || n < 0 {
		p.str("{...", p.digest(t), "}")
		return
	}
	if err := t.Check(); err != nil {
		p.fail(fmt.Errorf("tensor %q: %w", t.Name, err))
		return
	}
	p.str("{")
	defer p.str("}")
	if t.Elem == String {
		for i, s := range t.Strings {
			p.sep(i)
			p.str(quote(s))
		}
		return
	}
	if n == 0 {
		return
	}
	raw, err := t.Data.Bytes()
	if err != nil {
		p.fail(err)
		return
	}
	for i := range int(n) {
		p.sep(i)
		p.str(textElem(t.Elem, raw, i))
	}
}

func (p *printer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// digest returns the first 8 hexadecimal digits of the SHA-256 of t's data, if asked for.
func (p *printer) digest(t *Tensor) string {
	if !p.opt.Hash || t.Data == nil {
		return ""
	}
	raw, err := t.Data.Bytes()
	if err != nil {
		p.fail(err)
		return ""
	}
	sum := sha256.Sum256(raw)
	return " " + hex.EncodeToString(sum[:4])
}

// textFloat returns the shortest number that reads back as x.
func textFloat(x float64, bits int) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}

// textElem returns element i of raw data. Complex elements are two numbers; types without a number syntax of their own
// are written as unsigned bit patterns.
func textElem(t DataType, raw []byte, i int) string {
	le := binary.LittleEndian
	f32 := func(at int) string { return textFloat(float64(math.Float32frombits(le.Uint32(raw[at:]))), 32) }
	f64 := func(at int) string { return textFloat(math.Float64frombits(le.Uint64(raw[at:])), 64) }
	switch t {
	case Float:
		return f32(4 * i)
	case Double:
		return f64(8 * i)
	case Complex64:
		return f32(8*i) + ", " + f32(8*i+4)
	case Complex128:
		return f64(16*i) + ", " + f64(16*i+8)
	}
	u := bitsAt(t, raw, i)
	if t.IsSigned() {
		shift := 64 - t.Bits()
		return strconv.FormatInt(int64(u<<shift)>>shift, 10)
	}
	return strconv.FormatUint(u, 10)
}

// bitsAt returns the bits of element i of raw data, elements of up to 64 bits.
func bitsAt(t DataType, raw []byte, i int) uint64 {
	le := binary.LittleEndian
	switch b := t.Bits(); b {
	case 64:
		return le.Uint64(raw[8*i:])
	case 32:
		return uint64(le.Uint32(raw[4*i:]))
	case 16:
		return uint64(le.Uint16(raw[2*i:]))
	case 8:
		return uint64(raw[i])
	default:
		per := 8 / b
		return uint64(raw[i/per]>>(b*(i%per))) & (1<<b - 1)
	}
}
