package chart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// promtool runs what Debian's prometheus brings along.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "1" {
			t.Fatal("no promtool: hack/deps installs it")
		}
		t.Skip("no promtool: apt-get install prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Each alert is silent on a quiet day, and fires when it should.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "test", "rules", "alerts_test.yaml")
}

// A rule is what promtool looks at.
type rule struct {
	Record string `yaml:"record"`
	Expr   string `yaml:"expr"`
}

// Prometheus understands what the panels ask.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboards/sluice.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$job", ".*", "$instance", ".*", "$domain", ".*")
	var rules []rule
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel:%d", len(rules)), variables.Replace(target.Expr)})
		}
	}
	if len(rules) < 20 {
		t.Fatalf("the dashboard asks %d times, want 20 or more", len(rules))
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", name)
}
