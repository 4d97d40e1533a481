package chaos_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// figures and failovers are the rows of the page, by the fault's name.
var figures, failovers rows

// rows are those of a table, by their name.
type rows struct {
	mu   sync.Mutex
	rows map[string]string
}

func (r *rows) add(name, row string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[string]string{}
	}
	r.rows[name] = row
}

func (r *trial) report(t *testing.T) {
	t.Helper()
	asked := ""
	if r.opens {
		asked = fmt.Sprint(r.asked)
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", r.name, asked, ms(at(times(r.between(r.begins, r.ends)), 100)),
		&r.pair.main, &r.pair.bare, ms(r.well.Sub(r.healed)))
	t.Log(row)
	figures.add(r.name, row)
}

// String is s as cells of the table.
func (s *side) String() string {
	return fmt.Sprintf("%s | %s | %d µs", ms(s.at(50)), ms(s.at(99)), s.cpu.Microseconds())
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// A table of the page is between two comments.
type table struct{ begin, end, head string }

var (
	faultTable = table{
		"<!-- figures: made by the command above -->\n", "<!-- end of figures -->\n",
		"| Redis | asked in vain | slowest | p50 | p99 | CPU | p50 without | p99 without | CPU without | until used again |\n" +
			"|---|---|---|---|---|---|---|---|---|---|\n",
	}
	failoverTable = table{
		"<!-- failovers: made by the command above -->\n", "<!-- end of failovers -->\n",
		"| what | until a replica is the primary | until all are served after that | denied meanwhile | tokens forgotten |\n|---|---|---|---|---|\n",
	}
)

// writeFigures puts what was measured into the page at path.
func writeFigures(path string) error {
	page, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	var list, others []string
	for _, f := range faults {
		list = append(list, figures.rows[f.name])
	}
	for _, name := range slices.Sorted(maps.Keys(failovers.rows)) {
		others = append(others, failovers.rows[name])
	}
	if page, err = faultTable.in(page, list); err != nil {
		return err
	}
	if page, err = failoverTable.in(page, others); err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(path), page, 0o644)
}

// in returns page with rows in the table, unless there are none.
func (t table) in(page []byte, rows []string) ([]byte, error) {
	head, rest, ok := bytes.Cut(page, []byte(t.begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(t.end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("the page has no place between %q and %q", t.begin, t.end)
	}
	text := ""
	for _, row := range rows {
		if row != "" {
			text += row + "\n"
		}
	}
	if text == "" {
		return page, nil
	}
	return slices.Concat(head, []byte(t.begin+t.head+text+t.end), tail), nil
}
