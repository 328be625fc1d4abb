package memplan

import (
	"fmt"
	"io"
	"strings"

	"gradtool/internal/size"
)

// Letters of the categories in a chart.
var letters = [numCategories]byte{Weights: 'W', Inputs: 'I', Activations: 'a', Gradients: 'g', Optimizer: 'o', Workspace: 'w'}

// Chart writes the memory in use over time as text: a column is a stretch of steps, of which it shows the one that needs the
// most, and a letter is bytes of one category.
func (l *Live) Chart(w io.Writer, width, height int) error {
	steps := len(l.Order)
	if steps == 0 || l.Peak == 0 {
		return nil
	}
	width = min(width, steps)
	use := l.ByCategory()
	rows := make([][]byte, height)
	for r := range rows {
		rows[r] = []byte(strings.Repeat(" ", width))
	}
	for x := range width {
		from, to := x*steps/width, (x+1)*steps/width
		top := from
		for i := from; i < to; i++ {
			if l.Use[i] > l.Use[top] {
				top = i
			}
		}
		var sum int64
		for _, c := range Categories() {
			if use[c][top] == 0 {
				continue
			}
			low := int(sum * int64(height) / l.Peak)
			sum += use[c][top]
			high := int((sum*int64(height) + l.Peak - 1) / l.Peak)
			for r := low; r < min(high, height); r++ {
				rows[height-1-r][x] = letters[c]
			}
		}
	}
	var b strings.Builder
	for r, row := range rows {
		level := ""
		if r == 0 {
			level = size.Bytes(l.Peak)
		}
		fmt.Fprintf(&b, "%10s |%s\n", level, strings.TrimRight(string(row), " "))
	}
	fmt.Fprintf(&b, "%10s +%s\n", "0 B", strings.Repeat("-", width))
	fmt.Fprintf(&b, "%10s  step 0%*s\n", "", width-6, fmt.Sprint(steps-1))
	fmt.Fprintf(&b, "%10s  a activations  g gradients  o optimizer  w workspace of subgraphs\n", "")
	_, err := io.WriteString(w, b.String())
	return err
}
