package op

// Limits of the buffer in which windows are laid out as columns for a matrix product.
const (
	columnElems = 1 << 19 // elements to aim for: fits a core's cache
	minColumns  = 64      // but no fewer columns than this, or the product degrades
)

// lines is a window's geometry prepared for kernels that copy along the last axis.
type lines struct {
	*window
	rows int     // output rows: products of all output sizes but the last
	at   [][]int // by tap and output row: input offset of the row the tap reads, -1 where that is padding
	edge [][3]int
}

// newLines prepares a window.
func newLines(w *window) *lines {
	last := len(w.in) - 1
	l := &lines{window: w, rows: prod(w.out[:last]), at: make([][]int, prod(w.kernel)), edge: make([][3]int, w.kernel[last])}
	w.taps(func(i int, tap []int) {
		l.at[i] = make([]int, 0, l.rows)
		w.eachRow(tap, func(in int) { l.at[i] = append(l.at[i], in) })
	})
	for t := range l.edge {
		l.edge[t][0], l.edge[t][1], l.edge[t][2] = w.inside(t)
	}
	return l
}

// row describes output row r as tap i sees it: outputs [lo, hi) of the row read the input from offset first in
// steps of the last stride; the others read padding.
func (l *lines) row(i, r int) (lo, hi, first int) {
	at := l.at[i][r]
	if at < 0 {
		return 0, 0, 0
	}
	e := l.edge[i%len(l.edge)]
	return e[0], e[1], at + e[2]
}

func (l *lines) lastStride() int { return l.stride[len(l.stride)-1] }
func (l *lines) width() int      { return l.out[len(l.out)-1] }

// toColumns lays out what each tap reads of one channel for output rows [r0, r1): row i of the result, the rows being ld
// apart in col, is tap i.
func toColumns[T number](l *lines, x []T, r0, r1 int, col []T, ld int) {
	s, width := l.lastStride(), l.width()
	for i := range l.at {
		for r := r0; r < r1; r++ {
			dst := col[i*ld+(r-r0)*width:][:width]
			lo, hi, first := l.row(i, r)
			if lo >= hi {
				clear(dst)
				continue
			}
			clear(dst[:lo])
			if s == 1 {
				copy(dst[lo:hi], x[first:])
			} else {
				for j, at := lo, first; j < hi; j, at = j+1, at+s {
					dst[j] = x[at]
				}
			}
			clear(dst[hi:])
		}
	}
}

// addColumns is the transpose of toColumns: it adds to each input element what the taps that read it hold.
func addColumns[T number](l *lines, x []T, r0, r1 int, col []T, ld int) {
	s, width := l.lastStride(), l.width()
	for i := range l.at {
		for r := r0; r < r1; r++ {
			src := col[i*ld+(r-r0)*width:][:width]
			lo, hi, first := l.row(i, r)
			if lo >= hi {
				continue
			}
			if s == 1 {
				dst := x[first:][:hi-lo]
				for j, v := range src[lo:hi] {
					dst[j] += v
				}
				continue
			}
			for j, at := lo, first; j < hi; j, at = j+1, at+s {
				x[at] += src[j]
			}
		}
	}
}

// convSize is the layout of a convolution's operands besides the spatial axes.
type convSize struct{ batch, groups, inPer, outPer int } // channels per group, as the convolution, not its transpose, sees them

// convolve adds the convolution of x with the weights to y.
func convolve[T number](w *window, c convSize, x, weights, y []T) {
	l := newLines(w)
	out, depth := prod(w.out), c.inPer*len(l.at)
	if out == 0 || depth == 0 || c.batch == 0 {
		return
	}
	if c.inPer == 1 && c.outPer <= 4 {
		convolveDepthwise(l, c, x, weights, y)
		return
	}
	columns := max(minColumns, columnElems/depth)
	images, rows := 1, l.rows
	if out < columns {
		images = min(c.batch, max(1, columns/out))
	} else {
		rows = max(1, columns/l.width())
	}
	blocks, chunks := (c.batch+images-1)/images, (l.rows+rows-1)/rows
	parallel(c.groups*blocks*chunks, 1, func(lo, hi int) {
		var col, tmp []T
		for task := lo; task < hi; task++ {
			g, block, chunk := task/(blocks*chunks), task/chunks%blocks, task%chunks
			first, r0 := block*images, chunk*rows
			n, r1 := min(images, c.batch-first), min(r0+rows, l.rows)
			wg := newMatrix(weights[g*c.outPer*depth:][:c.outPer*depth], c.outPer, depth)
			if n == 1 {
				dst := y[(first*c.groups+g)*c.outPer*out+r0*l.width():]
				target := matrix[T]{dst, c.outPer, (r1 - r0) * l.width(), out}
				gemm(false, false, 1, wg, columnsOf(l, c, x, first, g, r0, r1, &col), 1, target)
				continue
			}
			// Small outputs of several images side by side.
			wide := n * out
			col, tmp = grow(col, depth*wide), grow(tmp, c.outPer*wide)
			for i := range n {
				for ch := range c.inPer {
					src := x[((first+i)*c.groups+g)*c.inPer*prod(w.in)+ch*prod(w.in):][:prod(w.in)]
					toColumns(l, src, 0, l.rows, col[ch*len(l.at)*wide+i*out:], wide)
				}
			}
			gemm(false, false, 1, wg, newMatrix(col, depth, wide), 0, newMatrix(tmp, c.outPer, wide))
			for i := range n {
				for m := range c.outPer {
					dst := y[((first+i)*c.groups+g)*c.outPer*out+m*out:][:out]
					for j, v := range tmp[m*wide+i*out:][:out] {
						dst[j] += v
					}
				}
			}
		}
	})
}

