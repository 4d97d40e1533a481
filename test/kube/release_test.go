package kube_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/test/cluster"
)

// A release is an installation of the chart in a namespace of its own, which
// enforces the restricted profile of Pod Security.
type release struct {
	*cluster.Cluster
	namespace string
}

// helmTime is the time that Helm waits for an installation on a busy machine.
const helmTime = "90s"

// newRelease makes the namespace; nothing is installed yet.
func newRelease(t *testing.T, namespace string) *release {
	t.Helper()
	r := &release{Cluster: must(t, kubernetes), namespace: namespace}
	err := r.Apply(t.Context(), "", cluster.Object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace, "labels": map[string]any{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	// By this the chart knows a namespace in which it can look for things.
	authority := "/api/v1/namespaces/" + namespace + "/configmaps/kube-root-ca.crt"
	err = await(t.Context(), startTime, func(ctx context.Context) error { return r.Do(ctx, http.MethodGet, authority, nil, nil) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the pods of %s said:\n%s", namespace, r.Node.Output(namespace, ""))
			t.Logf("what the cluster said:\n%s", r.Output())
		}
	})
	return r
}

// helm runs Helm on the namespace and returns what it printed.
func (r *release) helm(t *testing.T, args ...string) string {
	t.Helper()
	out, complaint, err := r.tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s\npods:\n%s", strings.Join(args, " "), err, out, complaint, r.Node.Output(r.namespace, ""))
	}
	return out
}

func (r *release) tryHelm(t *testing.T, args ...string) (out, complaint string, err error) {
	t.Helper()
	return tool(t, "helm", nil, append(args, "--namespace", r.namespace, "--kubeconfig", r.Kubeconfig)...)
}

// install installs the chart, or upgrades it, and waits until it is ready.
func (r *release) install(t *testing.T, values string) {
	t.Helper()
	r.helm(t, "upgrade", "--install", "limiter", chart(t), "--values", valuesFile(t, values), "--wait", "--timeout", helmTime)
}

// pods returns the UIDs of the pods that answer requests, each with the number
// of its restarts.
func (r *release) pods(t *testing.T) map[string]string {
	t.Helper()
	pods, err := r.List(t.Context(), "/api/v1/namespaces/"+r.namespace+"/pods?labelSelector=app.kubernetes.io/component%3Dlimiter")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, p := range pods {
		if p.At("metadata", "deletionTimestamp") != nil {
			continue
		}
		statuses, _ := p.At("status", "containerStatuses").([]any)
		restarts := "none ran"
		if len(statuses) > 0 {
			restarts = fmt.Sprint(statuses[0].(map[string]any)["restartCount"])
		}
		found[p.Text("metadata", "uid")] = restarts
	}
	return found
}

// left returns what is in the namespace, beside what every namespace has and
// what tells of the past.
func (r *release) left(ctx context.Context) ([]string, error) {
	var groups struct {
		Groups []struct{ PreferredVersion struct{ GroupVersion string } }
	}
	if err := r.Do(ctx, http.MethodGet, "/apis", nil, &groups); err != nil {
		return nil, err
	}
	of := []string{"/api/v1"}
	for _, g := range groups.Groups {
		of = append(of, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	var left []string
	for _, path := range of {
		found, err := r.in(ctx, path)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// in returns what is in the namespace of one group.
func (r *release) in(ctx context.Context, group string) ([]string, error) {
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
			Verbs      []string
		}
	}
	if err := r.Do(ctx, http.MethodGet, group, nil, &list); err != nil {
		return nil, err
	}
	var found []string
	for _, kind := range list.Resources {
		if !kind.Namespaced || !slices.Contains(kind.Verbs, "list") || kind.Kind == "Event" {
			continue
		}
		objects, err := r.List(ctx, group+"/namespaces/"+r.namespace+"/"+kind.Name)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if name := kind.Kind + " " + o.Name(); name != "ServiceAccount default" && name != "ConfigMap kube-root-ca.crt" {
				found = append(found, name)
			}
		}
	}
	return found, nil
}

// wantNothingLeft waits until the namespace is as it was before.
func (r *release) wantNothingLeft(t *testing.T) {
	t.Helper()
	var left []string
	err := await(t.Context(), time.Minute, func(ctx context.Context) (err error) {
		left, err = r.left(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%s", strings.Join(left, ", "))
		}
		return err
	})
	if err != nil {
		t.Errorf("after helm uninstall there is left: %v, want nothing", err)
	}
}

// await tries until it succeeds, and returns the last error where that takes
// too long.
func await(ctx context.Context, long time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// wantSame wants the same pods as before, none of them restarted.
func wantSame(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("%s: the pods and their restarts differ (-before +after):\n%s", what, diff)
	}
}

// wantOthers wants none of the pods that were there before.
func wantOthers(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	if len(after) != len(before) {
		t.Errorf("%s: %d pods, want %d", what, len(after), len(before))
	}
	for uid := range maps.Keys(before) {
		if _, stays := after[uid]; stays {
			t.Errorf("%s: pod %s stays, want it replaced", what, uid)
		}
	}
}
