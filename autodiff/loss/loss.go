// Package loss attaches losses to graphs. A loss comes with the cotangent of what it is a loss of,
// in the form that costs least, so that the reverse sweep starts at the prediction.
package loss

import (
	"fmt"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Spec is a loss as a user writes it: KIND[,key=value...].
type Spec struct {
	Kind      string
	Axis      int64  // class axis of softmax-cross-entropy
	Reduction string // "mean" or "sum"
	Ignore    *int64 // class index whose rows count nothing
}

// kinds are the losses, for errors.
var kinds = []string{"softmax-cross-entropy", "mse"}

// Parse reads a loss specification: softmax-cross-entropy[,axis=K][,reduction=mean|sum][,ignore=I] or
// mse[,reduction=mean|sum]. The class axis is 1 by default, or the last one for predictions of rank below 3.
func Parse(s string) (Spec, error) {
	parts := strings.Split(s, ",")
	spec := Spec{Kind: parts[0], Axis: 1, Reduction: "mean"}
	if spec.Kind != "softmax-cross-entropy" && spec.Kind != "mse" {
		return spec, fmt.Errorf("unknown loss %q; there are %s", spec.Kind, strings.Join(kinds, ", "))
	}
	for _, p := range parts[1:] {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			return spec, fmt.Errorf("loss option %q: want key=value", p)
		}
		switch {
		case k == "reduction":
			if v != "mean" && v != "sum" {
				return spec, fmt.Errorf("loss option reduction=%s: want mean or sum", v)
			}
			spec.Reduction = v
		case (k == "axis" || k == "ignore") && spec.Kind == "softmax-cross-entropy":
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return spec, fmt.Errorf("loss option %s=%s: want an integer of 64 bits", k, v)
			}
			if k == "axis" {
				spec.Axis = n
			} else {
				spec.Ignore = &n
			}
		default:
			return spec, fmt.Errorf("loss %s does not take the option %q", spec.Kind, k)
		}
	}
	return spec, nil
}

// Attached is a loss in a graph.
type Attached struct {
	Target *graph.Value // the new graph input with what the prediction should be
	Loss   *graph.Value // the scalar loss
	Ct     *graph.Value // the loss's derivative with respect to the prediction
}

// Attach adds the loss of prediction y to b's graph. The target input is named <y>_target: int64 class
// indices of y's shape without the class axis for softmax-cross-entropy, y's own type for mse. What the
// loss needs gets b's role "loss", what only its derivative needs "backward".
func Attach(b *op.Builder, spec Spec, y *graph.Value) (*Attached, error) {
	if !y.Type.IsTensor() || !y.Type.Elem.IsDifferentiable() {
		return nil, fmt.Errorf("output %q is %s: a loss needs a float tensor", y.Name, y.Type)
	}
	if y.Type.Shape == nil {
		return nil, fmt.Errorf("the rank of output %q is not known: a loss needs it", y.Name)
	}
	role, prefix := b.Role, b.Prefix
	defer func() { b.Role, b.Prefix = role, prefix }()
	b.Prefix = "loss"
	if spec.Kind == "mse" {
		return meanSquaredError(b, spec, y)
	}
	return softmaxCrossEntropy(b, spec, y)
}

// wide returns the element type in which a loss of values of type t is summed: rows are counted, and
// contributions added up, by the ten thousands, beyond what 16 bits hold.
func wide(t graph.DataType) graph.DataType {
	if t.Bits() == 16 {
		return graph.Float
	}
	return t
}

