package op

import (
	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// SchemaNode gives tests the facts of a node.
func SchemaNode(n *graph.Node) *schema.Node { return schemaNode(n, 0, nil) }
