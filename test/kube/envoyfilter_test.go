package kube_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sluice-mesh/sluice/test/cluster"
	"github.com/sluice-mesh/sluice/test/stack"
	"go.yaml.in/yaml/v4"
)

// TestEnvoyFilter has a real Envoy run what the EnvoyFilter of an example says.
// The patches are put in here, since Istio itself is not to be had.
func TestEnvoyFilter(t *testing.T) {
	t.Parallel()
	values := read(t, "helm", "sluice", "ci", "integration-istio-rls-values.yaml")
	for _, tt := range []struct {
		name   string
		args   []string
		sluice bool
		host   string
		want   []int
	}{
		{"the host that it names is limited", nil, true, "app.example.com", []int{200, 200, 200, 429, 429}},
		{"another is not", nil, true, "other.example.com", []int{200, 200, 200, 200, 200}},
		{"without Sluice requests pass", nil, false, "app.example.com", []int{200}},
		{"or do not", []string{"--set", "integrations.failOpen=false"}, false, "app.example.com", []int{503}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, values, tt.args...)
			sluice := 1 // nobody listens there
			if tt.sluice {
				sluice = limiter(t, objects)
			}
			gateway := gateway(t, find(t, objects, "EnvoyFilter", "limiter-sluice-ratelimit"), sluice)
			var got []int
			for range tt.want {
				got = append(got, post(t, gateway, tt.host))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("POST /orders to %s, the statuses (-want +got):\n%s", tt.host, diff)
			}
		})
	}
}

// limiter runs our program with the policy that the chart rendered, and returns
// its port.
func limiter(t *testing.T, objects []cluster.Object) int {
	t.Helper()
	dir := t.TempDir()
	files, _ := find(t, objects, "ConfigMap", "limiter-sluice-policy").At("data").(map[string]any)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := stack.StartExtauthz(t.Context(), must(t, extauthz), 0, "--policy", dir)
	if err != nil {
		t.Fatal(err)
	}
	stopWithTest(t, e.Stop)
	return e.Port()
}

// gateway runs Envoy as Istio's gateway, patched by filter, before Sluice's
// port, and returns its port.
func gateway(t *testing.T, filter cluster.Object, sluice int) int {
	t.Helper()
	upstream, err := stack.StartUpstream(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Stop(t.Context()) })
	port, err := stack.ReservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e, err := stack.StartEnvoy(t.Context(), stack.EnvoyOptions{
		Path: must(t, stack.EnvoyPath), Config: patched(t, filter, dir), Dir: dir, Patience: 10 * time.Second,
		Listen: map[int]*stack.Port{10000: port}, Connect: map[int]int{9001: sluice, 8080: upstream.Port},
	})
	if err != nil {
		t.Fatal(err)
	}
	stopWithTest(t, e.Stop)
	return port.Number
}

// find returns the object of a kind and a name.
func find(t *testing.T, objects []cluster.Object, kind, name string) cluster.Object {
	t.Helper()
	for _, o := range objects {
		if o.Kind() == kind && o.Name() == name {
			return o
		}
	}
	t.Fatalf("the chart makes no %s %s", kind, name)
	return nil
}

func stopWithTest(t *testing.T, stop func(time.Duration) error) {
	t.Cleanup(func() {
		if err := stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// patched writes testdata/gateway.yaml with the patches of filter into dir.
func patched(t *testing.T, filter cluster.Object, dir string) string {
	t.Helper()
	config := decode(t, read(t, "test", "kube", "testdata", "gateway.yaml"))[0]
	for _, patch := range filter.At("spec", "configPatches").([]any) {
		apply(t, config, patch.(map[string]any))
	}
	text, err := yaml.Marshal(map[string]any(config))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "patched.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// apply does to the only listener what Istio would.
func apply(t *testing.T, config cluster.Object, patch cluster.Object) {
	t.Helper()
	listener := first(config.At("static_resources", "listeners"))
	manager := first(first(listener.At("filter_chains")).At("filters")).At("typed_config").(map[string]any)
	value := patch.At("patch", "value").(map[string]any)
	switch patch.Text("applyTo") + " " + patch.Text("patch", "operation") {
	case "HTTP_FILTER INSERT_BEFORE":
		filters := manager["http_filters"].([]any)
		before := patch.Text("match", "listener", "filterChain", "filter", "subFilter", "name")
		at := slices.IndexFunc(filters, func(f any) bool { return cluster.Object(f.(map[string]any)).Text("name") == before })
		manager["http_filters"] = slices.Insert(filters, at, any(value))
	case "VIRTUAL_HOST MERGE":
		name := patch.Text("match", "routeConfiguration", "vhost", "name")
		for _, host := range cluster.Object(manager).At("route_config", "virtual_hosts").([]any) {
			if host := host.(map[string]any); name == "" || host["name"] == name {
				had, _ := host["rate_limits"].([]any)
				host["rate_limits"] = append(had, value["rate_limits"].([]any)...)
			}
		}
	default:
		t.Fatalf("a patch that this test cannot apply: %v", patch)
	}
}

func first(list any) cluster.Object { return list.([]any)[0].(map[string]any) }

// post orders something of host at port and returns the status of the answer.
func post(t *testing.T, port int, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/orders", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}
