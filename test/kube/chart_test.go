package kube_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, complaint, err := tool(t, "helm", nil, "lint", "--strict", chart(t), "--values", valuesFile(t, values))
			if err != nil {
				t.Errorf("helm lint --strict: %v\n%s%s", err, out, complaint)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	out, complaint, err := tool(t, "helm-unittest", nil, "--strict", chart(t))
	if err != nil {
		t.Errorf("helm-unittest: %v\n%s%s", err, out, complaint)
	}
}

// examples returns the values that are published or tested, by name.
func examples(t *testing.T) map[string]string {
	t.Helper()
	all := documented(t)
	all["defaults"] = ""
	for _, folder := range []string{"helm/sluice/ci", "test/kube/testdata/integrations"} {
		files, err := filepath.Glob(filepath.Join(root(t), folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no values in %s: %v", folder, err)
		}
		for _, file := range files {
			all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = read(t, folder, filepath.Base(file))
		}
	}
	return all
}

// later are examples with what the oldest supported Kubernetes has not, and the
// value that the chart then refuses.
var later = map[string]string{"extras-values": "service.trafficDistribution"}

// TestSchemas holds every example to what the oldest and the newest supported
// Kubernetes accept, and to the definitions of custom resources.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for i, version := range supported(t) {
		s := newSchemas(t, version)
		for name, values := range examples(t) {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				out, complaint, err := template(t, values, "--kube-version", version)
				if value := later[name]; value != "" && i == 0 {
					if err == nil {
						t.Errorf("the chart renders %s for %s, want it refused", value, version)
					}
					wantAll(t, complaint, []string{value, version})
					return
				}
				if err != nil {
					t.Fatalf("helm template: %s", complaint)
				}
				if out, err := conform(t, s, out); err != nil {
					t.Errorf("kubeconform: %v\n%s", err, out)
				}
			})
		}
		t.Run(version+"/typo", func(t *testing.T) {
			t.Parallel()
			typo := strings.Replace(rendered(t, ""), "replicas:", "replcas:", 1)
			if out, err := conform(t, s, typo); err == nil || !strings.Contains(out, "replcas") {
				t.Errorf("kubeconform of a Deployment with replcas: %v, want it to be refused\n%s", err, out)
			}
		})
	}
}

// unknown are the kinds whose definition is to be had as no Go module:
// kgateway's. What is made of them is looked at by the chart's unit tests alone.
var unknown = []string{"gateway.kgateway.dev/v1alpha1/GatewayExtension", "gateway.kgateway.dev/v1alpha1/TrafficPolicy"}

func conform(t *testing.T, s *schemas, manifest string) (string, error) {
	t.Helper()
	for _, o := range decode(t, manifest) {
		s.write(t, kindOf(o))
	}
	out, complaint, err := tool(t, "kubeconform", strings.NewReader(manifest), "-strict", "-summary",
		"-skip", strings.Join(unknown, ","), "-schema-location", filepath.Join(s.dir, schemaLocation))
	return out + complaint, err
}

// supported returns the oldest and the newest version that hack/tools.env names.
func supported(t *testing.T) []string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^KUBERNETES_(?:OLDEST_)?VERSION=(\S+)`).FindAllStringSubmatch(read(t, "hack", "tools.env"), -1)
	if len(found) != 2 {
		t.Fatalf("hack/tools.env names %d versions of Kubernetes, want 2", len(found))
	}
	return []string{found[0][1], found[1][1]}
}

// TestOldest holds Chart.yaml to the oldest version that is tested.
func TestOldest(t *testing.T) {
	t.Parallel()
	want := ">=" + strings.TrimPrefix(regexp.MustCompile(`\.\d+$`).ReplaceAllString(supported(t)[0], ".0"), "v") + "-0"
	got := decode(t, read(t, "helm", "sluice", "Chart.yaml"))[0].Text("kubeVersion")
	if strings.ReplaceAll(got, " ", "") != want {
		t.Errorf("kubeVersion of the chart = %q, want %q, the oldest that is tested", got, want)
	}
}

// TestReadme holds the chart's README to its values, as make chart-docs writes it.
func TestReadme(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sluice")
	if err := os.CopyFS(dir, os.DirFS(chart(t))); err != nil {
		t.Fatal(err)
	}
	if _, complaint, err := tool(t, "helm-docs", nil, "--chart-search-root", dir, "--sort-values-order", "file", "--log-level", "warning"); err != nil {
		t.Fatalf("helm-docs: %v\n%s", err, complaint)
	}
	written, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), read(t, "helm", "sluice", "README.md")); diff != "" {
		t.Errorf("helm/sluice/README.md is not what helm-docs writes; make chart-docs does (-want +got):\n%s", diff)
	}
}
