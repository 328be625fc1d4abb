package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func completionVerb() verb {
	return verb{
		name: "completion", group: groupOther, args: "bash|zsh|fish", maxArgs: 1,
		summary:  "print a completion script for a shell",
		examples: []string{"source <(gradtool completion bash)", "gradtool completion fish > ~/.config/fish/completions/gradtool.fish"},
		run:      runCompletion,
	}
}

func runCompletion(s *session) error {
	scripts := map[string]func([]verb) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	script, ok := scripts[s.Args().First()]
	if !ok {
		return usagef("completion needs the name of a shell: bash, zsh or fish")
	}
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, script(verbs()))
		return err
	})
}

// flagWords returns the spellings of a verb's flags, the common ones included.
func (v verb) flagWords() []string {
	var out []string
	for _, f := range append(v.flags, commonFlags()...) {
		for _, n := range f.Names() {
			out = append(out, flagText(n))
		}
	}
	return append(out, "--help")
}

func flagUsage(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		return strings.ReplaceAll(d.GetUsage(), "`", "")
	}
	return ""
}

func bashCompletion(vs []verb) string {
	var b strings.Builder
	b.WriteString("# bash completion for gradtool\n_gradtool() {\n    local cur=${COMP_WORDS[COMP_CWORD]}\n    COMPREPLY=()\n    if [[ $COMP_CWORD -eq 1 ]]; then\n")
	var names []string
	for _, v := range vs {
		names = append(names, v.name)
	}
	fmt.Fprintf(&b, "        COMPREPLY=($(compgen -W '%s help' -- \"$cur\"))\n        return\n    fi\n", strings.Join(names, " "))
	b.WriteString("    local flags=\n    case ${COMP_WORDS[1]} in\n")
	for _, v := range vs {
		fmt.Fprintf(&b, "        %s) flags='%s' ;;\n", v.name, strings.Join(v.flagWords(), " "))
	}
	fmt.Fprintf(&b, "        help) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", strings.Join(names, " "))
	b.WriteString("    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\ncomplete -o filenames -F _gradtool gradtool\n")
	return b.String()
}

func zshCompletion(vs []verb) string {
	quote := func(s string) string { return strings.NewReplacer("'", `'\''`, ":", `\:`).Replace(s) }
	var b strings.Builder
	b.WriteString("#compdef gradtool\n_gradtool() {\n    local -a verbs flags\n    verbs=(\n")
	for _, v := range vs {
		fmt.Fprintf(&b, "        '%s:%s'\n", v.name, quote(v.summary))
	}
	b.WriteString("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n    case $words[2] in\n")
	for _, v := range vs {
		fmt.Fprintf(&b, "        %s) flags=(\n", v.name)
		for _, f := range append(v.flags, commonFlags()...) {
			for _, n := range f.Names() {
				fmt.Fprintf(&b, "            '%s:%s'\n", flagText(n), quote(flagUsage(f)))
			}
		}
		b.WriteString("        ) ;;\n")
	}
	b.WriteString("    esac\n    if [[ $words[CURRENT] == -* ]]; then\n        _describe flag flags\n    else\n        _files\n    fi\n}\nif [[ $funcstack[1] == _gradtool ]]; then _gradtool; else compdef _gradtool gradtool; fi\n")
	return b.String()
}

func fishCompletion(vs []verb) string {
	quote := func(s string) string { return strings.ReplaceAll(s, "'", `\'`) }
	var b strings.Builder
	b.WriteString("# fish completion for gradtool\n")
	for _, v := range vs {
		fmt.Fprintf(&b, "complete -c gradtool -f -n __fish_use_subcommand -a %s -d '%s'\n", v.name, quote(v.summary))
	}
	for _, v := range vs {
		for _, f := range append(v.flags, commonFlags()...) {
			fmt.Fprintf(&b, "complete -c gradtool -n '__fish_seen_subcommand_from %s'", v.name)
			for _, n := range f.Names() {
				if len(n) == 1 {
					b.WriteString(" -s " + n)
				} else {
					b.WriteString(" -l " + n)
				}
			}
			if takesValue(f) {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d '%s'\n", quote(flagUsage(f)))
		}
	}
	return b.String()
}
