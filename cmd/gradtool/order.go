package main

import (
	"cmp"
	"maps"
	"slices"
)

// sortedKeys returns the keys of m in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func containsString(list []string, s string) bool { return slices.Contains(list, s) }
