//go:build ignore

package main

import (
	"flag"
	"fmt"
	"path/filepath"

	"gradtool/memplan"
)

func main() {
	flag.Parse()
	b := &bench{}
	b.build()
	for _, dir := range modelDirs() {
		m, c := load(b.training(dir), exported(dir), false)
		for _, s := range []int64{10, 20, 30, 40, 60, 80, 100, 140, 200, 300} {
			made := must(memplan.Make(m.Graph, memplan.PlanOptions{Search: s * 1000000}))
			fmt.Println(filepath.Base(dir), s, made.Arena, made.Bound, made.Peak, 100*(float64(made.Arena)/float64(made.Bound)-1), made.Method)
		}
		c.Close()
	}
}
