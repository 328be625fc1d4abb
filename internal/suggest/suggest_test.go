package suggest

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"grad", "grad", 0}, {"gard", "grad", 1},
		{"kitten", "sitting", 3}, {"größe", "grosse", 3},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	verbs := []string{"grad", "prune", "info", "show", "ops", "passes", "run", "check"}
	for _, c := range []struct {
		word string
		from []string
		want []string
	}{
		{"gard", verbs, []string{"grad"}},
		{"pru", verbs, []string{"prune"}},
		{"INFO", verbs, []string{"info"}},
		{"xyzzy", verbs, nil},
		{"weight", []string{"fc1.weight", "fc1.bias", "fc2.weight"}, []string{"fc1.weight", "fc2.weight"}},
		{"", verbs, nil},
	} {
		if got := Nearest(c.word, c.from); !slices.Equal(got, c.want) {
			t.Errorf("Nearest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}
