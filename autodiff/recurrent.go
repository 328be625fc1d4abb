package autodiff

import (
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// recurrentRules: RNN, GRU and LSTM are written out step by step, or as a Scan where the number of steps is large or
// not known. The forward operator keeps no gates, so nothing of it could be reused.
func recurrentRules() []Rule {
	rule := func(name string) Rule { return Rule{Name: name, Kind: Decomposed, Check: checkRecurrent} }
	return []Rule{rule("RNN"), rule("GRU"), rule("LSTM")}
}

func checkRecurrent(n *graph.Node) error {
	if op.HiddenSize(n) == 0 {
		return fmt.Errorf("the number of hidden units is not known")
	}
	return nil
}
