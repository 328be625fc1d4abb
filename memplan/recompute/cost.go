package recompute

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/memplan"
)

// perByte is what moving a byte costs beside a FLOP: element-wise operators are limited by memory traffic.
const perByte = 1

// Costs holds measured costs of nodes, by name or by the name of the first result; the unit does not matter. Nodes that
// it does not name cost what the operator table says, in proportion to those that it names. The zero Costs names none.
type Costs struct{ measured map[string]float64 }

// Len returns the number of nodes that have measured costs.
func (c Costs) Len() int { return len(c.measured) }

// ReadCosts reads costs: CSV with the columns node and cost, or the profile that ONNX Runtime writes, from which it takes
// the mean time of each node's kernel.
func ReadCosts(r io.Reader) (Costs, error) {
	b := bufio.NewReader(r)
	for {
		c, err := b.Peek(1)
		if err != nil {
			return Costs{}, errors.New("no costs: the file is empty")
		}
		if c[0] != ' ' && c[0] != '\n' && c[0] != '\r' && c[0] != '\t' {
			break
		}
		b.Discard(1)
	}
	if c, _ := b.Peek(1); c[0] == '[' {
		return readProfile(b)
	}
	return readTable(b)
}

func readTable(r io.Reader) (Costs, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return Costs{}, err
	}
	node, cost := slices.Index(rows[0], "node"), slices.Index(rows[0], "cost")
	if node < 0 || cost < 0 {
		return Costs{}, fmt.Errorf("the columns are %s, want node and cost", strings.Join(rows[0], ", "))
	}
	c := Costs{map[string]float64{}}
	var bad []error
	for i, row := range rows[1:] {
		x, err := strconv.ParseFloat(strings.TrimSpace(row[cost]), 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			bad = append(bad, fmt.Errorf("line %d: cost %q of node %q is no number of 0 or more", i+2, row[cost], row[node]))
		}
		c.measured[row[node]] = x
	}
	return c, errors.Join(bad...)
}

// readProfile reads the events of a profile: those of category Node named <node>_kernel_time have a duration.
func readProfile(r io.Reader) (Costs, error) {
	var events []struct {
		Cat  string  `json:"cat"`
		Name string  `json:"name"`
		Dur  float64 `json:"dur"`
	}
	if err := json.NewDecoder(r).Decode(&events); err != nil {
		return Costs{}, fmt.Errorf("not a profile of ONNX Runtime: %w", err)
	}
	c := Costs{map[string]float64{}}
	times := map[string]float64{}
	for _, e := range events {
		if name, ok := strings.CutSuffix(e.Name, "_kernel_time"); ok && e.Cat == "Node" && e.Dur >= 0 {
			c.measured[name] += e.Dur
			times[name]++
		}
	}
	for name, n := range times {
		c.measured[name] /= n
	}
	if len(times) == 0 {
		return Costs{}, errors.New("the profile has no kernel times of nodes")
	}
	return c, nil
}

// of returns the measured cost of a node.
func (c Costs) of(n *graph.Node) (float64, bool) {
	if x, ok := c.measured[n.Name]; ok && n.Name != "" {
		return x, true
	}
	if len(n.Out) > 0 && n.Out[0] != nil {
		x, ok := c.measured[n.Out[0].Name]
		return x, ok
	}
	return 0, false
}

// most bounds the cost of a node, so that sums stay within the numbers of package remat.
const most = 1 << 44

// prices returns a function that gives a node's cost and FLOPs.
func (c Costs) prices(g *graph.Graph) (func(n *graph.Node) (int64, float64), error) {
	counted, measured := 0.0, 0.0 // of nodes that have both
	hits := 0
	var top float64
	estimate := func(n *graph.Node) (cost, flops float64) {
		flops = FLOPs(n)
		return flops + perByte*moved(n), flops
	}
	for _, n := range g.Nodes {
		cost, _ := estimate(n)
		top = max(top, cost)
		if x, ok := c.of(n); ok {
			hits++
			counted, measured = counted+cost, measured+x
		}
	}
	if c.Len() > 0 && hits == 0 {
		return nil, fmt.Errorf("none of the %d nodes with measured costs is in the model", c.Len())
	}
	rate := 1.0
	if counted > 0 && measured > 0 {
		rate = counted / measured
	}
	scale := 1.0
	if top > most {
		scale = most / top
	}
	return func(n *graph.Node) (int64, float64) {
		cost, flops := estimate(n)
		if x, ok := c.of(n); ok {
			cost = x * rate
		}
		return int64(min(cost*scale, most)), flops
	}, nil
}

// shape returns the dimensions of a value, false if they are not known.
func shape(v *graph.Value) ([]int, bool) {
	s, ok := v.Type.Shape.Ints()
	if !ok || v.Type.Shape == nil {
		return nil, false
	}
	out := make([]int, len(s))
	for i := range s {
		out[i] = int(s[i])
	}
	return out, true
}

// FLOPs returns the work of a node as the operator table counts it, 0 where shapes are not known.
func FLOPs(n *graph.Node) float64 {
	shapes := func(list []*graph.Value) ([][]int, bool) {
		out := make([][]int, len(list))
		for i, v := range list {
			if v == nil {
				continue
			}
			s, ok := shape(v)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	in, ok := shapes(n.In)
	out, ok2 := shapes(n.Out)
	d := op.Of(n)
	if d == nil || !ok || !ok2 {
		return 0
	}
	c := &op.CostCtx{Node: n, In: in, Out: out}
	if d.Cost == nil {
		return c.OutLen(0)
	}
	return d.Cost(c)
}

// moved returns the bytes that a node reads and writes.
func moved(n *graph.Node) (sum float64) {
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v == nil {
				continue
			}
			if b, ok := memplan.SizeOf(v.Type).Int(); ok {
				sum += float64(b)
			}
		}
	}
	return sum
}
