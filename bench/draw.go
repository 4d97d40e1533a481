package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/bench/sheet"
)

// The drawing is a line for each work: a bar to the median share, a stroke from
// the least to the most, and a mark at the goal.
const (
	drawnWidth  = 860
	drawnLeft   = 330  // where shares of 0 are
	drawnScale  = 380  // of a share of 1
	drawnLine   = 24   // from one work to the next
	drawnTop    = 34   // above the first
	drawnBottom = 22   // below the last
	mostDrawn   = 1.30 // of the shares
)

const (
	reachedColour = "#2c6fb5"
	missedColour  = "#b5542c"
	noGoalColour  = "#9a9a9a"
)

// drawing is an SVG of the shares of all works.
func (f found) drawing() string {
	height := drawnTop + drawnLine*len(f.Works) + drawnBottom
	d := sheet.NewDrawing(drawnWidth, height)
	d.Text(10, 18, "start", "requests a second, as a share of the base; the mark is the goal")
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1, 1.25} {
		d.Add(`<path d="M%.1f %dV%d" stroke="#ddd"/>`, drawnAt(share), drawnTop, height-drawnBottom)
		d.Text(drawnAt(share), float64(height-6), "middle", fmt.Sprintf("%.2f", share))
	}
	for i, r := range f.Works {
		r.draw(d, float64(drawnTop+drawnLine*i))
	}
	return d.String()
}

// draw draws r below y.
func (r row) draw(d *sheet.Drawing, y float64) {
	share, colour := sheet.Median(r.Shares), noGoalColour
	switch {
	case r.Goal.rate > 0 && share >= r.Goal.rate:
		colour = reachedColour
	case r.Goal.rate > 0:
		colour = missedColour
	}
	least, most := drawnAt(slices.Min(r.Shares)), drawnAt(slices.Max(r.Shares))
	d.Text(drawnLeft-8, y+16, "end", r.Work)
	d.Add(`<rect x="%d" y="%.0f" width="%.1f" height="14" fill="%s"/>`, drawnLeft, y+5, drawnAt(share)-drawnLeft, colour)
	d.Add(`<path d="M%.1f %.0fH%.1f" stroke="#222"/>`, least, y+12, most)
	if r.Goal.rate > 0 {
		d.Add(`<path d="M%.1f %.0fv20" stroke="#222" stroke-width="2"/>`, drawnAt(r.Goal.rate), y+2)
	}
	d.Text(max(most, drawnAt(r.Goal.rate))+6, y+16, "start", fmt.Sprintf("%.2f", share))
}

// drawnAt is where a share is drawn.
func drawnAt(share float64) float64 { return drawnLeft + drawnScale*min(share, mostDrawn) }

// drawnBeside is the name of the drawing beside a page.
func drawnBeside(page string) string { return strings.TrimSuffix(page, filepath.Ext(page)) + ".svg" }
