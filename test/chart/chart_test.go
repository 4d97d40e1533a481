// Package chart_test holds the chart to the program: what both know, the
// settings, the fields of a policy and the metrics, must be the same.
package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

const chart = "../../helm/sluice"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decided are the settings that other values decide, by how they begin.
var decided = regexp.MustCompile(`^(config|policy|store|memory-limit|redis-.*|hash-key-file|(grpc|http|admin)-addr|tls-min-version|(grpc|http)-tls-.*|admin-token-file|drain-.*)$`)

// beyond are the settings that the chart leaves to extraEnv and extraArgs.
var beyond = regexp.MustCompile(`^admin-tls-.*$`)

// A setting of extauthz serve is one of the chart too, or another value decides
// it.
func TestSettings(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	var want []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !decided.MatchString(f.Name) && !beyond.MatchString(f.Name) {
			want = append(want, f.Name)
		}
	})
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(settings(t)))); diff != "" {
		t.Errorf("settings in values.schema.json (-flags of serve +settings of the chart):\n%s\na new flag is a line there, or in decided here if another value decides it", diff)
	}
}

// Every setting is named where the values are explained.
func TestSettingsAreNamed(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(read(t, "values.yaml"), "# -- Settings of ")
	comment, _, _ := strings.Cut(after, "settings:\n")
	for name := range settings(t) {
		if !regexp.MustCompile(`[ :]` + name + `[,.]`).MatchString(comment) {
			t.Errorf("the comment on settings in values.yaml does not name %s", name)
		}
	}
}

// settings are what the schema lets settings have.
func settings(t *testing.T) map[string]any {
	t.Helper()
	var schema struct {
		Properties struct {
			Settings struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Properties.Settings.Properties
}

// The fields by which the chart looks at a policy are those that are read.
func TestPolicyFields(t *testing.T) {
	t.Parallel()
	checks := regexp.MustCompile(`"known" \(list ([^)]*)\)`).FindAllStringSubmatch(read(t, "templates/_checkpolicy.tpl"), -1)
	if len(checks) != 2 {
		t.Fatalf("_checkpolicy.tpl has %d lists of fields, want those of a file and of a rule", len(checks))
	}
	for i, text := range []string{
		"domain: edge\nrules: []\nodd: 1\n",
		"domain: edge\nrules: [{name: a, per: [ip], limits: [{rate: 1/1s}], odd: 1}]\n",
	} {
		var got []string
		for _, name := range strings.Fields(checks[i][1]) {
			got = append(got, strings.Trim(name, `"`))
		}
		slices.Sort(got)
		if diff := cmp.Diff(fields(t, text), got); diff != "" {
			t.Errorf("fields in _checkpolicy.tpl, list %d (-read +checked):\n%s", i, diff)
		}
	}
}

// fields are those that the fault of a field called odd says to be wanted.
func fields(t *testing.T, text string) []string {
	t.Helper()
	_, faults := load(t, map[string]string{"odd.yaml": text})
	for _, f := range faults {
		if list, ok := strings.CutPrefix(f.Want, "one of "); ok && strings.HasSuffix(f.Path, "odd") {
			names := strings.Split(list, ", ")
			slices.Sort(names)
			return names
		}
	}
	t.Fatalf("Load(%q) = %v, want a fault that lists the fields", text, faults)
	return nil
}

func load(t *testing.T, files map[string]string) (*policy.Set, policyfile.Faults) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return policyfile.Load(policyfile.Options{Paths: []string{dir}})
}

// The policy that holds until there is another denies nobody.
func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	set, faults := load(t, map[string]string{"policy.yaml": read(t, "files/policy.yaml")})
	if len(faults) != 0 || len(set.Policies()) != 1 {
		t.Fatalf("Load(files/policy.yaml) = %v, want one policy without a fault", faults)
	}
	for _, r := range set.Policies()[0].Rules() {
		if !r.Shadow {
			t.Errorf("rule %s is no shadow, want one", r.Name)
		}
	}
}

// Each example's policy is a good one.
func TestExamples(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(names) < 10 {
		t.Fatalf("Glob = %d examples, %v, want at least 10", len(names), err)
	}
	for _, name := range names {
		var values struct {
			Policy struct{ Files map[string]string }
		}
		if err := yaml.Unmarshal([]byte(read(t, filepath.Join("ci", filepath.Base(name)))), &values); err != nil {
			t.Errorf("Unmarshal(%s) = %v, want no error", name, err)
		}
		if len(values.Policy.Files) == 0 {
			continue
		}
		if _, faults := load(t, values.Policy.Files); len(faults) != 0 {
			t.Errorf("Load(policy of %s) = %v, want no fault", name, faults)
		}
	}
}

// What alerts and panels go by is told by the program.
func TestMetrics(t *testing.T) {
	t.Parallel()
	told := map[string]bool{}
	sources, err := filepath.Glob("../../internal/telemetry/*.go")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\bsluice_[a-z_]+`)
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metric.FindAllString(string(text), -1) {
			told[m] = true
		}
	}
	for _, name := range []string{"alerts/sluice.yaml", "dashboards/sluice.json"} {
		for _, m := range metric.FindAllString(read(t, name), -1) {
			if base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(m, ""); !told[m] && !told[base] {
				t.Errorf("%s goes by %s, which is no metric", name, m)
			}
		}
	}
}
