package remat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ReadJSON reads a graph in the node-link form of NetworkX, as Moccasin's benchmarks have it. A node has an id (or, without
// one, its name serves), memory as "cost_ram", "out_cost" or "memory", and cost as "cost_cpu", "duration" or "cost"; a
// link has "source" and "target" (or "0" and "1"). The order is that of graph.order, a list of ids, if that is there, and
// else the topological order of NetworkX.
func ReadJSON(r io.Reader) (*Graph, error) {
	var file struct {
		Directed *bool `json:"directed"`
		Graph    struct {
			Order []json.RawMessage `json:"order"`
		} `json:"graph"`
		Nodes []map[string]json.RawMessage `json:"nodes"`
		Links []map[string]json.RawMessage `json:"links"`
		Edges []map[string]json.RawMessage `json:"edges"`
	}
	d := json.NewDecoder(r)
	var wrong *json.UnmarshalTypeError
	switch err := d.Decode(&file); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("no graph: the input is empty")
	case errors.As(err, &wrong):
		what := "it"
		if wrong.Field != "" {
			what = "member " + wrong.Field
		}
		return nil, fmt.Errorf("no graph in node-link form: %s is of JSON type %s", what, wrong.Value)
	case err != nil:
		return nil, fmt.Errorf("JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("JSON: something follows the graph, at byte %d", d.InputOffset())
	}
	if file.Directed != nil && !*file.Directed {
		return nil, errors.New("the graph is not directed")
	}
	if len(file.Nodes) == 0 {
		return nil, errors.New("the graph has no nodes")
	}
	g := &Graph{}
	index := map[string]int32{}
	var bad []error
	for k, n := range file.Nodes {
		id, name := text(n["id"]), text(n["name"])
		if id == "" {
			id = name
		}
		if name == "" {
			name = id
		}
		if _, twice := index[id]; twice || id == "" {
			bad = append(bad, fmt.Errorf("node %d: id %q is empty or there twice", k, id))
		}
		memory, err1 := number(n, "cost_ram", "out_cost", "memory")
		cost, err2 := number(n, "cost_cpu", "duration", "cost")
		if err := errors.Join(err1, err2); err != nil {
			bad = append(bad, fmt.Errorf("node %q: %w", name, err))
		}
		index[id] = int32(k)
		raw := n["id"]
		if raw == nil {
			raw = n["name"]
		}
		g.IDs = append(g.IDs, string(raw))
		g.Names = append(g.Names, name)
		g.Memory = append(g.Memory, memory)
		g.Cost = append(g.Cost, cost)
	}
	g.Parents = make([][]int32, len(g.Names))
	for k, l := range append(file.Links, file.Edges...) {
		from, to := l["source"], l["target"]
		if from == nil && to == nil {
			from, to = l["0"], l["1"]
		}
		p, ok1 := index[text(from)]
		v, ok2 := index[text(to)]
		if !ok1 || !ok2 {
			bad = append(bad, fmt.Errorf("link %d: from %q to %q: no such node", k, text(from), text(to)))
			continue
		}
		if !slices.Contains(g.Parents[v], p) {
			g.Parents[v] = append(g.Parents[v], p)
		}
	}
	for _, raw := range file.Graph.Order {
		v, ok := index[text(raw)]
		if !ok {
			bad = append(bad, fmt.Errorf("graph.order: no node %q", text(raw)))
		}
		g.Order = append(g.Order, v)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	if g.Order == nil {
		if err := g.sort(); err != nil {
			return nil, err
		}
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return g, nil
}

// text returns an id as text: strings as they are, numbers as they are written, "" for nothing.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// number returns the first of a node's members with one of the names.
func number(n map[string]json.RawMessage, names ...string) (int64, error) {
	for _, name := range names {
		raw, ok := n[name]
		if !ok {
			continue
		}
		var f float64
		if err := json.Unmarshal(raw, &f); err != nil || f < 0 || f > limit || f != math.Trunc(f) {
			return 0, fmt.Errorf("%s is %s, want a whole number from 0 to %d", name, raw, int64(limit))
		}
		return int64(f), nil
	}
	return 0, fmt.Errorf("none of %q", names)
}

// WriteJSON writes a plan for a graph that ReadJSON has read: an object with the budget, figures of the plan and of the
// graph's own order, and the sequence as a list of ids.
func WriteJSON(w io.Writer, g *Graph, p Plan, budget int64) error {
	u, err := Simulate(g, g.Order)
	if err != nil {
		return err
	}
	out := struct {
		Schema    string            `json:"schema"`
		Budget    int64             `json:"budget"`
		Peak      int64             `json:"peak"`
		Cost      int64             `json:"cost"`
		OrderPeak int64             `json:"order_peak"`
		BaseCost  int64             `json:"base_cost"`
		Sequence  []json.RawMessage `json:"sequence"`
	}{"gradtool.remat/1", budget, p.Peak, p.Cost, u.Peak, g.BaseCost(), make([]json.RawMessage, len(p.Sequence))}
	for k, v := range p.Sequence {
		out.Sequence[k] = json.RawMessage(g.IDs[v])
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}
