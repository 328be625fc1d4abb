package autodiff

import (
	"slices"
)

// indexRules lists the rules of the operators that take, put or choose elements by index.
func indexRules() []Rule {
	return slices.Concat(gatherRules(), scatterRules(), selectRules())
}
