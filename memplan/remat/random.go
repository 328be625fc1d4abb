package remat

// quantiles are those of the exponential distribution, -ln(u) for u in the middles of equal steps from 0 to 1: a change
// to the worse is accepted if it is below the temperature times one of them, drawn at random.
var quantiles = func() (q [4096]float64) {
	for k := range q {
		q[k] = -logarithm((float64(k) + 0.5) / float64(len(q)))
	}
	return q
}()

// logarithm is the natural one for 0 < x. It is worked out by the same roundings on every machine, which the standard
// library does not promise; so are all products here that a machine could fuse with a sum.
func logarithm(x float64) float64 {
	const ln2 = 0.693147180559945309417232121458
	var powers float64
	for ; x > 1.5; x /= 2 {
		powers++
	}
	for ; x < 0.75; x *= 2 {
		powers--
	}
	// ln x = 2 (y + y^3/3 + y^5/5 + ...), y = (x-1)/(x+1), |y| <= 1/5
	y := (x - 1) / (x + 1)
	y2 := float64(y * y)
	sum, term := 0.0, y
	for k := 1.0; k < 40; k += 2 {
		sum += float64(term / k)
		term = float64(term * y2)
	}
	return float64(2*sum) + float64(powers*ln2)
}

// root returns the n-th root of x, by bisection.
func root(x float64, n int) float64 {
	lo, hi := min(x, 1), max(x, 1)
	for range 100 {
		mid := float64((lo + hi) / 2)
		if power(mid, n) < x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func power(x float64, n int) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return p
}
