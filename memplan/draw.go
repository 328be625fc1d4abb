package memplan

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strconv"

	"gradtool/graph"
	"gradtool/internal/size"
)

// Colours of the categories in drawings.
var colours = [numCategories]string{Weights: "#999999", Inputs: "#cccccc", Activations: "#4c78a8", Gradients: "#e45756", Optimizer: "#54a24b", Workspace: "#b279a2"}

// Size of a drawing, in pixels.
const (
	drawWidth  = 1200
	drawHeight = 640
	drawLeft   = 90
	drawTop    = 24
	drawUnder  = 40
)

// SVG draws the arena: time runs to the right, addresses upwards, and each buffer is a rectangle. The line is the most bytes
// alive at each step.
func (p *Placed) SVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	p.svg(b)
	return b.Flush()
}

func (p *Placed) svg(b *bufio.Writer) {
	steps, arena := float64(max(len(p.Order), 1)), float64(max(p.Arena, 1))
	x := func(step float64) float64 { return drawLeft + step*drawWidth/steps }
	y := func(at int64) float64 { return drawTop + drawHeight*(1-float64(at)/arena) }
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		drawLeft+drawWidth+20, drawTop+drawHeight+drawUnder, drawLeft+drawWidth+20, drawTop+drawHeight+drawUnder)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#f7f7f7" stroke="#888"/>`+"\n", drawLeft, drawTop, drawWidth, drawHeight)
	for _, q := range p.Buffers {
		if q.Bytes == 0 {
			continue
		}
		at := p.Offset[q]
		fmt.Fprintf(b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" fill-opacity="0.8" stroke="#fff" stroke-width="0.3"><title>%s</title></rect>`+"\n",
			x(float64(q.First)), y(at+q.Bytes), float64(q.Last-q.First+1)*drawWidth/steps, float64(q.Bytes)*drawHeight/arena, colours[q.Category], html.EscapeString(p.about(q)))
	}
	b.WriteString(`<polyline fill="none" stroke="#222" stroke-width="1" points="`)
	for i, n := range p.Use {
		fmt.Fprintf(b, "%.2f,%.2f %.2f,%.2f ", x(float64(i)), y(n), x(float64(i+1)), y(n))
	}
	b.WriteString(`"/>` + "\n")
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", drawLeft-6, drawTop+10, size.Bytes(p.Arena))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">0 B</text>`+"\n", drawLeft-6, drawTop+drawHeight)
	fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">peak: step %d, %s</text>`+"\n", min(max(x(float64(p.At)), drawLeft+90), drawLeft+drawWidth-90), drawTop-8, p.At, size.Bytes(p.Peak))
	fmt.Fprintf(b, `<text x="%d" y="%d">step 0</text><text x="%d" y="%d" text-anchor="end">step %d</text>`+"\n", drawLeft, drawTop+drawHeight+14, drawLeft+drawWidth, drawTop+drawHeight+14, len(p.Order)-1)
	at := drawLeft + 200
	for _, c := range Categories() {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", at, drawTop+drawHeight+18, colours[c], at+16, drawTop+drawHeight+28, c)
		at += 130
	}
	b.WriteString("</svg>\n")
}

// about describes a buffer.
func (p *Placed) about(q *Buffer) string {
	text := fmt.Sprintf("%s\n%s, %s at %d, steps %d to %d", q.Name(), q.Category, size.Bytes(q.Bytes), p.Offset[q], q.First, q.Last)
	if q.Output {
		text += ", graph output"
	}
	for i, v := range q.Values {
		if i == 8 {
			text += fmt.Sprintf("\nand %d more", len(q.Values)-i)
			break
		}
		text += "\n" + v.Name + " " + v.Type.String() + " by " + v.Def.Op
	}
	return text
}

