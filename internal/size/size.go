// Package size formats byte counts, counts and durations for people, and parses
// the sizes people type.
package size

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// Bytes formats n in binary units with one decimal: "0 B", "1023 B",
// "12.3 MiB".
func Bytes(n int64) string {
	return scaled(n, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
}

// Exact is Bytes with the number itself where that rounds, so that it can be told from others near it and be given back.
func Exact(n int64) string {
	if n < 1024 {
		return Bytes(n)
	}
	return fmt.Sprintf("%s (%d bytes)", Bytes(n), n)
}

// Count formats n in decimal units with one decimal: "999", "1.2 k", "4.0 M",
// "1.2 G".
func Count(n int64) string {
	return strings.TrimRight(scaled(n, 1000, []string{"", "k", "M", "G", "T", "P", "E"}), " ")
}

// scaled writes n in the largest unit that leaves at least 1 after rounding to
// one decimal.
func scaled(n, base int64, units []string) string {
	// Worked out on the magnitude in tenths, rounded half up once.
	mag := uint64(n)
	if n < 0 {
		mag = -mag
	}
	sign := ""
	if n < 0 {
		sign = "-"
	}
	if mag < uint64(base) {
		return fmt.Sprintf("%s%d %s", sign, mag, units[0])
	}
	unit, div := 0, uint64(1)
	for unit+1 < len(units) && mag/div >= uint64(base) {
		unit, div = unit+1, div*uint64(base)
	}
	tenths := func() uint64 { return mag/div*10 + (mag%div*10+div/2)/div }
	if tenths() >= uint64(base)*10 && unit+1 < len(units) {
		unit, div = unit+1, div*uint64(base)
	}
	t := tenths()
	return fmt.Sprintf("%s%d.%d %s", sign, t/10, t%10, units[unit])
}

// Duration formats d with about three digits: "850 ns", "12.3 ms", "4.56 s",
// "2m05s", "1h04m".
func Duration(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "-" + Duration(-d)
	}
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", int64(d))
	case d < time.Minute-5*time.Millisecond:
		return digits(d)
	case d < time.Hour-500*time.Millisecond:
		s := int64(d.Round(time.Second) / time.Second)
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int64(d.Round(time.Minute) / time.Minute)
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}

// digits writes 1 us <= d < 1 min with three digits.
func digits(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Microsecond, "µs"}, {time.Millisecond, "ms"}, {time.Second, "s"}} {
		v := float64(d) / float64(u.unit)
		if v >= 999.5 && u.unit < time.Second {
			continue
		}
		places := 2
		if v >= 99.95 {
			places = 0
		} else if v >= 9.995 {
			places = 1
		}
		return fmt.Sprintf("%.*f %s", places, v, u.name)
	}
	return d.String()
}

// Amount is a parsed size: a number of bytes, or a share of something.
type Amount struct {
	Bytes   int64
	Percent float64 // used, in place of Bytes, when IsShare
	IsShare bool
}

// Of returns the bytes a stands for, a share being one of total, rounded down.
func (a Amount) Of(total int64) int64 {
	if !a.IsShare {
		return a.Bytes
	}
	v := math.Floor(float64(total) * a.Percent / 100)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// String formats a: "12.3 MiB", "50%".
func (a Amount) String() string {
	if a.IsShare {
		return fmt.Sprintf("%g%%", a.Percent)
	}
	return Bytes(a.Bytes)
}

// unitLetters holds the unit of base^1, base^2, ...
const unitLetters = "kmgtpe"

// Parse reads a size: "256MiB", "1GB", "1.5 G", "4096", "50%". KiB, MiB, ... are
// powers of 1024 and so are the bare letters K, M, ...; KB, MB, ... are powers
// of 1000. Case does not matter. Negative sizes, a fraction of plain bytes and sizes
// beyond int64 are errors; so is a share that is not between 0 and 100%.
func Parse(s string) (Amount, error) {
	fail := func(why string) (Amount, error) {
		return Amount{}, fmt.Errorf("size %q: %s (examples: 256MiB, 1GB, 4096, 50%%)", s, why)
	}
	text := strings.TrimSpace(s)
	n := 0
	for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] == '.') {
		n++
	}
	number, unit := text[:n], strings.ToLower(strings.TrimSpace(text[n:]))
	if n > 40 {
		return fail("too many digits")
	}
	v, ok := new(big.Rat).SetString(number)
	if number == "" || !ok {
		return fail("it does not start with a number")
	}
	if unit == "%" {
		if v.Cmp(big.NewRat(100, 1)) > 0 {
			return fail("more than 100%")
		}
		p, _ := v.Float64()
		return Amount{Percent: p, IsShare: true}, nil
	}
	base, exp, ok := parseUnit(unit)
	if !ok {
		return fail("unknown unit")
	}
	scale := new(big.Int).Exp(big.NewInt(base), big.NewInt(exp), nil)
	v.Mul(v, new(big.Rat).SetInt(scale))
	if !v.IsInt() {
		if exp == 0 {
			return fail("a fraction of a byte")
		}
		v.SetInt(new(big.Int).Quo(v.Num(), v.Denom()))
	}
	if !v.Num().IsInt64() {
		return fail("too large")
	}
	return Amount{Bytes: v.Num().Int64()}, nil
}

// parseUnit returns base^exp for a lower-case unit.
func parseUnit(unit string) (base, exp int64, ok bool) {
	if unit == "" || unit == "b" {
		return 1024, 0, true
	}
	exp = int64(strings.IndexByte(unitLetters, unit[0]) + 1)
	switch unit[1:] {
	case "", "i", "ib":
		return 1024, exp, exp > 0
	case "b":
		return 1000, exp, exp > 0
	}
	return 0, 0, false
}
