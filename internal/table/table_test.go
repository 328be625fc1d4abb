package table

import (
	"errors"
	"strings"
	"testing"
)

func sample() *Table {
	t := New(Column{Title: "op"}, Column{Title: "count", Right: true, Fixed: true}, Column{Title: "where"})
	t.Row("Conv", "12", "/layer1/conv1/Conv")
	t.Row("größer", "1000000", "a\tb")
	t.Row("Relu")
	return t
}

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `
op        count  where
Conv         12  /layer1/conv1/Conv
größer  1000000  a b
Relu
`},
		{27, `
op        count  where
Conv         12  /layer1/c…
größer  1000000  a b
Relu
`},
		{5, `
op      count  whe…
Conv       12  /la…
grö…  1000000  a b
Relu
`},
	} {
		var b strings.Builder
		if err := sample().Write(&b, Options{Width: c.width}); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimPrefix(c.want, "\n")
		if b.String() != want {
			t.Errorf("width %d:\n%s\nwant\n%s", c.width, b.String(), want)
		}
	}
}

func TestHeader(t *testing.T) {
	var b strings.Builder
	tab := New(Column{Title: "n", Right: true})
	tab.Row("100")
	if err := tab.Write(&b, Options{Header: func(s string) string { return "<" + s + ">" }}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "<  n>\n100\n" {
		t.Errorf("%q", got)
	}
}

func TestWriteTSV(t *testing.T) {
	var b strings.Builder
	tab := sample()
	tab.Row(`C:\x`, "1\n2", "", "dropped")
	if err := tab.WriteTSV(&b); err != nil {
		t.Fatal(err)
	}
	want := "op\tcount\twhere\nConv\t12\t/layer1/conv1/Conv\ngrößer\t1000000\ta\\tb\nRelu\t\t\nC:\\\\x\t1\\n2\t\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteError(t *testing.T) {
	if sample().Write(full{}, Options{}) == nil || sample().WriteTSV(full{}) == nil {
		t.Error("an error of the writer is lost")
	}
}
