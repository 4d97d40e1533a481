package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/cluster"
	"github.com/sluice-mesh/sluice/test/servers"
)

// lines indents a text, for a block in YAML.
func lines(text string, spaces int) string {
	indent := strings.Repeat(" ", spaces)
	return indent + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent)
}

// withPolicy are values with a policy and more.
func withPolicy(policy, more string) string {
	return fmt.Sprintf("policy:\n  files:\n    edge.yaml: |\n%s\n%s\n", lines(policy, 6), more)
}

// patient has a pod wait for its store as long as a busy machine may take.
const patient = "\nsettings: {store-deadline: 5s}"

// TestLifecycle installs, upgrades, rolls back and uninstalls, as Helm waits
// for it, with each store.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, values string }{
		{"memory", "store: {type: memory}"},
		{"valkey", "store: {type: valkey}\nreplicaCount: 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRelease(t, "lifecycle-"+c.name)

			r.install(t, withPolicy(policy(2), c.values+patient))
			first, door := r.pods(t), r.door(t)
			awaitBurst(t, "installed", door, 2) // a breaker may still spare the store that was not there at first

			r.install(t, withPolicy(policy(3), c.values+patient))
			wantSame(t, "upgraded to another policy", first, r.pods(t))
			awaitBurst(t, "upgraded to another policy", door, 3)
			wantSame(t, "with another policy", first, r.pods(t))

			r.install(t, withPolicy(policy(3), c.values+"\nsettings: {store-deadline: 5s, log-level: debug}"))
			second := r.pods(t)
			wantOthers(t, "upgraded to other settings", first, second)
			wantBurst(t, "upgraded to other settings", r.door(t), "192.0.2.2", 3)

			r.helm(t, "rollback", "limiter", "1", "--wait", "--timeout", helmTime)
			wantOthers(t, "rolled back", second, r.pods(t))
			wantBurst(t, "rolled back", r.door(t), "192.0.2.3", 2)

			r.helm(t, "test", "limiter", "--timeout", helmTime)

			r.helm(t, "uninstall", "limiter", "--wait", "--timeout", helmTime)
			r.wantNothingLeft(t)
		})
	}
}

// TestShared holds two replicas to one limit, in a Redis with a password from a
// Secret of the user's own.
func TestShared(t *testing.T) {
	t.Parallel()
	const password = "correct-horse"
	r := newRelease(t, "shared")
	redis := servers.Start(t, servers.Redis, servers.Options{Password: password})
	r.secret(t, "redis", map[string]any{"password": password})
	r.install(t, withPolicy(policy(7), fmt.Sprintf(`
replicaCount: 2
store: {type: redis, redis: {url: "%s", auth: {existingSecret: redis}}}`, "redis://"+redis.Addr)+patient))
	if n := len(r.pods(t)); n != 2 {
		t.Errorf("%d pods answer, want 2", n)
	}
	total := 0
	for range 10 { // each time another connection, and with it another replica
		n, err := admitted(t.Context(), r.door(t), "192.0.2.1", 1)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != 7 {
		t.Errorf("%d of 10 requests to two replicas were let through, want 7", total)
	}
}

func (r *release) secret(t *testing.T, name string, data map[string]any) {
	t.Helper()
	err := r.Apply(t.Context(), r.namespace, cluster.Object{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": data,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
}

// TestEdited edits the ConfigMap itself, as kubectl edit does: a good edit is
// in use without a restart, a bad one changes nothing.
func TestEdited(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "edited")
	r.install(t, withPolicy(policy(2), ""))
	before, door := r.pods(t), r.door(t)
	wantBurst(t, "installed", door, "192.0.2.1", 2)

	r.edit(t, policy(4))
	awaitBurst(t, "edited", door, 4)

	r.edit(t, "domain: edge\nrules: [{name: all, per: [ip], limits: [{rate: 1/parsec}]}]\n")
	pod := r.podName(t)
	err := await(t.Context(), time.Minute, func(context.Context) error {
		if out := r.Node.Output(r.namespace, pod); !strings.Contains(out, "parsec") {
			return fmt.Errorf("the pod does not complain: %s", out)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantBurst(t, "edited badly", door, "192.0.2.3", 4)
	wantSame(t, "edited", before, r.pods(t))
}

// edit replaces the policy in the release's ConfigMap.
func (r *release) edit(t *testing.T, policy string) {
	t.Helper()
	path := "/api/v1/namespaces/" + r.namespace + "/configmaps/" + serviceName + "-policy"
	err := r.Do(t.Context(), http.MethodPatch, path, cluster.Object{"data": map[string]any{"edge.yaml": policy}}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// podName returns the name of a pod that answers.
func (r *release) podName(t *testing.T) string {
	t.Helper()
	pods, err := r.List(t.Context(), "/api/v1/namespaces/"+r.namespace+"/pods?labelSelector=app.kubernetes.io/component%3Dlimiter")
	if err != nil || len(pods) == 0 {
		t.Fatalf("no pod of %s: %v", r.namespace, err)
	}
	return pods[0].Name()
}

// TestScaled has an HPA and a PodDisruptionBudget do what they are for.
func TestScaled(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "scaled")
	r.install(t, withPolicy(policy(2), `
store: {type: valkey}
autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 4}
networkPolicy: {enabled: true}`))
	err := await(t.Context(), time.Minute, func(context.Context) error {
		if n := len(r.pods(t)); n < 2 {
			return fmt.Errorf("%d pods answer, want the HPA's least, 2", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = await(t.Context(), time.Minute, func(ctx context.Context) error {
		var budget cluster.Object
		if err := r.Do(ctx, http.MethodGet, "/apis/policy/v1/namespaces/"+r.namespace+"/poddisruptionbudgets/"+serviceName, nil, &budget); err != nil {
			return err
		}
		if allowed := fmt.Sprint(budget.At("status", "disruptionsAllowed")); allowed != "1" {
			return fmt.Errorf("the PodDisruptionBudget allows %s disruptions, want 1", allowed)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
