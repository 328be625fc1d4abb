package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gradtool/internal/public"
)

// TestRefereeVerbs runs every verb that takes a model over the public models, smaller than 1 MB, and demands that none
// ends in an internal error: whatever a file holds, the answer is a result or an error that says what is wrong. Of the
// folders, each GRADTOOL_EVERY-th model is taken (default: 8).
func TestRefereeVerbs(t *testing.T) {
	root := public.Path(t, "corpus")
	every := 8
	if s := os.Getenv("GRADTOOL_EVERY"); s != "" {
		var err error
		if every, err = strconv.Atoi(s); err != nil || every < 1 {
			t.Fatalf("GRADTOOL_EVERY=%s: want a positive number", s)
		}
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".onnx") {
			return err
		}
		if info, err := d.Info(); err == nil && info.Size() < 1<<20 {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	runs, codes := 0, map[int]int{}
	for i := 0; i < len(files); i += every {
		for _, verb := range []string{"info", "show --types", "viz", "prune", "fuse", "grad", "grad --wrt inputs", "jvp --wrt inputs", "plan", "run --random 1"} {
			if strings.HasPrefix(verb, "run") && (!strings.Contains(files[i], "onnx-backend") || strings.Contains(files[i], "/light/")) {
				continue // some of the others declare inputs of gigabytes
			}
			args := append(strings.Fields(verb), files[i])
			switch args[0] {
			case "prune", "fuse", "grad", "jvp", "plan":
				args = append(args, "-o", filepath.Join(out, "out.onnx"))
			}
			start := time.Now()
			code, _, errs := gradtool(t, "", args...)
			runs++
			codes[code]++
			if strings.Contains(errs, "internal error") || strings.Contains(errs, "panic") || strings.Contains(errs, "please report") {
				t.Errorf("gradtool %s %s: %s", verb, files[i], errs)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Logf("gradtool %s %s took %s", verb, files[i], d.Round(time.Second))
			}
		}
	}
	t.Logf("%d runs over %d models; exit codes %v", runs, (len(files)+every-1)/every, codes)
}
