package memplan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

func TestExplore(t *testing.T) {
	dir := os.Getenv("EXPLORE")
	if dir == "" {
		t.Skip()
	}
	N, _ := strconv.Atoi(os.Getenv("N"))
	if N == 0 {
		N = 8
	}
	files, _ := filepath.Glob(dir)
	for _, f := range files {
		m, c, err := onnxio.Open(f, onnxio.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.Sort()
		for v := range m.Graph.Values() {
			if v.Type.Shape != nil {
				for i, d := range v.Type.Shape {
					v.Type.Shape[i] = d.Eval(map[string]int64{"N": int64(N)})
				}
			}
		}
		op.Upgrade(m)
		if _, err := op.Infer(m); err != nil {
			t.Log(err)
		}
		naive, err := newNet(m.Graph, Options{NoViews: true, NoInPlace: true, Guess: 8}, false)
		if err != nil {
			t.Fatal(err)
		}
		n0 := naive.simulate(naive.given()).peak
		n, err := newNet(m.Graph, Options{Guess: 8}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range n.outside {
			if len(n.outside) > 3 {
				break
			}
			fmt.Println("outside", o.Value.Name, o.Why)
		}
		nv, _ := newNet(m.Graph, Options{NoInPlace: true, Guess: 8}, false)
		pc := func(x int64) string { return fmt.Sprintf("%.1f%%", 100*float64(x)/float64(n0)) }
		var outs int64
		for i := range n.stores {
			if n.stores[i].output {
				outs += n.stores[i].bytes
			}
		}
		fmt.Printf("%-22s nodes %d naive %.1f MB outs %s outside %d | views %s inplace %s", strings.TrimSuffix(filepath.Base(f), ".onnx"), len(n.nodes), float64(n0)/1e6, pc(outs), len(n.outside), pc(nv.simulate(nv.given()).peak), pc(n.simulate(n.given()).peak))
		t0 := time.Now()
		order := n.given()
		for i := 0; i < 3; i++ {
			order = n.eager(order, i > 0)
			if !n.valid(order) {
				t.Fatal("eager invalid")
			}
			fmt.Printf(" E %s", pc(n.simulate(order).peak))
			order = n.lazy(order, i > 0)
			if !n.valid(order) {
				t.Fatal("lazy invalid")
			}
			fmt.Printf(" L %s", pc(n.simulate(order).peak))
		}
		fmt.Printf(" %v\n", time.Since(t0).Round(time.Millisecond))
		if os.Getenv("TOP") != "" {
			l := n.live(m.Graph, order)
			type row struct {
				key   string
				bytes int64
				count int
			}
			sum := map[string]*row{}
			for _, b := range l.Buffers {
				if b.First <= l.At && b.Last >= l.At && b.Node == nil {
					v := b.Values[0]
					var rd []string
					for _, w := range b.Values {
						for _, u := range w.Uses() {
							if u.Node != nil {
								rd = append(rd, u.Node.Op+":"+u.Node.Meta.Get(graph.MetaRole))
							} else {
								rd = append(rd, "OUT")
							}
						}
					}
					sortStrings(rd)
					k := fmt.Sprintf("%s:%s -> %s", v.Def.Op, v.Def.Meta.Get(graph.MetaRole), strings.Join(rd, " "))
					if len(k) > 200 {
						k = k[:200]
					}
					if sum[k] == nil {
						sum[k] = &row{key: k}
					}
					sum[k].bytes += b.Bytes
					sum[k].count++
				}
			}
			var rows []*row
			for _, r := range sum {
				rows = append(rows, r)
			}
			slices.SortFunc(rows, func(a, b *row) int { return int(b.bytes - a.bytes) })
			fmt.Println("  peak at", l.At, "of", len(l.Order), l.Order[l.At].Label())
			for i, r := range rows {
				if i < 25 {
					fmt.Printf("   %5.1f%% %3dx %s\n", 100*float64(r.bytes)/float64(l.Peak), r.count, r.key)
				}
			}
		}
		c.Close()
	}
}

func sortStrings(s []string) { slices.Sort(s) }
