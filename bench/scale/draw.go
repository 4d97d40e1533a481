package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// The drawings, beside the page.
const (
	latencyDrawing = "scale-latency.svg"
	nodesDrawing   = "scale-nodes.svg"
)

// A drawing is of one size, with a title.
type drawing struct{ *sheet.Drawing }

const (
	width, height            = 760, 300
	left, right, top, bottom = 60, 20, 30, 40
)

// colours are of the variants, in their order.
var colours = []string{"#b5542c", "#2c6fb5", "#2f8f4e"}

func newDrawing(title string) drawing {
	d := drawing{sheet.NewDrawing(width, height)}
	d.Text(left, 18, "start", title)
	return d
}

func (d drawing) rule(y float64, label string) {
	d.Add(`<path d="M%d %.1fH%d" stroke="#ddd"/>`, left, y, width-right)
	d.Text(left-6, y+4, "end", label)
}

// legend names the variants by their colours.
func (d drawing) legend(runs []sim.Report) {
	x := float64(left)
	for i, r := range runs {
		d.Add(`<rect x="%.1f" y="%d" width="12" height="12" fill="%s"/>`, x, height-14, colours[i])
		d.Text(x+16, height-4, "start", r.Scenario.Name)
		x += 36 + 7*float64(len(r.Scenario.Name))
	}
}

// drawLatency is the p99 over time, on a scale of powers of ten.
func (p page) drawLatency() string {
	d := newDrawing("p99 of the decisions in each tenth of a second, by the time of the run")
	const least, most = 2, 5 // 100 µs to 100 ms
	y := func(us float64) float64 {
		return height - bottom - (math.Log10(math.Max(us, 100))-least)/(most-least)*(height-bottom-top)
	}
	for i, label := range []string{"100 µs", "1 ms", "10 ms", "100 ms"} {
		d.rule(y(math.Pow10(least+i)), label)
	}
	for i, r := range p.runs {
		var points []string
		for j, s := range r.Slots {
			if s.Requests > 0 {
				x := left + (float64(j)+0.5)/float64(len(r.Slots))*(width-left-right)
				points = append(points, fmt.Sprintf("%.1f,%.1f", x, y(float64(s.P99))))
			}
		}
		d.Add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colours[i])
	}
	s := p.runs[0].Scenario
	for _, mark := range []struct {
		at   float64
		text string
	}{{s.Slow.From.Seconds(), "a node is slow"}, {s.Death.At.Seconds(), "a replica dies"}} {
		x := left + mark.at/s.Time.Seconds()*(width-left-right)
		d.Add(`<path d="M%.1f %dV%d" stroke="#999" stroke-dasharray="3 3"/>`, x, top, height-bottom)
		d.Text(x+4, top+12, "start", mark.text)
	}
	d.legend(p.runs)
	return d.String()
}

// drawNodes is how busy each node was, the busiest first.
func (p page) drawNodes() string {
	d := newDrawing("how busy each node was, in each run the busiest first")
	y := func(share float64) float64 { return height - bottom - share*(height-bottom-top) }
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		d.rule(y(share), fmt.Sprintf("%.0f %%", 100*share))
	}
	group := float64(width-left-right) / float64(len(p.runs[0].Nodes))
	bar := group / float64(len(p.runs)+1)
	for i, r := range p.runs {
		nodes := slices.Sorted(slices.Values(r.Nodes))
		slices.Reverse(nodes)
		for j, share := range nodes {
			x := left + float64(j)*group + float64(i)*bar
			d.Add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y(share), bar, y(0)-y(share), colours[i])
		}
	}
	d.legend(p.runs)
	return d.String()
}
