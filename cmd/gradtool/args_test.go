package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestPermute(t *testing.T) {
	cmd := &cli.Command{Name: "test", Flags: []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
		&cli.StringSliceFlag{Name: "wrt"},
		&cli.Int64Flag{Name: "axis"},
		&cli.GenericFlag{Name: "random", Value: &optional{accepts: isSeed}},
	}}
	for _, c := range []struct{ in, want string }{
		{"", "--"},
		{"m", "-- m"},
		{"m -q", "-q -- m"},
		{"m -o x", "-o x -- m"},
		{"m -o - -", "-o - -- m -"},
		{"-o=x m --quiet", "-o=x --quiet -- m"},
		{"m --wrt a n --wrt b", "--wrt a --wrt b -- m n"},
		{"m --axis -1", "--axis -1 -- m"},
		{"-q -- m -o x", "-q -- m -o x"},
		{"m --random -q", "--random -q -- m"},
		{"--random 7 m", "--random=7 -- m"},
		{"--random m", "--random -- m"},
		{"--random=7 m", "--random=7 -- m"},
		{"m -h", "-h -- m"},
	} {
		got, err := permute(cmd, strings.Fields(c.in))
		if err != nil || !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("permute(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"m -o", "flag -o needs a value"},
		{"m --oops", "unknown flag --oops"},
		{"m --oops=1 --what", "unknown flag --what"},
		{"-x", "unknown flag -x"},
	} {
		_, err := permute(cmd, strings.Fields(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != codeUsage {
			t.Errorf("permute(%q) gave %v, want a usage error with %q", c.in, err, c.want)
		}
	}
}
