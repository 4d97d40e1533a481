package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-mesh/sluice/test/cluster"
)

// integrated are the kinds of others that the chart makes objects of.
var integrated = []string{
	"SecurityPolicy", "ReferenceGrant", "ClientTrafficPolicy", "BackendTLSPolicy", "AuthorizationPolicy", "EnvoyFilter",
	"DestinationRule", "ExtensionService", "AuthService", "RateLimitService", "Middleware",
	"ServiceMonitor", "PodMonitor", "PrometheusRule", "Certificate",
}

// shown are the kinds that the pages on Kubernetes show besides.
var shown = []string{"EnvoyProxy", "HTTPProxy", "ContourConfiguration", "Mapping", "IngressRoute"}

// define has a cluster know their definitions, as their projects publish them.
var define = sync.OnceValue(func() error {
	c, err := kubernetes()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	crds, err := definitions()
	if err != nil {
		return err
	}
	var names []string
	for _, crd := range crds {
		if kind := crd.Text("spec", "names", "kind"); !slices.Contains(integrated, kind) && !slices.Contains(shown, kind) {
			continue
		}
		// Emissary's convert between versions by a service of its own, which is
		// not here: only what is sent as it is kept can be looked at.
		if spec, ok := crd["spec"].(map[string]any); ok {
			delete(spec, "conversion")
		}
		if err := c.Apply(ctx, "", crd, false); err != nil {
			return err
		}
		names = append(names, crd.Name())
	}
	for _, name := range names {
		if err := established(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
})

// established waits until a custom resource can be used.
func established(ctx context.Context, c *cluster.Cluster, name string) error {
	return await(ctx, startTime, func(ctx context.Context) error {
		var crd cluster.Object
		if err := c.Do(ctx, http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name, nil, &crd); err != nil {
			return err
		}
		conditions, _ := crd.At("status", "conditions").([]any)
		for _, condition := range conditions {
			if o := cluster.Object(condition.(map[string]any)); o.Text("type") == "Established" && o.Text("status") == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not established: %v", name, conditions)
	})
}

// TestAccepted has the API server look at every object of every example, as if
// it were to keep it. It refuses fields that it does not know.
func TestAccepted(t *testing.T) {
	t.Parallel()
	c := must(t, kubernetes)
	if err := define(); err != nil {
		t.Fatal(err)
	}
	for name, values := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range render(t, values) {
				if slices.Contains(unknown, o.Text("apiVersion")+"/"+o.Kind()) {
					continue
				}
				namespace(t, c, o.Text("metadata", "namespace"))
				dry := o.Kind() != "ServiceAccount" // pods are only accepted with theirs
				if err := c.Apply(t.Context(), "limits", o, dry); err != nil {
					t.Errorf("dry run: %v", err)
				}
			}
		})
	}
}

// namespace makes a namespace, unless it is there.
func namespace(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	if name == "" {
		name = "limits"
	}
	o := cluster.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	if err := c.Apply(t.Context(), "", o, false); err != nil {
		t.Fatal(err)
	}
}

// TestTypo has a field that is spelt wrong refused, in an object of each kind.
func TestTypo(t *testing.T) {
	t.Parallel()
	c := must(t, kubernetes)
	if err := define(); err != nil {
		t.Fatal(err)
	}
	namespace(t, c, "limits")
	seen := map[kind]cluster.Object{}
	for _, values := range examples(t) {
		for _, o := range render(t, values) {
			if !slices.Contains(unknown, o.Text("apiVersion")+"/"+o.Kind()) {
				seen[kindOf(o)] = o
			}
		}
	}
	for k, o := range seen {
		t.Run(k.kind, func(t *testing.T) {
			t.Parallel()
			namespace(t, c, o.Text("metadata", "namespace"))
			wrong, where := misspell(o)
			err := c.Apply(t.Context(), "limits", wrong, true)
			var refused *cluster.Refusal
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, where) {
				t.Errorf("dry run of a %s with a field %s: %v, want it refused by name", k.kind, where, err)
			}
		})
	}
	for _, want := range append([]string{"HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"}, integrated...) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(k kind) bool { return k.kind == want }) {
			t.Errorf("no example makes a %s", want)
		}
	}
}

// misspell adds a field that nobody knows to what is first in an object: its
// spec, or where it has none the object itself.
func misspell(o cluster.Object) (cluster.Object, string) {
	wrong := maps.Clone(o)
	if spec, ok := o["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		spec["tpyo"] = "x"
		wrong["spec"] = spec
		return wrong, "tpyo"
	}
	wrong["tpyo"] = "x"
	return wrong, "tpyo"
}
