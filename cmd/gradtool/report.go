package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// report collects what a verb found, for --report and --json: an object whose first member names its schema.
type report struct {
	schema string
	fields []field
}

type field struct {
	name  string
	value any
}

func newReport(verb string) *report { return &report{schema: "gradtool." + verb + "/1"} }

// set gives a member of the report its value.
func (r *report) set(name string, value any) {
	for i := range r.fields {
		if r.fields[i].name == name {
			r.fields[i].value = value
			return
		}
	}
	r.fields = append(r.fields, field{name, value})
}

// MarshalJSON writes the members in the order in which they were set.
func (r *report) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	schema, _ := json.Marshal(r.schema)
	b.WriteString(`{"schema":` + string(schema))
	for _, f := range r.fields {
		name, _ := json.Marshal(f.name)
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, fmt.Errorf("report: %s: %w", f.name, err)
		}
		b.WriteString("," + string(name) + ":" + string(value))
	}
	b.WriteString("}")
	return b.Bytes(), nil
}

func (r *report) encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// reportFlag is --report, for verbs whose standard output carries something else.
func reportFlag() cli.Flag {
	return &cli.StringFlag{Name: "report", Usage: "write a JSON report to `FILE`"}
}

// jsonFlag is --json, for verbs whose standard output can carry the report.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"}
}

// write writes the report where --report says.
func (r *report) write(s *session) error {
	path := s.String("report")
	if path == "" {
		return nil
	}
	if n := peakMemory(); n > 0 {
		r.set("peak_memory_bytes", n)
	}
	return s.writeFile(path, false, r.encode)
}

// summaryf prints the one line that a stage says about its work.
func (s *session) summaryf(format string, args ...any) {
	if !s.quiet {
		s.say(s.verb.name+": ", fmt.Sprintf(format, args...))
	}
}

// notef prints a remark on the work.
func (s *session) notef(format string, args ...any) {
	if !s.quiet {
		s.say("gradtool: "+s.paint.Yellow("note:")+" ", fmt.Sprintf(format, args...))
	}
}

// verbosef prints what -v asks for.
func (s *session) verbosef(format string, args ...any) {
	if s.verbose && !s.quiet {
		s.say("gradtool: ", fmt.Sprintf(format, args...))
	}
}

func (s *session) say(prefix, text string) {
	fmt.Fprintln(s.messages, prefix+strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
