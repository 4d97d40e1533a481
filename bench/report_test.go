package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// In a short turn a base may use less CPU than a tick, and answer nothing.
// Then there is no share of it, which JSON has a word for.
func TestJSONOfNothing(t *testing.T) {
	t.Parallel()
	var r row
	r.add(outcome{server: 3}, outcome{})          // x/0
	r.add(outcome{}, outcome{})                   // 0/0
	r.add(outcome{server: 3}, outcome{server: 2}) // a share
	var out bytes.Buffer
	if err := (found{Works: []row{r}}).report(&out, options{json: true}); err != nil {
		t.Fatalf("report = %v, want JSON", err)
	}
	var got struct {
		Works []map[string]any `json:"works"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("report wrote %q: %v", out.String(), err)
	}
	if diff := cmp.Diff([]any{nil, nil, 1.5}, got.Works[0]["cpu_shares"]); diff != "" {
		t.Errorf("cpu_shares differ (-want +got):\n%s", diff)
	}
}

// The drawing stands beside the page that shows it, and its bars are as long as
// the shares are large.
func TestDrawing(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "speed.md")
	f := found{Works: []row{
		{Work: "half", Rates: series{1}, Shares: series{0.25, 0.5, 0.75}, CPU: series{1}, CPUShares: series{1}, BothShares: series{1}, Goal: goal{rate: 0.9}},
		{Work: "whole & more", Rates: series{1}, Shares: series{1}, CPU: series{1}, CPUShares: series{1}, BothShares: series{1}, Goal: goal{rate: 0.9}},
	}}
	if err := f.write(options{write: page}); err != nil {
		t.Fatalf("write = %v", err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "](speed.svg)") {
		t.Errorf("the page is %q, %v, want one that shows speed.svg", text, err)
	}
	svg, err := os.ReadFile(filepath.Join(filepath.Dir(page), "speed.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Bars []struct {
			Width float64 `xml:"width,attr"`
			Fill  string  `xml:"fill,attr"`
		} `xml:"rect"`
	}
	if err := xml.Unmarshal(svg, &got); err != nil {
		t.Fatalf("the drawing is %q: %v", svg, err)
	}
	if bars := got.Bars[1:]; len(bars) != 2 || bars[1].Width != 2*bars[0].Width || bars[0].Fill == bars[1].Fill {
		t.Errorf("the bars are %+v, want two, the second twice as long and of another colour", bars)
	}
}