// meanSquaredError: L = mean((y - t)^2), dL/dy = 2 (y - t) / n; the sum for reduction "sum".
func meanSquaredError(b *op.Builder, spec Spec, y *graph.Value) (*Attached, error) {
	elem := y.Type.Elem
	t := b.G.AddInput(b.G.Model.Fresh(y.Name+"_target"), graph.TensorOf(elem, y.Type.Shape.Clone()))
	b.Role = graph.RoleLoss
	diff := b.Cast(b.Sub(y, t), wide(elem))
	reduce := "ReduceMean"
	if spec.Reduction == "sum" {
		reduce = "ReduceSum"
	}
	loss := b.Op(reduce, []*graph.Value{b.Mul(diff, diff)}, graph.IntAttr("keepdims", 0))
	loss = b.Cast(loss, elem)
	b.Role, b.Prefix = graph.RoleBackward, "loss/grad"
	ct := b.MulScalar(diff, 2)
	if spec.Reduction == "mean" {
		ct = b.Div(ct, b.Cast(b.Unary("Size", y), wide(elem)))
	}
	return &Attached{t, loss, b.Cast(ct, elem)}, nil
}

// softmaxCrossEntropy: with p = softmax(y) along the class axis and n rows that count,
// L = -1/n sum log p[target], dL/dy = (p - onehot(target)) / n. Rows whose target is spec.Ignore count
// nothing. p comes from the log-softmax that the loss needs anyway, and the one-hot matrix is never
// formed: -1/n is added in place by ScatterElements.
func softmaxCrossEntropy(b *op.Builder, spec Spec, y *graph.Value) (*Attached, error) {
	rank := len(y.Type.Shape)
	axis := spec.Axis
	if rank == 1 && axis == 1 {
		axis = 0
	}
	if axis < 0 {
		axis += int64(rank)
	}
	if axis < 0 || axis >= int64(rank) {
		return nil, fmt.Errorf("loss axis %d is outside output %q of shape %s", spec.Axis, y.Name, y.Type.Shape)
	}
	rows := append(y.Type.Shape[:axis:axis], y.Type.Shape[axis+1:]...)
	t := b.G.AddInput(b.G.Model.Fresh(y.Name+"_target"), graph.TensorOf(graph.Int64, rows))
	elem := y.Type.Elem
	sum := wide(elem) // runtimes have no narrower scatter sums either

	b.Role = graph.RoleLoss
	logp := b.Unary("LogSoftmax", y, graph.IntAttr("axis", axis))
	class := t
	var counts *graph.Value // 1 for rows that count, 0 for ignored ones
	if spec.Ignore != nil {
		ignored := b.Binary("Equal", t, b.IntScalar(*spec.Ignore))
		counts = b.Cast(b.Unary("Not", ignored), sum)
		class = b.Where(ignored, b.IntScalar(0), t)
	}
	index := b.Unsqueeze(class, axis)
	picked := b.Cast(b.Binary("GatherElements", logp, index, graph.IntAttr("axis", axis)), sum)
	if counts != nil {
		counts = b.Unsqueeze(counts, axis)
		picked = b.Mul(picked, counts)
	}
	var n *graph.Value // the number of rows that count, as a float scalar; nil for a sum
	loss := b.ReduceAll(picked)
	if spec.Reduction == "mean" {
		if counts != nil {
			n = b.ReduceAll(counts)
		} else {
			n = b.Cast(b.Unary("Size", t), sum)
		}
		loss = b.Div(loss, n)
	}
	loss = b.Cast(b.Neg(loss), elem)

	b.Role, b.Prefix = graph.RoleBackward, "loss/grad"
	weight := b.Scalar(sum, 1) // of each row in the derivative
	switch {
	case n != nil && counts != nil: // where no row counts the loss is 0/0, but nothing is to be learnt from it
		weight = b.Div(weight, b.Op("Max", []*graph.Value{n, b.Scalar(sum, 1)}))
	case n != nil:
		weight = b.Div(weight, n)
	}
	if counts != nil {
		weight = b.Mul(counts, weight)
	}
	p := b.Mul(b.Cast(b.Unary("Exp", logp), sum), weight)
	updates := b.Expand(b.Neg(weight), b.Shape(index))
	ct := b.Op("ScatterElements", []*graph.Value{p, index, updates}, graph.IntAttr("axis", axis), graph.StringAttr("reduction", "add"))
	return &Attached{t, loss, b.Cast(ct, elem)}, nil
}
