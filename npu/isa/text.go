package isa

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Text returns an instruction in assembly, without its source node: the name and the operands that are not zero. An array is
// written from its first element that is not zero: the inner dimensions. An operand in memory is an address and its strides,
// an immediate is #bits.
func (in *Instr) Text() string {
	d := in.Op.Intrinsic()
	if d == nil || !d.Form.holds(in.Args) {
		return in.Op.String()
	}
	var b strings.Builder
	b.WriteString(d.Name)
	v := reflect.ValueOf(in.Args).Elem()
	for _, f := range d.Form.Fields() {
		fv := v.Field(f.index)
		if fv.IsZero() && f.Kind != "operand" {
			continue
		}
		switch {
		case f.Kind == "operand":
			o := fv.Interface().(Operand)
			if d.Form == FormVec && f.Name != "dst" && int(f.Name[0]-'a') >= d.Operands || f.Name == "b" && d.Form == FormReduce && d.Op != OpDot {
				continue
			}
			fmt.Fprintf(&b, " %s=%s", f.Name, o)
		case f.Len > 1:
			fmt.Fprintf(&b, " %s=%s", f.Name, arrayText(fv))
		case f.Kind == "bool":
			fmt.Fprintf(&b, " %s", f.Name)
		case f.Kind == "bits":
			fmt.Fprintf(&b, " %s=0x%x", f.Name, fv.Uint())
		case f.Name == "dram":
			fmt.Fprintf(&b, " %s=%s", f.Name, hex(fv.Int()))
		default:
			fmt.Fprintf(&b, " %s=%v", f.Name, fv.Interface())
		}
	}
	return b.String()
}

// hex writes a number with a prefix behind its sign.
func hex(x int64) string {
	if x < 0 {
		return "-0x" + strconv.FormatUint(-uint64(x), 16)
	}
	return "0x" + strconv.FormatInt(x, 16)
}

// String returns the operand as assembly has it.
func (o Operand) String() string {
	if o.IsImm {
		return fmt.Sprintf("#0x%x", uint32(o.Value))
	}
	return o.Addr.String() + arrayText(reflect.ValueOf(o.S))
}

// arrayText writes an array without its leading zeros.
func arrayText(v reflect.Value) string {
	first := 0
	for first < v.Len()-1 && v.Index(first).IsZero() {
		first++
	}
	parts := make([]string, 0, v.Len())
	for i := first; i < v.Len(); i++ {
		parts = append(parts, strconv.FormatInt(v.Index(i).Int(), 10))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// ParseInstr reads an instruction as Text writes it.
func ParseInstr(line string) (Instr, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return Instr{}, fmt.Errorf("no instruction")
	}
	op, ok := Lookup(words[0])
	if !ok {
		return Instr{}, fmt.Errorf("no instruction is called %q", words[0])
	}
	d := op.Intrinsic()
	in := Instr{Op: op, Node: -1, Args: d.Form.New()}
	fields := map[string]Field{}
	for _, f := range d.Form.Fields() {
		fields[f.Name] = f
	}
	v := reflect.ValueOf(in.Args).Elem()
	seen := map[string]bool{}
	for _, w := range words[1:] {
		name, text, valued := strings.Cut(w, "=")
		f, ok := fields[name]
		if !ok {
			return Instr{}, fmt.Errorf("%s has no operand %q", d.Name, name)
		}
		if seen[name] {
			return Instr{}, fmt.Errorf("%s: operand %s twice", d.Name, name)
		}
		seen[name] = true
		if valued == (f.Kind == "bool") {
			return Instr{}, fmt.Errorf("%s: operand %s is %q", d.Name, name, w)
		}
		if err := parseField(v.Field(f.index), f, text); err != nil {
			return Instr{}, fmt.Errorf("%s: operand %s: %w", d.Name, name, err)
		}
	}
	return in, nil
}

func parseField(v reflect.Value, f Field, text string) error {
	switch {
	case f.Kind == "operand":
		o, err := parseOperand(text)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(o))
		return nil
	case f.Len > 1:
		return parseArray(v, text)
	}
	switch f.Kind {
	case "bool":
		v.SetBool(true)
	case "address":
		a, err := parseLocal(text)
		if err != nil {
			return err
		}
		v.SetUint(uint64(a))
	case "bits":
		x, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return err
		}
		v.SetUint(x)
	case "i32", "i64":
		x, err := strconv.ParseInt(text, 0, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(x)
	default:
		for i := range enumLimit(f.Kind) {
			v.SetUint(i)
			if fmt.Sprint(v.Interface()) == text {
				return nil
			}
		}
		return fmt.Errorf("no %s is called %q", f.Kind, text)
	}
	return nil
}

func parseArray(v reflect.Value, text string) error {
	inner, ok := strings.CutPrefix(text, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	parts := strings.Split(inner, ",")
	if !ok || !ok2 || len(parts) > v.Len() {
		return fmt.Errorf("%q is not a list of at most %d numbers", text, v.Len())
	}
	for i, p := range parts {
		x, err := strconv.ParseInt(p, 0, v.Type().Elem().Bits())
		if err != nil {
			return err
		}
		v.Index(v.Len() - len(parts) + i).SetInt(x)
	}
	return nil
}

func parseLocal(text string) (Local, error) {
	space, off, _ := strings.Cut(text, ":")
	x, err := strconv.ParseUint(off, 0, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not an address: %w", text, err)
	}
	switch space {
	case "sp":
		return Local(x), nil
	case "acc":
		return AccBase + Local(x), nil
	}
	return 0, fmt.Errorf("%q is not an address of sp or acc", text)
}

func parseOperand(text string) (Operand, error) {
	if imm, ok := strings.CutPrefix(text, "#"); ok {
		x, err := strconv.ParseUint(imm, 0, 32)
		return Operand{IsImm: true, Value: Bits(x)}, err
	}
	addr, strides, ok := strings.Cut(text, "[")
	if !ok {
		return Operand{}, fmt.Errorf("%q has no strides", text)
	}
	a, err := parseLocal(addr)
	if err != nil {
		return Operand{}, err
	}
	o := Operand{Addr: a}
	return o, parseArray(reflect.ValueOf(&o.S).Elem(), "["+strides)
}
