//go:build compose

package compose_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A panel is one of the dashboard's, as far as it is looked at here.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
	Panels  []panel
}

// failing are the panels that show a store that is away, and quiet those that
// are empty here: nothing is in shadow, there is no TLS, and the others show
// what must not happen.
var (
	failing = []string{"Failed calls, by cause", "Decided without the store"}
	quiet   = []string{
		"Would be denied, by rule in shadow", "Many callers seem to be one", "Expressions without a value, and panics",
		"Handshakes that failed", "Certificates expire in",
	}
)

// Each panel of the dashboard, which is the chart's too, asks for what is there.
// Those of a store that is away are looked at by TestRedisStops.
func TestDashboard(t *testing.T) {
	if asked := shown(t, func(title string) bool { return !slices.Contains(failing, title) }); asked < 20 {
		t.Errorf("the dashboard asks %d times, want at least 20", asked)
	}
}

// shown waits, under load, until the panels that are wanted show something, and
// returns how many questions that took. The quiet ones can be asked, at least.
func shown(t *testing.T, wanted func(title string) bool) (asked int) {
	t.Helper()
	for _, p := range panels(t) {
		if !wanted(p.Title) {
			continue
		}
		for _, target := range p.Targets {
			asked++
			expr := filled.Replace(target.Expr)
			eventually(t, "panel "+p.Title+" has data: "+expr, func() bool {
				for method, path := range map[string]string{"GET": "/hello", "POST": "/login"} {
					caller{address: "198.51.106.1"}.ask(t, method, path)
				}
				return len(query(t, expr)) > 0 || slices.Contains(quiet, p.Title)
			})
		}
	}
	return asked
}

// panels are those of the dashboard, and those within its rows.
func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(up.root, "helm", "sluice", "dashboards", "sluice.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board panel
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	return all(board.Panels)
}

// filled puts the values of a dashboard's variables where Grafana does.
var filled = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h",
	"$namespace", ".*", "$job", ".*", "$instance", ".*", "$domain", ".*")

// all lists panels, and those within rows.
func all(panels []panel) (list []panel) {
	for _, p := range panels {
		list = append(append(list, p), all(p.Panels)...)
	}
	return list
}

// Prometheus reads the chart's alerts, and none fires while all is well.
func TestAlerts(t *testing.T) {
	if got := query(t, `count(up{job="sluice"} == 1)`); !cmp.Equal(got, []string{"2"}) {
		t.Errorf("Prometheus reaches %v replicas, want 2", got)
	}
	if got := query(t, `ALERTS{alertstate="firing"}`); got != nil {
		t.Errorf("ALERTS = %v, want none", got)
	}
}
