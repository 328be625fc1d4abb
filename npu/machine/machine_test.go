package machine_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"gradtool/npu/machine"
)

func TestBuiltins(t *testing.T) {
	hashes := map[string]string{}
	for _, name := range machine.Names() {
		m, err := machine.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		back, err := machine.Parse(m.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.JSON(), m.JSON()) || back.Hash() != m.Hash() {
			t.Errorf("%s: the JSON form does not round-trip", name)
		}
		if other := hashes[m.Hash()]; other != "" {
			t.Errorf("%s and %s have one hash", name, other)
		}
		hashes[m.Hash()] = name
	}
	if _, err := machine.Builtin("nope"); err == nil || !strings.Contains(err.Error(), "ref-edge") {
		t.Errorf("an unknown name gives %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	m, err := machine.Builtin("ref-edge")
	if err != nil {
		t.Fatal(err)
	}
	good := string(m.JSON())
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", `"rows"`, `"row"`, "unknown field array.row"},
		{"missing number", `"rows": 16,`, ``, "array.rows is missing"},
		{"missing truth value", `"overlap": true,`, ``, "array.overlap is missing"},
		{"missing field of a list", `"type": "f16",`, ``, "macs[2].type is missing"},
		{"missing object", `"dma": {`, `"dmb": {`, "dma is missing\nunknown field dmb"},
		{"text for a number", `"rows": 16`, `"rows": "16"`, `array.rows is "16", not a number`},
		{"fraction", `"rows": 16`, `"rows": 1.5`, "array.rows is 1.5, not a whole number"},
		{"number for a truth value", `"overlap": true`, `"overlap": 1`, "array.overlap is 1, not true or false"},
		{"null", `"rne"`, `null`, "numerics.rounding is null, not a text"},
		{"list for an object", `"dram": {`, `"dram": [], "x": {`, "dram is a list, not an object"},
		{"cut off", "\n}\n", "", "not JSON"},
		{"zero rows", `"rows": 16`, `"rows": 0`, "array.rows is 0"},
		{"banks", `"banks": 128`, `"banks": 100`, "not a power of two"},
		{"rounding", `"rne"`, `"rtz"`, "only \"rne\""},
		{"schema", `gradtool.machine/1`, `gradtool.machine/9`, "schema"},
		{"type", `"type": "f16"`, `"type": "f8"`, `"f8"`},
		{"twice", `"type": "f16"`, `"type": "bf16"`, "twice"},
		{"dram", `"bytes": 4294967296`, `"bytes": 1`, "dram.bytes"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		if _, err := machine.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := machine.Parse([]byte(good + "x")); err == nil {
		t.Error("trailing text is accepted")
	}
}

var update = flag.Bool("update", false, "write docs/MACHINE.md")

// TestDocument checks that docs/MACHINE.md is what the types give, and that every field is explained.
func TestDocument(t *testing.T) {
	for _, f := range machine.Fields() {
		if f.Doc == "" {
			t.Errorf("field %s is not explained", f.Path)
		}
	}
	const name = "../../docs/MACHINE.md"
	want := machine.Document()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("docs/MACHINE.md is stale (%v): go test ./npu/machine -run TestDocument -update", err)
	}
}
