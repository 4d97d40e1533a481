package chaos_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// figures are the rows of the page, by the fault's name.
var figures = struct {
	sync.Mutex
	rows map[string]string
}{rows: map[string]string{}}

func (r *trial) report(t *testing.T) {
	t.Helper()
	during, open := times(r.between(r.begins, r.ends)), times(r.between(r.down, r.ends))
	row := fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s |", r.name, len(during),
		ms(at(during, 50)), ms(at(during, 99)), ms(at(open, 50)), ms(at(open, 99)), ms(r.well.Sub(r.healed)))
	t.Log(row)
	figures.Lock()
	defer figures.Unlock()
	figures.rows[r.name] = row
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

const (
	begin = "<!-- figures: made by the command above -->\n"
	end   = "<!-- end of figures -->\n"
)

// writeFigures puts the figures into the page at path.
func writeFigures(path string) error {
	page, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(page, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for figures", path)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s| Redis | requests | p50 | p99 | p50 once felt | p99 once felt | until used again |\n|---|---|---|---|---|---|---|\n", head, begin)
	for _, f := range faults {
		if row := figures.rows[f.name]; row != "" {
			fmt.Fprintln(&b, row)
		}
	}
	fmt.Fprintf(&b, "%s%s", end, tail)
	return os.WriteFile(filepath.Clean(path), b.Bytes(), 0o644)
}
