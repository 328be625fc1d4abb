package pass

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gradtool/graph"
)

// show prints and dumps the model as the options ask for, after pass number i.
func (mg *Manager) show(i int, name string, changed bool, m *graph.Model) error {
	if mg.opt.After != nil {
		mg.opt.After(name, changed, m)
	}
	switch want := mg.opt.PrintAfter; {
	case i == 0 || want == "":
	case want == "changed" && !changed:
		fmt.Fprintf(mg.opt.Log, "*** %s changed nothing\n", name)
	case want == "all" || want == "changed" || want == name:
		fmt.Fprintf(mg.opt.Log, "*** after %s\n", name)
		if err := graph.Print(mg.opt.Log, m, graph.PrintOptions{}); err != nil {
			return &Error{name, err}
		}
	}
	if mg.opt.DumpDir == "" {
		return nil
	}
	if err := mg.dump(i, name, m); err != nil {
		return &Error{name, fmt.Errorf("dump: %w", err)}
	}
	return nil
}

// dump writes the model's text to a file named after the pass and its number.
func (mg *Manager) dump(i int, name string, m *graph.Model) error {
	if err := os.MkdirAll(mg.opt.DumpDir, 0o777); err != nil {
		return err
	}
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\: `, r) {
			return '_'
		}
		return r
	}, name)
	f, err := os.Create(filepath.Join(mg.opt.DumpDir, fmt.Sprintf("%02d-%s.txt", i, clean)))
	if err != nil {
		return err
	}
	err = graph.Print(f, m, graph.PrintOptions{Hash: true})
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// WriteTimes writes a table of what each pass took and did.
func (r *Report) WriteTimes(w io.Writer) error {
	wide := len("pass")
	var total, verify time.Duration
	for _, s := range r.Stats {
		wide = max(wide, len(s.Name))
		total += s.Time
		verify += s.VerifyTime
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }
	row := func(name, t, v, nodes string) string {
		return strings.TrimRight(fmt.Sprintf("%-*s  %12s  %12s  %s", wide, name, t, v, nodes), " ") + "\n"
	}
	var b strings.Builder
	b.WriteString(row("pass", "time", "verify", "nodes"))
	for _, s := range r.Stats {
		count := fmt.Sprint(s.After)
		if s.Before != s.After {
			count = fmt.Sprintf("%d -> %d", s.Before, s.After)
		}
		b.WriteString(row(s.Name, ms(s.Time), ms(s.VerifyTime), count))
	}
	b.WriteString(row("total", ms(total), ms(verify), ""))
	_, err := io.WriteString(w, b.String())
	return err
}
