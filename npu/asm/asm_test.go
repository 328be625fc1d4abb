package asm_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"gradtool/npu/asm"
	"gradtool/npu/binary"
	"gradtool/npu/internal/sample"
	"gradtool/npu/isa"
)

func program(t *testing.T) *isa.Program {
	t.Helper()
	p, err := sample.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRoundTrip checks that a listing assembles to the same bytes.
func TestRoundTrip(t *testing.T) {
	p := program(t)
	p.Name = "a \"b\" ; c\n"
	p.SourceHash = strings.Repeat("0", 64)
	p.Nodes[0] = isa.Source{Name: "x;\"y\" z\n", Op: "A b", Role: "", Cluster: "ü"}
	p.State = []isa.Pair{{Input: "x", Output: "z"}}
	p.Cost = &isa.Cost{Cycles: 5, MACs: 6, DRAMRead: 7, DRAMWrite: 8}
	p.Inputs[1].Default = true
	p.Inputs = append(p.Inputs, isa.Tensor{Name: "s", Type: "int64", Device: isa.I32, Shape: []int64{}, Addr: 64, Default: true, Below: 10})
	var text, first, second bytes.Buffer
	if err := asm.Disassemble(&text, p, asm.Options{Data: true}); err != nil {
		t.Fatal(err)
	}
	back, err := asm.Assemble(&text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, p) {
		t.Errorf("the program changed")
	}
	if err := binary.Write(&first, p); err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(&second, back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("other bytes")
	}
}

func TestAssembleErrors(t *testing.T) {
	var text bytes.Buffer
	if err := asm.Disassemble(&text, program(t), asm.Options{Data: true}); err != nil {
		t.Fatal(err)
	}
	good := text.String()
	for _, c := range []struct{ name, old, new, want string }{
		{"no machine", ".machine {", ";", "no .machine"},
		{"bad machine", `"rows":8`, `"rows":0`, "array.rows"},
		{"unknown directive", ".dram", ".darm", "no directive"},
		{"unknown queue", ".queue matrix", ".queue matrices", "no queue"},
		{"unknown instruction", "\tmatmul ", "\tmatmull ", "no instruction"},
		{"unknown node", "@3", "@33", "no node"},
		{"bad hex", ".hex 0", ".hex x", "hex"},
		{"open string", `.node "relu"`, `.node "relu`, "without a space"},
		{"unclosed string", ".program \"sample\"", ".program \"sample", "not closed"},
		{"few words", `.output "y" float`, `.output "y"`, "4 words"},
		{"early", ".queue load", "", "before .queue"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		if _, err := asm.Assemble(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	text.Reset()
	if err := asm.Disassemble(&text, program(t), asm.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := asm.Assemble(&text); err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("a listing without data: %v", err)
	}
}
