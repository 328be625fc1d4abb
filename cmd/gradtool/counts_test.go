package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gradtool/onnxio"
)

// TestNodeCounts checks that verbs count the same nodes: what one says it leaves, the next says it begins with, and info that there is.
func TestNodeCounts(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string, to any) {
		t.Helper()
		data, err := os.ReadFile(in(name))
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(line string) {
		t.Helper()
		if err := inProcess(t, strings.Fields(line)...); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	for _, c := range []struct{ demo, loss string }{{"mlp", "softmax-cross-entropy"}, {"transformer", "softmax-cross-entropy,axis=-1"}, {"lenet", "softmax-cross-entropy"}} {
		run("demo " + c.demo + " -q -f -o " + in("0.onnx"))
		at := in("0.onnx")
		last := -1
		for i, verb := range []string{"grad --loss " + c.loss, "prune", "fuse", "inline", "prune"} {
			to := in(strings.Repeat("x", i+1) + ".onnx")
			run(verb + " " + at + " -o " + to + " --report " + in("r.json"))
			at = to
			if verb == "fuse" {
				continue // counts kernels
			}
			var r struct {
				Before int `json:"nodes_before"`
				After  int `json:"nodes_after"`
			}
			read("r.json", &r)
			if last >= 0 && verb != "inline" && r.Before != last {
				t.Errorf("%s: %s begins with %d nodes, the verb before it left %d", c.demo, verb, r.Before, last)
			}
			last = r.After
			m, closer, err := onnxio.Open(to, onnxio.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if n := factsOf(m); n.AllNodes-n.Constants != r.After {
				t.Errorf("%s: %s leaves %d nodes, info finds %d with %d constants", c.demo, verb, r.After, n.AllNodes, n.Constants)
			}
			closer.Close()
		}
	}
}
