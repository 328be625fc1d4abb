package fuse

import "gradtool/graph/rewrite"

// Tables returns the rules for a target.
func Tables(t Target) [][]rewrite.Rule { return t.tables() }
