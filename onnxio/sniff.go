package onnxio

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// signatures of files that people take for ONNX models, with what to say of them.
var signatures = []struct {
	at   int
	mark string
	hint string
}{
	{0, "version https://git-lfs", "a Git LFS pointer; fetch the file itself with git lfs pull"},
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file, perhaps a Keras model; convert it with tf2onnx"},
	{0, "\x1f\x8b", "gzip-compressed data; unpack it first"},
	{0, "(\xb5\x2f\xfd", "Zstandard-compressed data; unpack it first"},
	{0, "BZh", "bzip2-compressed data; unpack it first"},
	{0, "\xfd7zXZ\x00", "xz-compressed data; unpack it first"},
	{0, "\x93NUMPY", "a NumPy array"},
	{0, "\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint; export the model with torch.onnx.export"},
	{0, "\x80\x04", "a Python pickle; export the model to ONNX from the program that made it"},
	{0, "GGUF", "a GGUF file, which holds weights without a graph"},
	{4, "TFL3", "a TensorFlow Lite model; convert it with tf2onnx"},
	{4, "ORTM", "a model in ONNX Runtime's own format (.ort); use the .onnx file that it was made from"},
	{8, "{\"", "a safetensors file, which holds weights without a graph"},
	{0, "\x7fELF", "an executable or library"},
}

// headLen is how much of an input is looked at to tell what it is.
const headLen = 4096

// sniff tells what bytes that are no ONNX model seem to be, with a remedy where there is one; "" if
// nothing is recognized.
func sniff(src *wire.Source) string {
	ref, err := src.Ref(0, min(src.Len(), headLen))
	if err != nil {
		return ""
	}
	head, err := ref.Bytes()
	if err != nil {
		return ""
	}
	for _, s := range signatures {
		if len(head) > s.at && bytes.HasPrefix(head[s.at:], []byte(s.mark)) {
			return "it is " + s.hint
		}
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		if bytes.Contains(head, []byte("data.pkl")) || bytes.Contains(head, []byte("/version")) {
			return "it is a PyTorch checkpoint; export the model with torch.onnx.export"
		}
		if bytes.Contains(head, []byte(".npy")) {
			return "it is a NumPy .npz archive"
		}
		return "it is a zip archive; unpack it, or export the model with torch.onnx.export if it is a PyTorch checkpoint"
	}
	if isText(head) {
		switch t := bytes.TrimSpace(head); {
		case bytes.HasPrefix(t, []byte("ir_version:")) || bytes.Contains(t, []byte("op_type:")):
			return "it is a model in protobuf's text format; convert it to the binary format with onnx.load and onnx.save"
		case bytes.HasPrefix(t, []byte("<!DOCTYPE")) || bytes.HasPrefix(t, []byte("<html")):
			return "it is a web page; the download did not deliver the file"
		case bytes.HasPrefix(t, []byte("<")) && bytes.Contains(t, []byte("ir_version")):
			return "it is a model in ONNX's text syntax; convert it to the binary format with onnx.parser"
		}
		return fmt.Sprintf("it is a text file (%q)", firstLine(head))
	}
	return sniffMessage(src, head)
}

// sniffMessage recognizes other protobuf messages.
func sniffMessage(src *wire.Source, head []byte) string {
	store := wire.NewStore()
	t := new(onnxpb.TensorProto)
	if err := store.Read(src, t); err == nil && graph.DataType(t.GetDataType()).Valid() {
		spans, _ := store.Spans(t)
		if len(spans) > 0 || len(t.RawData) > 0 || len(t.FloatData)+len(t.Int32Data)+len(t.Int64Data)+len(t.StringData)+len(t.DoubleData) > 0 {
			return fmt.Sprintf("it is a single tensor (%s), not a model", t.GetName())
		}
	}
	g := new(onnxpb.GraphProto)
	if err := store.Read(src, g); err == nil && len(g.Node) > 0 && g.Node[0].GetOpType() != "" {
		return "it is a bare graph (GraphProto) without the model around it"
	}
	if op, ok := tensorflowNode(head); ok {
		return fmt.Sprintf("it is a TensorFlow GraphDef (its first node is a %s); convert it with tf2onnx", op)
	}
	// A SavedModel has its schema version in field 1 and a MetaGraphDef in field 2, in the places of a
	// model's IR version and producer.
	if num, typ, n := protowire.ConsumeTag(head); n > 0 && num == 1 && typ == protowire.VarintType {
		if bytes.Contains(head, []byte("saved_model")) || bytes.Contains(head, []byte("NodeDef")) || bytes.Contains(head, []byte("tensorflow")) ||
			bytes.Contains(head, []byte("Placeholder")) || bytes.Contains(head, []byte("\x12\x05serve")) {
			return "it is a TensorFlow SavedModel; convert it with tf2onnx"
		}
	}
	return ""
}

// tensorflowNode decodes the first node of a GraphDef: field 1, with its name in field 1 and its
// operator in field 2.
func tensorflowNode(head []byte) (op string, ok bool) {
	num, typ, n := protowire.ConsumeTag(head)
	if n < 0 || num != 1 || typ != protowire.BytesType {
		return "", false
	}
	_, k := protowire.ConsumeVarint(head[n:])
	if k < 0 {
		return "", false
	}
	body := head[n+k:]
	for want := protowire.Number(1); want <= 2; want++ {
		num, typ, n := protowire.ConsumeTag(body)
		if n < 0 || num != want || typ != protowire.BytesType {
			return "", false
		}
		s, k := protowire.ConsumeBytes(body[n:])
		if k < 0 || len(s) == 0 || !isText(s) {
			return "", false
		}
		op, body = string(s), body[n+k:]
	}
	return op, true
}

// isText reports whether b is printable UTF-8, apart from a rune cut off at its end.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return len(b) < utf8.UTFMax && !utf8.FullRune(b)
		}
		if !unicode.IsPrint(r) && r != '\n' && r != '\r' && r != '\t' && r != '\ufeff' {
			return false
		}
		b = b[n:]
	}
	return true
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	if r := []rune(string(line)); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return string(bytes.TrimSpace(line))
}
