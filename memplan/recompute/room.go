package recompute

import (
	"gradtool/graph"
	"gradtool/memplan"
)

// leastRoom is the peak from which room is made; pools of runtimes begin with about as much.
const leastRoom = 16 << 20

// spare is left for the sizes and zeros that are alive beside a room.
const spare = 1 << 10

// room makes, in front of everything else, two results that die at once: one about as large as all graph outputs, one about as
// large as the plan's peak. A runtime's pool grows by what it is asked for, in regions that do not join: filled by many small
// requests it has gaps between them that no large result fits in. Asked for all of it first, it has one region, in which
// what follows finds its place. So does the single block that ONNX Runtime asks for from the second run on, once it has seen
// one, and which else lies beside all that the first run took; outputs, and what kernels need, are not in that block but
// beside it, hence the first of the two. They come behind a token, so that nobody can work them out before.
func (b *barrier) room() {
	if b.peak < leastRoom {
		return
	}
	var outputs int64
	for _, v := range b.w.g.Outputs {
		n, _ := memplan.SizeOf(v.Type).Int()
		outputs += max(n, 0)
	}
	for _, size := range []int64{min(outputs+b.peak/16, b.peak), b.peak} {
		size -= spare
		dims := b.node("Add", []*graph.Value{b.int(size), b.zero}, graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
		x := b.node("ConstantOfShape", []*graph.Value{dims}, graph.TensorOf(graph.Uint8, graph.ShapeOf(size)),
			graph.TensorAttr("value", &graph.Tensor{Elem: graph.Uint8, Dims: []int64{1}, Data: graph.Bytes{0}}))
		x.Def.Meta.Set(graph.MetaBarrier, b.kind.String())
		b.loose = append(b.loose, x)
		b.at[x.Def] = len(b.loose) - 1
		b.zero = b.token()
	}
}
