package main

// idleFlags returns a usage error that names those of the flags that are set although they would have no effect, and why: a flag that
// is ignored is taken for one that was heeded. Flags that the verb does not have count as not set.
func (s *session) idleFlags(why string, flags ...string) error {
	var bad []error
	for _, f := range flags {
		if s.IsSet(f) {
			bad = append(bad, usagef("--%s has no effect %s", f, why))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return hint(joinUsage(bad), "leave it out")
}