// columnsOf returns the columns of one image and group for output rows [r0, r1): the input itself where windows are single
// elements, else laid out in *buf.
func columnsOf[T number](l *lines, c convSize, x []T, image, group, r0, r1 int, buf *[]T) matrix[T] {
	size, n := prod(l.in), (r1-r0)*l.width()
	x = x[(image*c.groups+group)*c.inPer*size:][:c.inPer*size]
	if l.isIdentity() {
		return matrix[T]{x[r0*l.width():], c.inPer, n, size}
	}
	taps := len(l.at)
	*buf = grow(*buf, c.inPer*taps*n)
	for ch := range c.inPer {
		toColumns(l, x[ch*size:][:size], r0, r1, (*buf)[ch*taps*n:], n)
	}
	return newMatrix(*buf, c.inPer*taps, n)
}

// isIdentity reports whether each window is just the element at its own place.
func (w *window) isIdentity() bool {
	for i := range w.in {
		if w.kernel[i] != 1 || w.stride[i] != 1 || w.begin[i] != 0 || w.in[i] != w.out[i] {
			return false
		}
	}
	return true
}

// convolveDepthwise is convolve for one input channel per group, tap by tap.
func convolveDepthwise[T number](l *lines, c convSize, x, weights, y []T) {
	in, out, taps := prod(l.in), prod(l.out), len(l.at)
	s := l.lastStride()
	parallel(c.batch*c.groups, grainOf(c.outPer*taps*out), func(lo, hi int) {
		for job := lo; job < hi; job++ {
			src := x[job*in:][:in]
			for m := range c.outPer {
				dst := y[(job*c.outPer+m)*out:][:out]
				wm := weights[(job%c.groups*c.outPer+m)*taps:][:taps]
				for r := range l.rows {
					row := dst[r*l.width():][:l.width()]
					for i, f := range wm {
						lo, hi, first := l.row(i, r)
						if lo < hi {
							addScaled(row[lo:hi], f, src[first:], s)
						}
					}
				}
			}
		}
	})
}

// addScaled adds f times every s-th element of x to y.
func addScaled[T number](y []T, f T, x []T, s int) {
	if s == 1 {
		x = x[:len(y)]
		for j, v := range x {
			y[j] += f * v
		}
		return
	}
	for j := range y {
		y[j] += f * x[j*s]
	}
}

// convolveTransposed adds to x the transpose of convolve applied to y: what a convolution's input gets of a
// cotangent y of its output.
func convolveTransposed[T number](w *window, c convSize, y, weights, x []T) {
	l := newLines(w)
	in, out, taps := prod(w.in), prod(w.out), len(l.at)
	if in == 0 || out == 0 || taps == 0 || c.batch == 0 || c.inPer == 0 {
		return
	}
	depth := c.inPer * taps
	columns := max(minColumns, columnElems/depth)
	images, rows := min(c.batch, max(1, columns/out)), max(1, columns/l.width())
	if images > 1 {
		rows = l.rows
	}
	blocks := (c.batch + images - 1) / images
	parallel(c.groups*blocks, 1, func(lo, hi int) {
		var col, tmp []T
		for task := lo; task < hi; task++ {
			g, first := task/blocks, task%blocks*images
			n := min(images, c.batch-first)
			wg := newMatrix(weights[g*c.outPer*depth:][:c.outPer*depth], c.outPer, depth)
			for r0 := 0; r0 < l.rows; r0 += rows {
				r1 := min(r0+rows, l.rows)
				each := (r1 - r0) * l.width()
				wide := n * each
				src := matrix[T]{y[(first*c.groups+g)*c.outPer*out+r0*l.width():], c.outPer, each, out}
				if n > 1 { // small outputs of several images side by side
					tmp = grow(tmp, c.outPer*wide)
					for m := range c.outPer {
						for i := range n {
							copy(tmp[m*wide+i*out:][:out], y[((first+i)*c.groups+g)*c.outPer*out+m*out:])
						}
					}
					src = newMatrix(tmp, c.outPer, wide)
				}
				col = grow(col, depth*wide)
				gemm(true, false, 1, wg, src, 0, newMatrix(col, depth, wide))
				parallel(n*c.inPer, grainOf(taps*each), func(lo, hi int) {
					for job := lo; job < hi; job++ {
						i, ch := job/c.inPer, job%c.inPer
						dst := x[(((first+i)*c.groups+g)*c.inPer+ch)*in:][:in]
						addColumns(l, dst, r0, r1, col[ch*taps*wide+i*each:], wide)
					}
				})
			}
		}
	})
}

// grow returns a slice of n elements, the given one if it is large enough; the contents are undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
