package emit

import (
	"errors"
	"fmt"

	"gradtool/npu/legal"
)

// Kernel emits a kernel, cut as seems best.
func (e *Emitter) Kernel(k legal.Kernel) error {
	e.role = k.Origin().Role
	var err error
	switch k := k.(type) {
	case *legal.Nest:
		err = e.planNest(k)
	case *legal.Contract:
		err = e.first(e.ContractPlans(k), func(p *Plan) error { return e.Contract(k, p) })
	case *legal.Walk:
		err = e.first(e.WalkPlans(k), func(p *Plan) error { return e.Walk(k, p) })
	case *legal.Gather:
		e.Plans = append(e.Plans, &Plan{})
		err = e.attempt(func() error { return e.Gather(k) })
	case *legal.Scatter:
		e.Plans = append(e.Plans, &Plan{})
		err = e.attempt(func() error { return e.Scatter(k) })
	}
	if err == nil {
		err = e.Plans[len(e.Plans)-1].Check(k)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", k.Origin().Node, err)
	}
	e.kernels++
	for _, a := range k.Writes() {
		e.written[a.Buf] = e.kernels
	}
	return nil
}

// planNest tries tiles that leave room for others first, so that tiles overlap in time.
func (e *Emitter) planNest(k *legal.Nest) error {
	free := e.limits().scratch
	err := ErrSpace
	for _, share := range []int{8, 4, 2, 1} {
		tile, ok := e.NestTile(k, free/share)
		if !ok {
			continue
		}
		if err = e.Nest(k, tile); err == nil || !errors.Is(err, ErrSpace) {
			e.Plans = append(e.Plans, nestPlan(k, tile))
			return err
		}
	}
	return err
}

// first emits a kernel by the first of the plans for which there is room.
func (e *Emitter) first(plans []*Plan, emit func(*Plan) error) error {
	err := ErrSpace
	for _, p := range plans {
		if err = emit(p); err == nil || !errors.Is(err, ErrSpace) {
			e.Plans = append(e.Plans, p)
			return err
		}
	}
	return err
}

func nestPlan(k *legal.Nest, tile []int) *Plan {
	p := &Plan{Tile: tile}
	for i, d := range k.Dims {
		if tile[i] < d {
			p.Order = append(p.Order, i)
		}
	}
	return p
}
