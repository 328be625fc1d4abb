package onnxpb_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"

	"gradtool/onnxio/onnxpb"
)

const regenerate = "run scripts/gen-onnxpb"

// TestChecksums needs no protoc: onnx.sum is written by the generating script,
// so an edit of onnx.proto or of onnx.pb.go by hand shows.
func TestChecksums(t *testing.T) {
	sums, err := os.ReadFile("onnx.sum")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("onnx.sum: malformed line %q", line)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: got sha256 %s, want %s; %s", name, got, want, regenerate)
		}
		seen[name] = true
	}
	for _, name := range []string{"onnx.proto", "onnx.pb.go"} {
		if !seen[name] {
			t.Errorf("onnx.sum does not list %s; %s", name, regenerate)
		}
	}
}

// TestGenerated compares onnx.pb.go with what protoc makes of onnx.proto now.
func TestGenerated(t *testing.T) {
	bin := filepath.Join(build.Default.GOPATH, "bin")
	t.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+bin)
	for _, tool := range []string{"protoc", "protoc-gen-go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: %v", tool, err)
		}
	}
	out := t.TempDir()
	cmd := exec.Command("protoc", "-I", "gradtool/onnx=.", "--go_out="+out,
		"--go_opt=module=gradtool/onnxio/onnxpb", "gradtool/onnx/onnx.proto")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	got, err := os.ReadFile(filepath.Join(out, "onnx.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("onnx.pb.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(dropVersions(got), dropVersions(want)) {
		t.Errorf("onnx.pb.go is stale; %s", regenerate)
	}
}

// dropVersions removes the two header lines that name the tools' versions:
// another protoc release makes the same code.
func dropVersions(src []byte) []byte {
	var out []byte
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte("// \tprotoc")) || bytes.HasPrefix(line, []byte("// - protoc")) {
			continue
		}
		out = append(out, line...)
	}
	return out
}

// TestRegistration pins what keeps this package linkable beside another one
// that registers the standard's own names.
func TestRegistration(t *testing.T) {
	fd := protodesc.ToFileDescriptorProto(onnxpb.File_gradtool_onnx_onnx_proto)
	if got, want := fd.GetName(), "gradtool/onnx/onnx.proto"; got != want {
		t.Errorf("got path %q, want %q", got, want)
	}
	if got, want := fd.GetPackage(), "gradtool.onnx"; got != want {
		t.Errorf("got package %q, want %q", got, want)
	}
	if got, want := fd.GetSyntax(), ""; got != want {
		t.Errorf("got syntax %q, want proto2 (%q)", got, want)
	}
}
