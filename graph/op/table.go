package op

import (
	"slices"
	"strings"
	"sync"

	"gradtool/graph"
)

// families lists the definitions, one slice per file.
func families() [][]Def {
	return [][]Def{
		unaryDefs(), activationDefs(), arithmeticDefs(), logicDefs(), castDefs(), reduceDefs(), softmaxDefs(),
		matmulDefs(), convDefs(), poolDefs(), normDefs(), shapeDefs(), moveDefs(), indexDefs(), constantDefs(), imageDefs(),
		lossDefs(), recurrentDefs(), attentionDefs(), controlDefs(), sequenceDefs(), randomDefs(), signalDefs(),
		quantDefs(), contribDefs(), stringDefs(), decoderDefs(),
	}
}

// lazyTable is built at its first use, not when the program starts: definitions whose decompositions build nodes
// refer back to the table, which the initialization of a variable must not.
type lazyTable struct {
	once sync.Once
	defs map[Key]*Def
}

var theTable lazyTable

func table() map[Key]*Def {
	theTable.once.Do(func() {
		t := map[Key]*Def{}
		for _, fam := range families() {
			for i := range fam {
				d := &fam[i]
				k := Key{d.Domain, d.Name}
				if t[k] != nil {
					panic("op: " + k.String() + " is defined twice")
				}
				t[k] = d
			}
		}
		theTable.defs = t
	})
	return theTable.defs
}

// Lookup returns the definition of an operator, nil if the table has none.
func Lookup(k Key) *Def { return table()[k] }

// Of returns the definition of the operator that n applies, nil if the table has none.
func Of(n *graph.Node) *Def { return Lookup(KeyOf(n)) }

// All returns the definitions ordered by domain and name.
func All() []*Def {
	var out []*Def
	for _, d := range table() {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *Def) int {
		if c := strings.Compare(a.Domain, b.Domain); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}
