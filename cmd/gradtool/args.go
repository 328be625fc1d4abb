package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/internal/suggest"
)

// permute moves the flags of cmd in front of the other arguments, so that they may stand anywhere: the
// library takes whatever follows the first plain argument for one more of those. After "--" nothing is a
// flag. Unknown flags and missing values are usage errors.
func permute(cmd *cli.Command, args []string) ([]string, error) {
	var flags, rest []string
	var bad []error
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if a == "-" || !strings.HasPrefix(a, "-") {
			rest = append(rest, a)
			continue
		}
		name, _, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		f := findFlag(cmd, name)
		switch {
		case f == nil:
			bad = append(bad, unknownFlag(cmd, a))
		case inline:
			flags = append(flags, a)
		case !takesValue(f):
			if g, ok := optionalValue(f); ok && i+1 < len(args) && g.accepts(args[i+1]) {
				i++
				a += "=" + args[i]
			}
			flags = append(flags, a)
		case i+1 == len(args):
			bad = append(bad, usagef("flag %s needs a value", a))
		default:
			i++
			flags = append(flags, a, args[i])
		}
	}
	if len(bad) > 0 {
		return nil, joinUsage(bad)
	}
	return append(append(flags, "--"), rest...), nil
}

// findFlag returns the flag of cmd with that name or alias, nil without one.
func findFlag(cmd *cli.Command, name string) cli.Flag {
	for _, f := range append(cmd.Flags, cli.HelpFlag) {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// takesValue reports whether the argument after the flag is its value.
func takesValue(f cli.Flag) bool {
	if _, ok := optionalValue(f); ok {
		return false
	}
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func unknownFlag(cmd *cli.Command, arg string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	var names []string
	for _, f := range cmd.Flags {
		names = append(names, f.Names()...)
	}
	err := usagef("unknown flag %s", arg)
	if near := suggest.Nearest(name, names); len(near) > 0 {
		for i, n := range near {
			near[i] = flagText(n)
		}
		return hint(err, "did you mean %s?", orList(near))
	}
	return err
}

func flagText(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// optional is the value of a flag whose value may be left out: "--random" and "--random 7".
type optional struct {
	given bool
	value string
	// accepts tells which following arguments are the flag's value.
	accepts func(string) bool
}

// Set implements flag.Value. The flag parser passes "true" for a flag without value.
func (o *optional) Set(s string) error {
	o.given = true
	if s == "true" {
		s = ""
	}
	o.value = s
	return nil
}

// String implements flag.Value.
func (o *optional) String() string {
	if o == nil {
		return ""
	}
	return o.value
}

// IsBoolFlag makes the flag parser accept the flag without a value.
func (o *optional) IsBoolFlag() bool { return true }

func optionalValue(f cli.Flag) (*optional, bool) {
	g, ok := f.(*cli.GenericFlag)
	if !ok {
		return nil, false
	}
	o, ok := g.Value.(*optional)
	return o, ok
}
