package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// A result is what a soak showed.
type result struct {
	time    time.Duration
	full    float64 // requests a second that it bore
	doors   []bench.Report
	samples []sample
}

// What may be more at the end than it was, beside a tenth.
const (
	moreRSS        = 4 << 20
	moreGoroutines = 10
	moreFiles      = 10
)

// A series is what grew, or did not: medians of the second quarter of the time,
// when all that is kept is there, and of the last.
type series struct {
	name          string
	before, after float64
	more          float64 // that is still flat
	unit          float64
	word          string
}

func (r *result) series() []series {
	of := func(what func(sample) float64) (before, after float64) {
		n := len(r.samples)
		return median(r.samples[n/4:n/2+1], what), median(r.samples[n*3/4:], what)
	}
	rss := series{name: "resident memory", more: moreRSS, unit: 1 << 20, word: " MiB"}
	rss.before, rss.after = of(func(s sample) float64 { return s.rss })
	goroutines := series{name: "goroutines", more: moreGoroutines, unit: 1}
	goroutines.before, goroutines.after = of(func(s sample) float64 { return s.goroutines })
	files := series{name: "open files", more: moreFiles, unit: 1}
	files.before, files.after = of(func(s sample) float64 { return s.files })
	return []series{rss, goroutines, files}
}

func median(samples []sample, what func(sample) float64) float64 {
	list := make([]float64, len(samples))
	for i, s := range samples {
		list[i] = what(s)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// verdict is an error if something grew or failed.
func (r *result) verdict() error {
	var errs []error
	for _, s := range r.series() {
		if s.after > s.before*1.1+s.more {
			errs = append(errs, fmt.Errorf("%s grew from %.1f to %.1f%s", s.name, s.before/s.unit, s.after/s.unit, s.word))
		}
	}
	for _, d := range r.doors {
		if d.Unanswered > 0 || d.Requests == 0 {
			errs = append(errs, fmt.Errorf("%s: %d of %d requests had no answer: %s", d.Door, d.Unanswered, d.Requests, d.FirstError))
		}
	}
	last := r.samples[len(r.samples)-1]
	if last.storeErrors > 0 || last.panics > 0 {
		errs = append(errs, fmt.Errorf("%.0f errors of the store and %.0f panics are counted %v", last.storeErrors, last.panics, last.causes))
	}
	return errors.Join(errs...)
}

// table is the result for a page.
func (r *result) table() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| %v, policy read %.0f times | |\n|---|---|\n", r.time, r.samples[len(r.samples)-1].reloads)
	for _, d := range r.doors {
		fmt.Fprintf(&b, "| %s | %.0f requests a second of %.0f that both bore; %d requests, %d denied, %d without an answer; p50 %.1f ms, p99 %.1f ms |\n",
			d.Door, d.PerSecond, r.full, d.Requests, d.Answers[bench.Denied], d.Unanswered, d.Latency.P50/1000, d.Latency.P99/1000)
	}
	for _, s := range r.series() {
		fmt.Fprintf(&b, "| %s | %.1f%s in the second quarter, %.1f%[3]s in the last |\n", s.name, s.before/s.unit, s.word, s.after/s.unit)
	}
	last := r.samples[len(r.samples)-1]
	fmt.Fprintf(&b, "| errors of the store, panics | %.0f, %.0f |\n", last.storeErrors, last.panics)
	return b.String()
}

const (
	begin = "<!-- soak: made by the command above -->\n"
	end   = "<!-- end of soak -->\n"
)

// writeInto puts the table into the page at path.
func writeInto(path, table string) error {
	page, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(page, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for a soak", path)
	}
	return os.WriteFile(filepath.Clean(path), slices.Concat(head, []byte(begin+table+end), tail), 0o644)
}
