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
