//go:build ignore

// Prune is run by the script of that name.
package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// row is a model with its numbers of nodes: as it is, and after each optimiser.
type row struct {
	file                             string
	nodes, basic, extended, gradtool int
}

func main() {
	log.SetFlags(0)
	corpus, tmp := os.Getenv("GRADTOOL_CORPUS"), os.Getenv("GRADTOOL_TMP")
	f, err := os.Open(filepath.Join(corpus, "manifest.csv"))
	if err != nil {
		log.Fatal(err)
	}
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		log.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	var rows []row
	for _, line := range lines[1:] {
		number := func(name string) int {
			n, err := strconv.Atoi(line[column[name]])
			if err != nil {
				return -1
			}
			return n
		}
		r := row{line[column["file"]], number("n_nodes_noconst"), number("ort130_basic_nodes"), number("ort130_extended_nodes"), 0}
		if r.nodes < 0 || r.basic < 0 {
			continue
		}
		report := filepath.Join(tmp, "report.json")
		args := append([]string{"prune", "-q", filepath.Join(corpus, r.file), "-o", filepath.Join(tmp, "out.onnx"), "--report", report},
			strings.Fields(os.Getenv("GRADTOOL_PRUNE_FLAGS"))...)
		if out, err := exec.Command(os.Getenv("GRADTOOL_BIN"), args...).CombinedOutput(); err != nil {
			fmt.Printf("%s: %v: %s\n", r.file, err, strings.SplitN(string(out), "\n", 2)[0])
			continue
		}
		var result struct {
			After int `json:"nodes_after"`
		}
		text, err := os.ReadFile(report)
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if err != nil {
			log.Fatal(err)
		}
		r.gradtool = result.After
		rows = append(rows, r)
	}
	print(rows)
	networks(tmp)
}

// networks prints the time that prune takes for the gradients of exported networks, beside that of grad for making them: of processes, the
// least of several, in processor time. A second program that GRADTOOL_OTHER names is measured in turn with this one.
func networks(tmp string) {
	paths, err := filepath.Glob(filepath.Join(os.Getenv("GRADTOOL_MODELS"), "*", "model.onnx"))
	if err != nil || os.Getenv("GRADTOOL_MODELS") == "" || len(paths) == 0 {
		return
	}
	bin, other := os.Getenv("GRADTOOL_BIN"), os.Getenv("GRADTOOL_OTHER")
	train := filepath.Join(tmp, "train.onnx")
	spent := func(least float64, bin string, args ...string) float64 {
		cmd := exec.Command(bin, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			log.Fatalf("%v: %s", err, out)
		}
		t := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1e3
		if least == 0 || t < least {
			return t
		}
		return least
	}
	fmt.Printf("\n%8s %8s %8s %8s\n", "nodes", "grad ms", "prune ms", "other ms")
	for _, path := range paths {
		axis := "1"
		if refs, err := os.ReadFile(filepath.Join(filepath.Dir(path), "refs.json")); err == nil && strings.Contains(string(refs), "last axis") {
			axis = "-1"
		}
		var grad, prune, before float64
		for range 7 {
			grad = spent(grad, bin, "grad", "-q", "-f", "--loss", "softmax-cross-entropy,axis="+axis, path, "-o", train)
			prune = spent(prune, bin, "prune", "-q", train, "-o", os.DevNull, "--report", filepath.Join(tmp, "time.json"))
			if other != "" {
				before = spent(before, other, "prune", "-q", train, "-o", os.DevNull)
			}
		}
		var result struct {
			Before int `json:"nodes_before"`
		}
		if text, err := os.ReadFile(filepath.Join(tmp, "time.json")); err == nil {
			_ = json.Unmarshal(text, &result)
		}
		fmt.Printf("%8d %8.0f %8.0f %8.0f  %s\n", result.Before, grad, prune, before, filepath.Base(filepath.Dir(path)))
	}
}

func print(rows []row) {
	var sum row
	counted, reached := 0, 0
	var behind []row
	for _, r := range rows {
		sum.nodes += r.nodes
		sum.basic += r.basic
		sum.extended += max(r.extended, 0)
		sum.gradtool += r.gradtool
		if r.basic >= r.nodes && r.gradtool >= r.nodes {
			continue
		}
		counted++
		if r.gradtool <= r.basic {
			reached++
		} else {
			behind = append(behind, r)
		}
	}
	slices.SortStableFunc(behind, func(a, b row) int { return cmp.Compare(b.gradtool-b.basic, a.gradtool-a.basic) })
	fmt.Printf("%8s %8s %8s %8s\n", "nodes", "basic", "extended", "gradtool")
	for _, r := range append(behind, row{fmt.Sprintf("all %d models", len(rows)), sum.nodes, sum.basic, sum.extended, sum.gradtool}) {
		fmt.Printf("%8d %8d %8d %8d  %s\n", r.nodes, r.basic, r.extended, r.gradtool, r.file)
	}
	if counted > 0 {
		fmt.Printf("at most as many nodes as basic: %d of %d models, %.0f %%\n", reached, counted, 100*float64(reached)/float64(counted))
	}
}
