package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/internal/atomicfile"
)

// report collects what a verb found, for --report and --json: an object whose first member names its schema.
// Numbers that are not finite are the strings "NaN", "Infinity" and "-Infinity".
type report struct {
	schema string
	fields []field
	file   *atomicfile.File // of --report, nil without
	path   string
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
		value, err := marshalFinite(f.value)
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
	return &cli.StringFlag{Name: "report", Usage: "write a JSON report to `FILE`; numbers that are not finite stand in it as \"NaN\", \"Infinity\", \"-Infinity\""}
}

// jsonFlag is --json, for verbs whose standard output can carry the report.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON instead of text, with numbers that are not finite as \"NaN\", \"Infinity\", \"-Infinity\""}
}

// open starts the file that --report names, before any work: a report that cannot be written, or that would take the place
// of the model, ends the run while nothing is written.
func (r *report) open(s *session) error {
	path := s.String("report")
	if path == "" {
		if s.IsSet("report") {
			return usagef("--report: the name of the file is empty")
		}
		return nil
	}
	if o := s.String("output"); o != "" && o != "-" {
		if sameFile(path, o) {
			return usagef("--report and -o name the same file, %s", o)
		}
		if s.Bool("external-data") && sameFile(path, o+".data") {
			return usagef("--report names %s.data, where --external-data puts the weights", o)
		}
	}
	for _, in := range s.Args().Slice() {
		if in != "-" && sameFile(path, in) {
			return usagef("--report names %s, which is read", in)
		}
	}
	for _, d := range s.StringSlice("draw") {
		if sameFile(path, d) {
			return usagef("--report and --draw name the same file, %s", d)
		}
	}
	f, err := atomicfile.Create(path, atomicfile.Options{})
	if err != nil {
		return err
	}
	r.file, r.path = f, path
	return nil
}

// sameFile reports whether two paths name one regular file, one that does not exist yet included.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return errors.Is(errA, fs.ErrNotExist) && errors.Is(errB, fs.ErrNotExist) && place(a) == place(b)
}

// place returns where a file that does not exist would be created: links are followed, dangling ones too.
func place(path string) string {
	const maxLinks = 40
	for range maxLinks {
		link, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// write writes the report where --report says.
func (r *report) write() error {
	if r.file == nil {
		return nil
	}
	if n := peakMemory(); n > 0 {
		r.set("peak_memory_bytes", n)
	}
	if err := r.encode(r.file); err != nil {
		return fileError(r.path, err)
	}
	return fileError(r.path, r.file.Commit())
}

// drop gives up a report that was not written.
func (r *report) drop() {
	if r.file != nil {
		r.file.Abort()
	}
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
