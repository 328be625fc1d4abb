package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/internal/public"
	"gradtool/onnxio"
)

// issueCase is what prune makes of the model of a public issue: its operators, those of subgraphs and functions behind
// them. That outputs keep their bits, and that a second run changes nothing, TestPruneKeepsBits checks of the same models.
type issueCase struct {
	frozen  bool // with --frozen '*'
	ops     string
	maxSize int64 // of the file; 0: what was read
	fuse    bool  // the issue is about a fusion: prune has to leave the model alone
}

var issueCases = map[string]issueCase{
	"fold_constantofshape_512.onnx":           {ops: "Constant Add", maxSize: 64 << 10},
	"fold_expand_blowup.onnx":                 {frozen: true, ops: "Constant Add", maxSize: 64 << 10},
	"fold_range_blowup.onnx":                  {ops: "Range Gather"},
	"fold_constantofshape_hostile.onnx":       {ops: "Constant"},
	"if_const_cond.onnx":                      {ops: "Constant"},
	"if_inline_subgraph_initializer.onnx":     {ops: "Squeeze"},
	"identity_captured_by_if.onnx":            {ops: "If Neg Add"},
	"name_shadow_if.onnx":                     {ops: "Neg Sub"},
	"loop_invariant_fold.onnx":                {frozen: true, ops: "Loop Identity Constant Add"},
	"output_identity_rename.onnx":             {ops: "Relu"},
	"output_identity_from_input.onnx":         {ops: "Identity"},
	"output_is_initializer.onnx":              {ops: "Relu"},
	"cse_two_graph_outputs.onnx":              {ops: "Add Identity", maxSize: 200},
	"fuse_intermediate_is_output.onnx":        {ops: "Mul Sigmoid Mul", fuse: true},
	"fuse_bias_gelu_intermediate_output.onnx": {ops: "Gemm Div Erf Add Mul Mul"},
	"layernorm_keepdims0.onnx":                {ops: "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add", fuse: true},
	"layernorm_rank1_scale_first.onnx":        {ops: "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul", fuse: true},
	"rmsnorm_scale_broadcasts.onnx":           {ops: "Pow ReduceMean Add Sqrt Div Mul", fuse: true},
	"convtransposebn_grouped.onnx":            {ops: "ConvTranspose BatchNormalization", fuse: true},
	"tied_weight_transpose.onnx":              {frozen: true, ops: "Gather Transpose MatMul"},
	"duplicate_initializers.onnx":             {ops: "MatMul MatMul"},
	"overridable_initializer.onnx":            {frozen: true, ops: "Add Mul"},
	"mul_one_broadcasts.onnx":                 {frozen: true, ops: "Mul"},
	"mul_zero_nan.onnx":                       {frozen: true, ops: "Mul"},
	"reshape_zero_copies_dim.onnx":            {ops: "Reshape Reshape"},
	"reshape_allowzero.onnx":                  {ops: "Reshape"},
	"dropout_mask_used.onnx":                  {ops: "Dropout"},
	"cast_chain_narrowing.onnx":               {ops: "Cast Cast"},
	"concat_empty_input.onnx":                 {ops: "Identity", maxSize: 200},
	"greaterorequal_opset12.onnx":             {ops: "Constant Reshape"},
	"custom_op_default_domain.onnx":           {ops: "DCNv2_TRT"},
	"fold_inside_function.onnx":               {ops: "function Constant Sub"},
	"nested_functions.onnx":                   {ops: "f2 f1 f1 Identity"},
	"optional_empty_name.onnx":                {frozen: true, ops: "Clip Clip"},
	"duplicate_node_names.onnx":               {ops: "Relu Neg"},
}

func TestPruneIssues(t *testing.T) {
	dir := public.Path(t, "corpus", "issue-repros")
	f, err := os.Open(filepath.Join(dir, "manifest.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			c, ok := issueCases[row[0]]
			if !ok {
				t.Fatalf("no expectation for %s", row[2])
			}
			in, out := filepath.Join(dir, row[0]), filepath.Join(t.TempDir(), "out.onnx")
			args := []string{"prune", in, "-o", out}
			if c.frozen {
				args = append(args, "--frozen", "*")
			}
			if err := inProcess(t, args...); err != nil {
				t.Fatal(err)
			}
			m, closer, err := onnxio.Open(out, onnxio.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			if got := strings.Join(opNames(m), " "); got != c.ops {
				t.Errorf("operators are %s, want %s: %s (%s)", got, c.ops, row[2], row[1])
			}
			before, closer2, err := onnxio.Open(in, onnxio.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer closer2.Close()
			if !slices.Equal(names(before.Graph.Inputs), names(m.Graph.Inputs)) || !slices.Equal(names(before.Graph.Outputs), names(m.Graph.Outputs)) {
				t.Errorf("inputs %v, outputs %v", names(m.Graph.Inputs), names(m.Graph.Outputs))
			}
			was, is := fileSize(t, in), fileSize(t, out)
			if limit := max(was, c.maxSize); is > limit {
				t.Errorf("%d bytes, want %d at most", is, limit)
			}
			if c.fuse && is != was {
				t.Errorf("the model changed: %d bytes, were %d", is, was)
			}
		})
	}
}

// TestTiedInitializers checks that equal weights are one if nobody trains them, and stay two if somebody may.
func TestTiedInitializers(t *testing.T) {
	in := filepath.Join(public.Path(t, "corpus", "issue-repros"), "duplicate_initializers.onnx")
	for _, c := range []struct {
		flags []string
		inits int
	}{{nil, 2}, {[]string{"--frozen", "W1"}, 2}, {[]string{"--frozen", "W*"}, 1}} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		if err := inProcess(t, append([]string{"prune", in, "-o", out}, c.flags...)...); err != nil {
			t.Fatal(err)
		}
		m, closer, err := onnxio.Open(out, onnxio.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(m.Graph.Inits); got != c.inits {
			t.Errorf("%v: %d initializers, want %d", c.flags, got, c.inits)
		}
		closer.Close()
	}
}

// opNames lists the operators of m's nodes, main graph first.
func opNames(m *graph.Model) []string {
	var out []string
	graphs := []*graph.Graph{m.Graph}
	for _, f := range m.Functions {
		graphs = append(graphs, f.Body)
	}
	for _, g := range graphs {
		for n := range g.AllNodes() {
			out = append(out, n.Op)
		}
	}
	return out
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
