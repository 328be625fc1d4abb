// Package suggest finds what somebody probably meant to write.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns up to three of the candidates that are close to word, closest first and otherwise in
// the given order: within an edit distance of a third of the word's length, or beginning with the word, or (for words of
// four letters and more) containing it. Case does not count.
func Nearest(word string, candidates []string) []string {
	type scored struct {
		name string
		dist int
	}
	low := strings.ToLower(word)
	limit := max(1, (len([]rune(word))+1)/3)
	var found []scored
	seen := map[string]bool{}
	for _, c := range candidates {
		if seen[c] || c == "" {
			continue
		}
		seen[c] = true
		lc := strings.ToLower(c)
		d := Distance(low, lc)
		switch {
		case d <= limit:
		case low != "" && strings.HasPrefix(lc, low), len(low) >= 4 && strings.Contains(lc, low):
			d = limit + 1
		default:
			continue
		}
		found = append(found, scored{c, d})
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(a.dist, b.dist) })
	var out []string
	for _, s := range found[:min(3, len(found))] {
		out = append(out, s.name)
	}
	return out
}

// Distance returns the least number of letters to insert, delete, replace, or exchange with their
// neighbour, to make b of a (optimal string alignment).
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last, row = last, row, make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			change := 1
			if x[i] == y[j] {
				change = 0
			}
			d := min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}
	return row[len(y)]
}
