package cases_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ids are all cases. None may be forgotten.
const ids = `B001 B003 B004 B005 B006 B007 B010 B011 B012 B013 B015 B017 B018 B019 B020 B021 B023 B024 B026 B027 B028
B029 B030 B031 B033 B034 B035 B036 B037 B038 B040 B042 B043 B045 B046 B047 B049 B050 B051 B052 B053 B054 B056 B058 B059
B060 B061 B062 B063 B064 B067 B068 B070 B071 B073 B074 B076 B077 B078 B079 B080 B081 B083 B084 B085 B086 B087 B089 B091
B092 B093 B094 B095 B096 B097 B098 B099 B100 B101 B102 B103 B104 B105 B106 B107 B108`

var caseRow = regexp.MustCompile(`(?m)^\| (B\d{3}) \| .+ \| (?:(\S+) )?(\S+) \|$`)

// Each case is shown by a test that there is, or by a word on why it is not so.
func TestEveryCaseIsShown(t *testing.T) {
	t.Parallel()
	shown := make(map[string]bool)
	for _, row := range caseRow.FindAllStringSubmatch(read(t, "test/cases/README.md"), -1) {
		id, folder, name := row[1], row[2], row[3]
		shown[id] = true
		if !exists(t, id, folder, name) {
			t.Errorf("README.md has %s shown by %s %s, want a test, or the case in docs/limits.md", id, folder, name)
		}
	}
	for id := range strings.FieldsSeq(ids) {
		if !shown[id] {
			t.Errorf("README.md has no row for %s, want one that says what shows it", id)
		}
		delete(shown, id)
	}
	if len(shown) > 0 {
		t.Errorf("README.md has rows for %v, want none: there are no such cases", shown)
	}
}

// exists says that what shows a case is there.
func exists(t *testing.T, id, folder, name string) bool {
	t.Helper()
	if name == "docs/limits.md" {
		return strings.Contains(read(t, name), id)
	}
	if folder == "" {
		folder = "test/cases"
	}
	if !strings.HasPrefix(name, "Test") {
		_, err := os.Stat(filepath.Join(root, folder, "testdata", name+".txtar"))
		return err == nil && strings.HasPrefix(name, id)
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// load returns what is said of one policy file.
func load(text string) policyfile.Faults {
	_, faults := policyfile.Load(policyfile.Options{Paths: []string{"policy.yaml"}, FS: fstest.MapFS{"policy.yaml": {Data: []byte(text)}}})
	return faults
}

// What we publish has nothing to be warned of.
func TestPublishedPolicies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "examples/*/policy.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob() = %v, %v, want policies", files, err)
	}
	envoys, err := filepath.Glob(filepath.Join(root, "envoy/*policy.yaml"))
	if err != nil || len(envoys) == 0 {
		t.Fatalf("Glob() = %v, %v, want policies", envoys, err)
	}
	for _, file := range append(files, envoys...) {
		if _, faults := policyfile.Load(policyfile.Options{Paths: []string{file}}); len(faults) > 0 {
			t.Errorf("Load(%s) = %v, want no fault and no warning", file, faults)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Every piece of YAML in the reference can be used as it stands, and there is
// no field of a policy file that it does not name.
func TestPolicyReference(t *testing.T) {
	t.Parallel()
	reference := read(t, "docs/policy.md")
	blocks := yamlBlock.FindAllStringSubmatch(reference, -1)
	if len(blocks) < 10 {
		t.Fatalf("docs/policy.md has %d pieces of YAML, want 10 or more", len(blocks))
	}
	for _, block := range blocks {
		text := block[1]
		if !strings.HasPrefix(text, "domain:") {
			text = "domain: edge\n" + text
		}
		if !strings.Contains(text, "\nrules:") {
			text += "rules: [{name: all, per: [ip], limits: [{rate: 1/1s}]}]\n"
		}
		if faults := load(text); len(faults) > 0 {
			t.Errorf("Load(%s) = %v, want no fault and no warning", text, faults)
		}
	}
	for _, field := range fields(t) {
		if !regexp.MustCompile("`" + field + "[`:]").MatchString(reference) {
			t.Errorf("docs/policy.md does not name the field %s", field)
		}
	}
}

var metricName = regexp.MustCompile(`"(sluice_[a-z_]+)"`)

// There is no metric that docs/operating.md does not name, and it names none
// that there is not.
func TestMetricsReference(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob(filepath.Join(root, "internal/telemetry/*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("internal/telemetry has %d files, %v, want some", len(sources), err)
	}
	have := map[string]bool{}
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range metricName.FindAllStringSubmatch(read(t, strings.TrimPrefix(filepath.ToSlash(file), root+"/")), -1) {
			have[m[1]] = true
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(sluice_[a-z_]+)[`{]").FindAllStringSubmatch(read(t, "docs/operating.md"), -1) {
		named[m[1]] = true
	}
	if diff := cmp.Diff(have, named); diff != "" {
		t.Errorf("docs/operating.md and the metrics differ, -metrics +docs:\n%s", diff)
	}
}

var oneOf = regexp.MustCompile(`found an unknown field, want one of ([a-z0-9_, ]+)`)

// fields are all fields of a policy file, as its reader lists them for one
// that it does not know.
func fields(t *testing.T) []string {
	t.Helper()
	faults := load(`
domain: edge
zzz: 1
trust: {zzz: 1}
identities: {a: {header: x, zzz: 1}}
exempt: {zzz: 1}
headers: {zzz: 1, names: {zzz: 1}}
rules:
  - name: a
    zzz: 1
    match: {zzz: 1}
    limits: [{rate: 1/1s, zzz: 1}]
    lease: {zzz: 1}
    overrides: [{zzz: 1, when: 'true', unlimited: true}]
    deny: {zzz: 1}
`)
	lists := oneOf.FindAllStringSubmatch(fmt.Sprint(faults), -1)
	if len(lists) != 12 {
		t.Fatalf("Load() lists the fields of %d places, want 12: %v", len(lists), faults)
	}
	var all []string
	for _, list := range lists {
		all = append(all, strings.Split(list[1], ", ")...)
	}
	return all
}
