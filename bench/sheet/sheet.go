// Package sheet writes what the programs of bench/ found: numbers for people,
// tables in Markdown, and drawings. It knows nothing of what they are about.
package sheet

import (
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
)

// Median returns the middle one of values, of which there must be one: the upper
// of two.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Grouped writes x, rounded, with a comma between thousands.
func Grouped[N int | int64 | float64](x N) string {
	text := fmt.Sprintf("%.0f", float64(x))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Table is one in Markdown, with an empty line after it. A | in a cell would end
// it.
func Table(heads []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n%s|\n", strings.Join(heads, " | "), strings.Repeat("|---", len(heads)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String() + "\n"
}

// Save writes files that everybody may read: texts by their paths. After an
// error some of them are written.
func Save(files map[string]string) error {
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // it is to be read by everybody
			return err
		}
	}
	return nil
}

// A Drawing is an SVG that grows. NewDrawing makes one.
type Drawing struct{ b strings.Builder }

// NewDrawing begins a drawing of that size, in white.
func NewDrawing(width, height int) *Drawing {
	d := new(Drawing)
	d.Add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height)
	d.Add(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	return d
}

// Add adds an element as it is.
func (d *Drawing) Add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

// Text adds a text of which the anchor, start, middle or end, is at x.
func (d *Drawing) Text(x, y float64, anchor, text string) {
	d.Add(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(text))
}

// String returns all of it, whole.
func (d *Drawing) String() string { return d.b.String() + "</svg>\n" }