// HTML writes a page with the drawing, whose rectangles tell what they are when pointed at, and what is alive at the peak.
func (p *Placed) HTML(w io.Writer, title string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>body{font-family:sans-serif;margin:1em}table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left;border-bottom:1px solid #ddd}td.n{text-align:right}
rect:hover{stroke:#000;stroke-width:2}#about{white-space:pre;min-height:8em;font-family:monospace}</style></head><body>
<h1>%s</h1>
<p>%d nodes; arena %s, most bytes alive %s (gap %.2f %%)</p>
`, html.EscapeString(title), html.EscapeString(title), len(p.Order), size.Bytes(p.Arena), size.Bytes(p.Peak), 100*gap(p.Arena, p.Bound))
	p.svg(b)
	b.WriteString(`<div id="about">point at a rectangle</div>
<script>
document.querySelector("svg").addEventListener("mouseover", function (e) {
  var t = e.target.querySelector && e.target.querySelector("title");
  if (t) document.getElementById("about").textContent = t.textContent;
});
</script>
`)
	if len(p.Order) > 0 {
		fmt.Fprintf(b, "<h2>Alive at step %d, %s</h2>\n<table><tr><th>bytes</th><th>value</th><th>category</th><th>why</th></tr>\n", p.At, html.EscapeString(p.Order[p.At].Label()))
		for _, h := range p.Holdings(p.At) {
			fmt.Fprintf(b, `<tr><td class="n">%d</td><td>%s</td><td>%s</td><td>%s</td></tr>`+"\n", h.Buffer.Bytes, html.EscapeString(h.Name()), h.Category(), html.EscapeString(h.Why))
		}
		b.WriteString("</table>\n")
	}
	b.WriteString("</body></html>\n")
	return b.Flush()
}

// Name returns the name of the value that is held.
func (h Holding) Name() string {
	if h.Value == nil {
		return h.Buffer.Name()
	}
	return h.Value.Name
}

// gap returns by which share a is above b.
func gap(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a)/float64(b) - 1
}

// CSV writes a table of the values in the arena: name, category, operator and role of the node that makes it, type, first and
// last step, offset, bytes, whether it is an output, the value that it is written over or a view of, and the most bytes in
// use during its buffer's life.
func (p *Placed) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"value", "category", "operator", "role", "type", "first", "last", "offset", "bytes", "output", "over", "peak"})
	over := map[*graph.Value]string{}
	for _, x := range p.InPlace {
		over[x.To] = x.From.Name
	}
	last := lastReads(p.Graph, p.Order)
	for i, n := range p.Order {
		for _, v := range n.Out {
			b := p.Of[v]
			if v == nil || b == nil {
				continue
			}
			if x := viewed(v); x != nil && p.Of[x] == b {
				over[v] = x.Name
			}
			var peak int64
			for s := b.First; s <= b.Last; s++ {
				peak = max(peak, p.Use[s])
			}
			c.Write([]string{v.Name, categoryOf(v).String(), n.Op, n.Meta.Get(graph.MetaRole), v.Type.String(), strconv.Itoa(i), strconv.Itoa(max(i, last[v])),
				strconv.FormatInt(p.Offset[b], 10), strconv.FormatInt(b.Bytes, 10), strconv.FormatBool(v.IsOutput()), over[v], strconv.FormatInt(peak, 10)})
		}
	}
	c.Flush()
	return c.Error()
}

// Trace writes the plan in Chrome's trace format: a microsecond is a step, nodes are slices, and the bytes alive are counters, one
// for each category.
func (p *Placed) Trace(w io.Writer) error {
	type event struct {
		Name  string           `json:"name"`
		Phase string           `json:"ph"`
		Time  int              `json:"ts"`
		Dur   int              `json:"dur,omitempty"`
		PID   int              `json:"pid"`
		TID   int              `json:"tid"`
		Cat   string           `json:"cat,omitempty"`
		Args  map[string]int64 `json:"args,omitempty"`
	}
	use := p.ByCategory()
	events := []event{}
	for i, n := range p.Order {
		args := map[string]int64{}
		for _, c := range Categories() {
			args[c.String()] = use[c][i]
		}
		events = append(events, event{Name: n.Label(), Phase: "X", Time: i, Dur: 1, PID: 1, TID: 1, Cat: n.Meta.Get(graph.MetaRole), Args: map[string]int64{"alive": p.Use[i]}},
			event{Name: "bytes alive", Phase: "C", Time: i, PID: 1, Args: args})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}
