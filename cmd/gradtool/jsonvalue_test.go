package main

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// TestFiniteEncodesTheSame holds the walk over values against encoding/json, for everything that encoding/json can write.
func TestFiniteEncodesTheSame(t *testing.T) {
	type inner struct {
		A float64 `json:"a,omitempty"`
		B *int    `json:"b,omitempty"`
	}
	type outer struct {
		inner
		X     float32        `json:"x"`
		Skip  int            `json:"-"`
		Plain string         // by its Go name
		List  []inner        `json:"list"`
		Nil   []inner        `json:"nil"`
		None  []int          `json:"none,omitempty"`
		Map   map[string]any `json:"map"`
		Bytes []byte         `json:"bytes"`
		Raw   json.RawMessage
		Fixed [2]bool `json:"fixed"`
		Any   any     `json:"any"`
		low   int
	}
	three := 3
	for _, v := range []any{
		nil, 1, "s", 1.5, []int{}, []int(nil), map[string]int(nil), map[int]string{2: "b", 1: "a"}, struct{}{},
		verdict{Name: "w", What: "slope", Got: 1e300, Want: -2, OK: true}, []verdict{{Note: "n"}}, &inner{B: &three},
		outer{inner: inner{A: 2}, X: 0.1, Skip: 1, Plain: "<&>", List: []inner{{}, {B: &three}}, Map: map[string]any{"k": nil, "j": []any{1, "x"}},
			Bytes: []byte("ab"), Raw: json.RawMessage(`{"z":1}`), Any: inner{}, low: 1},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(finite(reflect.ValueOf(v)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%T: %s, %v, want %s", v, got, err, want)
		}
	}
}

// TestMarshalFinite covers numbers that JSON does not have, wherever they stand.
func TestMarshalFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		v    any
		want string
	}{
		{nan, `"NaN"`}, {float32(inf), `"Infinity"`}, {-inf, `"-Infinity"`}, {1.5, `1.5`},
		{[]float64{1, nan}, `[1,"NaN"]`},
		{map[string]any{"b": inf, "a": nil}, `{"a":null,"b":"Infinity"}`},
		{&verdict{Name: "w", Got: nan, Want: 1}, `{"name":"w","what":"","type":"","got":"NaN","want":1,"max_abs_error":0,"ok":false}`},
	} {
		got, err := marshalFinite(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%v: %s, %v, want %s", c.v, got, err, c.want)
		}
	}
	if _, err := marshalFinite(make(chan int)); err == nil {
		t.Error("a channel is encoded")
	}
}
