package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestOpsDocument keeps docs/OPS.md what "gradtool ops --markdown" prints.
func TestOpsDocument(t *testing.T) {
	const path = "../../docs/OPS.md"
	var b bytes.Buffer
	if err := opsMarkdown(&b, opRows()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is stale: go test ./cmd/gradtool -run TestOpsDocument -update", path)
	}
}
