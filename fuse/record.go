package fuse

import (
	"encoding/json"
	"fmt"

	"gradtool/graph"
)

// Domain is the domain of the functions that clusters become.
const Domain = "gradtool"

// Metadata of the calls of clusters, and of clusters' nodes where they stay flat.
const (
	MetaCluster = graph.MetaCluster         // the cluster's id in the model: c1, c2, ...
	MetaRule    = graph.MetaRule            // what the cluster is: linear-gelu, attention, elementwise, ...
	MetaPair    = "gradtool.cluster.pair"   // ids of the clusters of the other direction, separated by spaces
	MetaSaved   = "gradtool.cluster.saved"  // bytes that need not be moved, a number or an expression in the symbolic dims
	MetaInside  = "gradtool.cluster.inside" // names of the values that no longer cross the border, a JSON list
	MetaNodes   = "gradtool.cluster.nodes"  // what Inline restores that the body does not say, see record
	metaPlace   = "gradtool.cluster.place"  // of a node outside of clusters that calls have come in front of: its place, from 1
)

// Metadata of the model, for Inline to restore what the functions required.
const (
	metaIR     = "gradtool.cluster.ir"     // the IR version before
	metaInputs = "gradtool.cluster.inputs" // initializers that were listed as inputs, see listed
)

// listed is an initializer that was the input of that place too. Below IR version 4 all are, and are constants nevertheless; from
// then on an initializer among the inputs is a default, which runtimes cannot fold.
type listed struct {
	Name string `json:"n"`
	At   int    `json:"i"`
}

// record is what a call knows of a node of its function's body, by position. In bodies nodes have no names and metadata
// that mean anything: equal clusters share one body.
type record struct {
	Name  string      `json:"n,omitempty"`
	Doc   string      `json:"d,omitempty"`
	Meta  [][2]string `json:"m,omitempty"`
	Out   []string    `json:"o,omitempty"` // names of the results, "" where they are omitted
	Const string      `json:"c,omitempty"` // of constants: isNode or isInit
	Label string      `json:"t,omitempty"` // of constants: the name that the tensor in the attribute has
	At    int         `json:"p,omitempty"` // place among the nodes of the graph, from 1; 0 if it is not known
}

// Where a constant inside a body comes from.
const (
	isNode = "node" // a Constant node
	isInit = "init" // an initializer
)

func recordOf(n *graph.Node) record {
	r := record{Name: n.Name, Doc: n.Doc}
	for _, e := range n.Meta {
		r.Meta = append(r.Meta, [2]string{e.Key, e.Value})
	}
	for _, v := range n.Out {
		name := ""
		if v != nil {
			name = v.Name
		}
		r.Out = append(r.Out, name)
	}
	return r
}

func (r record) meta() graph.Meta {
	var m graph.Meta
	for _, e := range r.Meta {
		m = append(m, graph.MetaEntry{Key: e[0], Value: e[1]})
	}
	return m
}

func encode(list any) string {
	b, err := json.Marshal(list)
	if err != nil {
		return "" // strings and lists of them always have a form
	}
	return string(b)
}

// records returns what the call n knows of the want nodes of its function's body.
func records(n *graph.Node, want int) ([]record, error) {
	var list []record
	if err := json.Unmarshal([]byte(n.Meta.Get(MetaNodes)), &list); err != nil {
		return nil, fmt.Errorf("%s: %w", MetaNodes, err)
	}
	if len(list) != want {
		return nil, fmt.Errorf("%s: %d nodes, the function has %d", MetaNodes, len(list), want)
	}
	return list, nil
}
