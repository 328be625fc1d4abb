package isa

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/ISA.md")

// TestDocument checks that docs/ISA.md is what the tables give.
func TestDocument(t *testing.T) {
	const name = "../../docs/ISA.md"
	want := Document()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/ISA.md is stale: go test ./npu/isa -run TestDocument -update")
	}
}
