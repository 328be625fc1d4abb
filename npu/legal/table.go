package legal

import (
	"maps"
	"sync"

	"gradtool/graph/op"
)

// table returns the lowerings by operator. Those of one family stand in one file.
var table = sync.OnceValue(func() map[op.Key]lowering {
	t := map[op.Key]lowering{}
	for _, family := range []map[string]lowering{
		unaryOps(), binaryOps(), reduceOps(), softmaxOps(), normOps(), matmulOps(), convOps(), poolOps(), shapeOps(), moveOps(), indexOps(),
	} {
		for name, f := range family {
			t[op.Key{Name: name}] = f
		}
	}
	maps.DeleteFunc(t, func(_ op.Key, f lowering) bool { return f == nil })
	return t
})
