package offset

import (
	"strings"
	"testing"
)

func TestCSV(t *testing.T) {
	in := "id,start,end,size,alignment,gaps,hint,offset,note\na,0,9,16,8,2-3 5-6@0:8,-1,,x\n\"b,c\",10,19,8,1,,4,32,y\n"
	table, err := ReadCSV(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	a, b := table.Buffers[0], table.Buffers[1]
	if a.Lower != 0 || a.Upper != 10 || a.Size != 16 || a.Align != 8 || a.Fixed != nil || a.Hint != nil || len(a.Gaps) != 2 ||
		a.Gaps[0] != (Gap{2, 4, 0, 0}) || a.Gaps[1] != (Gap{5, 7, 0, 8}) {
		t.Errorf("first buffer: %+v", a)
	}
	if b.ID != "b,c" || b.Fixed == nil || *b.Fixed != 32 || b.Hint == nil || *b.Hint != 4 {
		t.Errorf("second buffer: %+v", b)
	}
	var out strings.Builder
	if err := table.Write(&out, []int64{8, 32}); err != nil {
		t.Fatal(err)
	}
	want := "id,start,end,size,alignment,gaps,hint,offset,note\na,0,9,16,8,2-3 5-6@0:8,-1,8,x\n\"b,c\",10,19,8,1,,4,32,y\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	table, err = ReadCSV(strings.NewReader("buffer_id,lower,upper,size\n0,1,2,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := table.Write(&out, []int64{0}); err != nil || out.String() != "buffer_id,lower,upper,size,offset\n0,1,2,3,0\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestCSVErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "line 1: no header"},
		{"id,lower,upper\n", "line 1: no column size"},
		{"id,lower,start,upper,size\n", "line 1: two columns say lower"},
		{"id,lower,upper,size\na,0,x,4\n", `line 2: upper: "x" is not a number`},
		{"id,lower,upper,size\na,0,1,4\nb,0\n", "line 3"},
		{"id,lower,upper,size,gaps\na,0,9,4,3\n", `line 2: gaps: "3" is not LOWER-UPPER`},
		{"id,lower,upper,size,gaps\na,0,9,4,3-4@5\n", `line 2: gaps: "5" is not LOW:HIGH`},
		{"id,lower,upper,size\na,3,3,4\n", `buffer "a": lifetime [3, 3) is empty`},
		{"id,lower,upper,size\na,0,1,99999999999999999999\n", "line 2: size"},
	} {
		_, err := ReadCSV(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("id,lower,upper,size,gaps,alignment\na,0,9,4,3-4@0:2,2\n")
	f.Add("id,start,end,size,offset,hint\na,0,9,4,0,1\n")
	f.Fuzz(func(t *testing.T, s string) {
		table, err := ReadCSV(strings.NewReader(s))
		if err != nil || len(table.Buffers) > 8 {
			return
		}
		r, err := Solve(table.Buffers, 0, 100_000)
		if err != nil {
			return
		}
		if err := Check(table.Buffers, r.Plan, 0); err != nil {
			t.Error(err)
		}
	})
}
