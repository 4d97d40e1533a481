package kube_test

import (
	"strings"
	"testing"
)

// TestRefused has each bad value fail before anything is installed, with a
// sentence that names it and says what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, values string
		want         []string
	}{
		{"typo", "replicaCout: 2", []string{"replicaCout"}},
		{"typo within", "store: {tpye: redis}", []string{"store", "tpye"}},
		{"wrong kind", "replicaCount: two", []string{"replicaCount"}},
		{"policy without a domain", "policy: {files: {edge.yaml: 'rules: []'}}", []string{"policy.files", "edge.yaml", "domain"}},
		{"replicas on the memory store", "replicaCount: 2", []string{"replicaCount is 2", "store.type is memory", "Set store.type to redis"}},
		{"HPA on the memory store", "autoscaling: {enabled: true}", []string{"autoscaling.enabled is true", "store.type is memory", "Set store.type to redis"}},
		{"Redis without an address", "store: {type: redis}", []string{"store.redis.url is empty", "set it to"}},
		{"password in the open", "store: {type: redis, redis: {url: 'redis://:secret@r:6379'}}", []string{"store.redis.auth.existingSecret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, complaint, err := template(t, c.values)
			if err == nil {
				t.Fatalf("helm template of %q works, want it refused; it made:\n%s", c.values, out)
			}
			wantAll(t, complaint, c.want)
		})
	}
}

// TestMissingSecret has Helm look for what the values name, before it installs.
func TestMissingSecret(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "missing-secret")
	values := "store: {type: redis, redis: {url: 'redis://127.0.0.1:1', auth: {existingSecret: redis}}}"
	install := []string{"install", "limiter", chart(t), "--values", valuesFile(t, values)}
	_, complaint, err := r.tryHelm(t, install...)
	if err == nil {
		t.Error("helm install with the name of a Secret that is not there works, want it refused")
	}
	wantAll(t, complaint, []string{"Secret", "redis", "store.redis.auth.existingSecret"})
	r.wantNothingLeft(t)

	r.secret(t, "redis", map[string]any{"wrong": "x"})
	_, complaint, err = r.tryHelm(t, install...)
	if err == nil {
		t.Error("helm install with a key that is not in the Secret works, want it refused")
	}
	wantAll(t, complaint, []string{"password", "store.redis.auth"})
}

// TestBadPolicy has a policy that only our program sees the fault of: its pods
// say where it is, and those that work are not replaced.
func TestBadPolicy(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "bad-policy")
	r.install(t, withPolicy(policy(2), ""))
	before := r.pods(t)

	bad := "domain: edge\nrules:\n  - name: all\n    per: [nobody]\n    limits: [{rate: 2/1h}]\n"
	values := valuesFile(t, withPolicy(bad, "settings: {log-level: debug}"))
	_, _, err := r.tryHelm(t, "upgrade", "limiter", chart(t), "--values", values, "--wait", "--timeout", "20s")
	if err == nil {
		t.Error("helm upgrade --wait to a policy with a fault works, want it to fail")
	}
	message := r.initMessage(t)
	wantAll(t, message, []string{"edge.yaml:4", "nobody"})
	after := r.pods(t)
	for uid := range before {
		if after[uid] != "0" {
			t.Errorf("pod %s of before the faulty policy: restarts %q, want it to go on", uid, after[uid])
		}
	}
	wantBurst(t, "with a faulty policy", r.door(t), "192.0.2.1", 2)

	r.helm(t, "rollback", "limiter", "--wait", "--timeout", helmTime)
	wantSame(t, "rolled back", before, r.pods(t))
}

// initMessage returns what the init containers of the pods left as they ended.
func (r *release) initMessage(t *testing.T) string {
	t.Helper()
	pods, err := r.List(t.Context(), "/api/v1/namespaces/"+r.namespace+"/pods")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range pods {
		b.WriteString(r.Node.Output(r.namespace, p.Name()))
	}
	return b.String()
}

// wantAll wants a text to say each of these.
func wantAll(t *testing.T, text string, want []string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("it says\n%s\nwant it to say %q", text, part)
		}
	}
}
