package main

import (
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strings"
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
	var b strings.Builder
	height := drawnTop + drawnLine*len(f.Works) + drawnBottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", drawnWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", drawnWidth, height)
	b.WriteString(`<text x="10" y="18">requests a second, as a share of the base; the mark is the goal</text>` + "\n")
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1, 1.25} {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/>`+"\n", drawnAt(share), drawnTop, height-drawnBottom)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.2f</text>`+"\n", drawnAt(share), height-6, share)
	}
	for i, r := range f.Works {
		r.draw(&b, drawnTop+drawnLine*i)
	}
	return b.String() + "</svg>\n"
}

// draw draws r below y.
func (r row) draw(b *strings.Builder, y int) {
	share, colour := median(r.Shares), noGoalColour
	switch {
	case r.Goal.rate > 0 && share >= r.Goal.rate:
		colour = reachedColour
	case r.Goal.rate > 0:
		colour = missedColour
	}
	least, most := drawnAt(slices.Min(r.Shares)), drawnAt(slices.Max(r.Shares))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", drawnLeft-8, y+16, html.EscapeString(r.Work))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="14" fill="%s"/>`+"\n", drawnLeft, y+5, drawnAt(share)-drawnLeft, colour)
	fmt.Fprintf(b, `<path d="M%.1f %dH%.1f" stroke="#222"/>`+"\n", least, y+12, most)
	if r.Goal.rate > 0 {
		fmt.Fprintf(b, `<path d="M%.1f %dv20" stroke="#222" stroke-width="2"/>`+"\n", drawnAt(r.Goal.rate), y+2)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%.2f</text>`+"\n", max(most, drawnAt(r.Goal.rate))+6, y+16, share)
}

// drawnAt is where a share is drawn.
func drawnAt(share float64) float64 { return drawnLeft + drawnScale*min(share, mostDrawn) }

// drawnBeside is the name of the drawing beside a page.
func drawnBeside(page string) string { return strings.TrimSuffix(page, filepath.Ext(page)) + ".svg" }
