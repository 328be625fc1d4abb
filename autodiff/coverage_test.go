package autodiff

import (
	"testing"

	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// absent lists the operators of ai.onnx that have no definition or no rule, with the reason.
var absent = map[string]string{
	"Scatter":  "deprecated, upgraded to ScatterElements",
	"Upsample": "deprecated, upgraded to Resize",
}

// TestEveryOperatorIsCovered demands a definition and a rule for every operator of ai.onnx in the schema tables.
func TestEveryOperatorIsCovered(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range schema.All() {
		if s.Domain != "" || seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		k := op.Key{Name: s.Name}
		has := op.Lookup(k) != nil && Lookup(k) != nil
		switch reason := absent[s.Name]; {
		case !has && reason == "":
			t.Errorf("%s: definition %t, rule %t", s.Name, op.Lookup(k) != nil, Lookup(k) != nil)
		case has && reason != "":
			t.Errorf("%s is said to be absent (%s), but is there", s.Name, reason)
		}
	}
	for name := range absent {
		if !seen[name] {
			t.Errorf("%s is no operator of the tables", name)
		}
	}
	if len(seen) < 200 {
		t.Errorf("the tables hold %d operators of ai.onnx, expected 200 or more", len(seen))
	}
}
