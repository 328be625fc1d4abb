package size

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 12897485: "12.3 MiB",
		1<<20 - 1: "1.0 MiB", 1<<20 - 52: "1023.9 KiB", 1 << 40: "1.0 TiB", -2048: "-2.0 KiB",
		math.MaxInt64: "8.0 EiB", math.MinInt64: "-8.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.0 k", 1249: "1.2 k", 1250: "1.3 k", 999949: "999.9 k", 999950: "1.0 M",
		1_200_000_000: "1.2 G", math.MaxInt64: "9.2 E", -5: "-5",
	} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 850: "850 ns", 1234: "1.23 µs", 12345: "12.3 µs", 999_600: "1.00 ms", 123_456_789: "123 ms",
		4560 * time.Millisecond: "4.56 s", 59990 * time.Millisecond: "60.0 s", 59996 * time.Millisecond: "1m00s",
		125 * time.Second: "2m05s", time.Hour - time.Millisecond: "1h00m", 64 * time.Minute: "1h04m", -time.Second: "-1.00 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", int64(d), got, want)
		}
	}
	if got := Duration(math.MinInt64); !strings.HasPrefix(got, "-") {
		t.Errorf("the least duration is %q", got)
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]Amount{
		"0": {}, "4096": {Bytes: 4096}, "4096B": {Bytes: 4096}, "256MiB": {Bytes: 256 << 20}, "1GB": {Bytes: 1e9},
		"1.5 G": {Bytes: 3 << 29}, "2k": {Bytes: 2048}, "2Ki": {Bytes: 2048}, " 1 kb ": {Bytes: 1000}, "0.1KiB": {Bytes: 102},
		"50%": {Percent: 50, IsShare: true}, "12.5 %": {Percent: 12.5, IsShare: true}, "7EiB": {Bytes: 7 << 60},
		"9223372036854775807": {Bytes: math.MaxInt64},
	} {
		got, err := Parse(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"": "number", "MiB": "number", "-1": "number", "1.2.3MiB": "number", ".": "number", "1e9": "unknown unit", "5 apples": "unknown unit",
		"8EiB": "too large", "101%": "100%", "0.5": "fraction", strings.Repeat("1", 50): "digits", "9223372036854775808": "too large",
	} {
		if got, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error with %q", s, got, err, want)
		}
	}
}

func TestAmountOf(t *testing.T) {
	for _, c := range []struct {
		a           Amount
		total, want int64
	}{
		{Amount{Bytes: 7}, 100, 7},
		{Amount{Percent: 50, IsShare: true}, 101, 50},
		{Amount{Percent: 100, IsShare: true}, math.MaxInt64, math.MaxInt64},
	} {
		if got := c.a.Of(c.total); got != c.want {
			t.Errorf("%v of %d is %d, want %d", c.a, c.total, got, c.want)
		}
	}
}
