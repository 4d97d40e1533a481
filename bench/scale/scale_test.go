package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/bench/sheet"
	"github.com/sluice-mesh/sluice/test/stack"
)

// TestRun simulates a small fleet, and has the page and its drawings written.
func TestRun(t *testing.T) {
	t.Parallel()
	args := []string{"-rate", "5000", "-envoys", "20", "-replicas", "4", "-nodes", "2", "-tenants", "1000", "-time", "500ms"}
	page := filepath.Join(t.TempDir(), "scale.md")
	var first, again, reports strings.Builder
	for _, r := range []struct {
		args []string
		to   io.Writer
	}{{append(args, "-write", page), &first}, {args, &again}, {append(args, "-json"), &reports}} {
		if err := run(t.Context(), r.args, r.to, io.Discard); err != nil {
			t.Fatalf("run(%v) = %v, want nil", r.args, err)
		}
	}
	if first.String() != again.String() {
		t.Errorf("run(%v) = %s, and then %s", args, &first, &again)
	}
	var found map[string][]struct {
		Exact struct{ Broken *int }
	}
	if err := json.Unmarshal([]byte(reports.String()), &found); err != nil || len(found["runs"]) != len(variants) || len(found["one_key"]) != 2*len(hotRates) {
		t.Errorf("run(-json) = %s, %v, want a report for each run", &reports, err)
	}
	for _, r := range append(found["runs"], found["one_key"]...) {
		if r.Exact.Broken == nil || *r.Exact.Broken != 0 {
			t.Errorf("run(-json) = %s, want no window broken", &reports)
		}
	}
	text := read(t, page)
	for _, want := range []string{first.String(), "   20 Envoys", "| Redis nodes, N | 5,000 × that ÷ 60 % of a core | **2** |", "(scale-latency.svg)", "| 5,000 | "} {
		if !strings.Contains(text, want) {
			t.Errorf("run(-write) wrote %s, want %q in it", text, want)
		}
	}
	if strings.Contains(text, "%!") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("run(-write) wrote %s, want no number missing", text)
	}
	for _, name := range []string{latencyDrawing, nodesDrawing} {
		if err := wellFormed(read(t, filepath.Join(filepath.Dir(page), name))); err != nil {
			t.Errorf("%s: %v, want XML", name, err)
		}
	}
}

func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage wants docs/scale.md to say what follows from measured.json: who
// measures again, or changes how that is reckoned, writes the page again.
func TestPage(t *testing.T) {
	t.Parallel()
	var m measured
	if err := json.Unmarshal(measuredText, &m); err != nil {
		t.Fatal(err)
	}
	text := read(t, filepath.Join("..", "..", "docs", "scale.md"))
	o := options{seed: 1, rate: fullRate, envoys: 1000, replicas: 50, use: 0.6}
	p := page{o: o, m: m, e: m.estimate(o)}
	for _, want := range []string{p.measured(), p.steps(), p.topology(), sheet.Table([]string{"what", "formula", "comes to"}, p.cells()), p.oneKey()} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/scale.md lacks %s\nrun make bench-scale", want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rate", "0"}, {"-replicas", "0"}, {"-nodes", "-1"}, {"-use", "1.1"}, {"-zipf", "1"}, {"-time", "0"}, {"-measure", "x", "-rounds", "0"}, {"-measure", "x", "-each", "0"}, {"-measure", "x", "-crowd", "0"}, {"-rat"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("run(%v) = nil, want an error", args)
		}
	}
}

// TestExplain wants the costs back of which something is made, and none below
// 0 where that would fit better.
func TestExplain(t *testing.T) {
	t.Parallel()
	want := []float64{8000, 3000, 500}
	rows := [][]float64{{1, 1, 1}, {0.1, 1, 1}, {0.1, 0.1, 1}, {0.02, 0.05, 1}, {0.5, 0.5, 1}}
	used := make([]float64, len(rows))
	for i, row := range rows {
		for j := range row {
			used[i] += row[j] * want[j]
		}
	}
	for j, got := range explain(rows, used) {
		if math.Abs(got/want[j]-1) > 0.001 {
			t.Errorf("explain(%v, %v)[%d] = %v, want %v", rows, used, j, got, want[j])
		}
	}
	if got := explain([][]float64{{1, 1}, {2, 1}}, []float64{100, 50}); got[0] < 0 || got[1] < 0 {
		t.Errorf("explain = %v, want nothing below 0", got)
	}
}

// TestMeasure measures once, for a moment: whether all that is measured is
// still there to be measured.
func TestMeasure(t *testing.T) {
	t.Parallel()
	if _, err := stack.RedisPath(); errors.Is(err, stack.ErrNoPart) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	o := options{rounds: 1, each: 200 * time.Millisecond, crowd: 1000}
	m, err := o.measureAll(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range m.Turns {
		if got.PerSecond <= 0 || (got.Fleet != memory && (got.Reads <= 0 || got.Scripts <= 0)) {
			t.Errorf("%s: %+v, want requests, and batches of Redis", got.Name, got)
		}
	}
	one, many, cluster := m.named("redis, 1 callers"), m.named("redis, 256 callers"), m.named("cluster, 3 nodes")
	if one.Scripts < 0.99 || many.Scripts > 0.5 || cluster.Scripts < 0.9 {
		t.Errorf("%.2f, %.2f and %.2f scripts a request, want one for a lone caller, few for many, and one a slot in a Cluster", one.Scripts, many.Scripts, cluster.Scripts)
	}
	if m.Memory.Redis < 50 || m.Memory.Redis > 5000 || m.Memory.Memstore < 30 || m.Memory.Memstore > 300 {
		t.Errorf("a bucket takes %+v, want some 100 bytes", m.Memory)
	}
}
