package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gradtool": main})
}

// TestScripts runs the command lines in testdata/script; -update rewrites expected outputs.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":   codeCmd,
			"tensor": tensorCmd,
			"onnx":   onnxCmd,

			"appendbyte": appendByteCmd,
			"rename":     renameCmd,
		},
	})
}

// codeCmd runs a program that must end with the given exit code: code N PROGRAM ARGS...
func codeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = exitCodeOf(err)
	}
	if got != args[0] {
		ts.Fatalf("%v ended with code %s, want %s", args[1:], got, args[0])
	}
}

// appendByteCmd puts a byte behind the end of a file: appendbyte FILE.
func appendByteCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appendbyte file")
	}
	name := ts.MkAbs(args[0])
	data, err := os.ReadFile(name)
	ts.Check(err)
	ts.Check(os.WriteFile(name, append(data, 0), 0o666))
}

// renameCmd writes another name of the same length over one in a file, all of its places: rename FILE OLD NEW.
func renameCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || len(args[1]) != len(args[2]) {
		ts.Fatalf("usage: rename file old new")
	}
	name := ts.MkAbs(args[0])
	data, err := os.ReadFile(name)
	ts.Check(err)
	if !bytes.Contains(data, []byte(args[1])) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, bytes.ReplaceAll(data, []byte(args[1]), []byte(args[2])), 0o666))
}

// exitCodeOf returns the exit code that err tells of, as text.
func exitCodeOf(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return strconv.Itoa(e.ExitCode())
	}
	return err.Error()
}

// tensorCmd writes a TensorProto of float values: tensor FILE NAME DIMS VALUES..., dims as 2x3 or -.
func tensorCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: tensor file name dims values...")
	}
	shape := []int{}
	if args[2] != "-" {
		for d := range strings.SplitSeq(args[2], "x") {
			n, err := strconv.Atoi(d)
			ts.Check(err)
			shape = append(shape, n)
		}
	}
	a := op.NewArray(graph.Float, shape, false)
	if len(args)-3 != a.Len() {
		ts.Fatalf("%d values for shape %s", len(args)-3, args[2])
	}
	for i, text := range args[3:] {
		x, err := strconv.ParseFloat(text, 64)
		ts.Check(err)
		a.SetFloat(i, x)
	}
	var b bytes.Buffer
	ts.Check(onnxio.WriteDatum(&b, arrayDatum(args[1], a)))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// onnxCmd assembles a model from text: onnx TEXT FILE [NAME]. What reads the value NAME then reads one that
// nothing defines.
func onnxCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: onnx text file [name]")
	}
	m, err := graph.Parse(ts.ReadFile(args[0]))
	ts.Check(err)
	if len(args) == 3 {
		byName(slices.Collect(m.Graph.Values()), args[2]).ReplaceUses(m.Graph.AddUndefined("nowhere"))
	}
	var b bytes.Buffer
	ts.Check(onnxio.Write(&b, m))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o666))
}
