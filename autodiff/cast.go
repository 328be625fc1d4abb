package autodiff

import "gradtool/graph"

// castRules: a cast between float types passes the cotangent on, cast back by the driver; one that
// ends in or starts from another type carries none, which the types say.
func castRules() []Rule {
	pass := func(c *Ctx) []*graph.Value { return one(c.Ct(0)) }
	return append([]Rule{
		{Name: "Cast", Kind: HasVJP, VJP: pass},
		{Name: "CastLike", Kind: HasVJP, VJP: pass, Stop: []int{1}},
		{Name: "Identity", Kind: HasVJP, VJP: pass},
	}, noGrad("reinterprets bits", "BitCast")...)
}
