package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"gradtool/graph/op/schema"
	"gradtool/onnxio/onnxpb"
)

func versionVerb() verb {
	return verb{
		name: "version", group: groupOther, summary: "print what this program is and which ONNX versions it knows",
		examples: []string{"gradtool version", "gradtool version --json"},
		flags:    []cli.Flag{jsonFlag()},
		run:      runVersion,
	}
}

func runVersion(s *session) error {
	b := buildInfo()
	maxOpset := schema.MaxOpset("")
	maxIR := int(onnxpb.Version_IR_VERSION)
	if s.Bool("json") {
		r := s.report
		r.set("revision", b.revision)
		r.set("modified", b.modified)
		r.set("time", b.time)
		r.set("go", runtime.Version())
		r.set("platform", runtime.GOOS+"/"+runtime.GOARCH)
		r.set("opset", [2]int{1, maxOpset})
		r.set("ir_version", [2]int{1, maxIR})
		return s.print(r.encode)
	}
	return s.print(func(w io.Writer) error {
		rev := b.revision
		if b.modified {
			rev += " (modified)"
		}
		fmt.Fprintf(w, "gradtool %s\n", rev)
		if b.time != "" {
			fmt.Fprintf(w, "revised   %s\n", b.time)
		}
		fmt.Fprintf(w, "go        %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
		fmt.Fprintf(w, "opsets    ai.onnx 1 to %d\n", maxOpset)
		fmt.Fprintf(w, "IR        1 to %d\n", maxIR)
		return nil
	})
}

// build is what the Go tool stamped into the program.
type build struct {
	revision, time string
	modified       bool
}

func buildInfo() build {
	b := build{revision: "of unknown revision"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.revision = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	return b
}
