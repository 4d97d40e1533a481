package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A sample is what the process has at one time.
type sample struct {
	rss, goroutines, files float64
	storeErrors, panics    float64
	reloads                float64
	causes                 []string // of the store's errors, as they are counted
}

func (s *system) sample() (sample, error) {
	var m sample
	err := s.scrape(func(name string, value float64) {
		switch {
		case name == "go_goroutines":
			m.goroutines = value
		case name == "sluice_panics_total":
			m.panics = value
		case strings.HasPrefix(name, "sluice_store_errors_total"):
			m.storeErrors += value
			if value > 0 {
				m.causes = append(m.causes, fmt.Sprint(name, " ", value))
			}
		case name == `sluice_policy_reloads_total{result="success"}`:
			m.reloads = value
		}
	})
	if err != nil {
		return m, err
	}
	proc := filepath.Join("/proc", strconv.Itoa(s.sluice.PID()))
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return m, err
	}
	m.files = float64(len(open))
	m.rss, err = residentOf(filepath.Join(proc, "status"))
	return m, err
}

// scrape calls do for each series of the metrics.
func (s *system) scrape(do func(name string, value float64)) error {
	resp, err := http.Get("http://" + s.sluice.Admin + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if i <= 0 || lines.Text()[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(lines.Text()[i+1:], 64); err == nil {
			do(lines.Text()[:i], value)
		}
	}
	return lines.Err()
}

// residentOf returns the bytes of memory that a status of /proc tells.
func residentOf(path string) (float64, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib * 1024, nil
		}
	}
	return 0, fmt.Errorf("%s tells no VmRSS", path)
}
