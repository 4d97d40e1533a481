package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

func TestServeAnswers(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)))
	for i, want := range []int{200, 200, 429} {
		if got := check(t, p.conn, "/api/x"); got != want {
			t.Errorf("Check %d = %d, want %d", i, got, want)
		}
	}
	const ok, over = rlsv3.RateLimitResponse_OK, rlsv3.RateLimitResponse_OVER_LIMIT
	for i, want := range []rlsv3.RateLimitResponse_Code{ok, ok, over} {
		if got := shouldRateLimit(t, p, "generic_key", "login"); got != want {
			t.Errorf("ShouldRateLimit %d = %v, want %v", i, got, want)
		}
	}
	for name, want := range map[string]string{
		`sluice_decisions_total{decision="allow",domain="edge",door="authz",reason="within",rule="api"}`:    "2",
		`sluice_decisions_total{decision="deny",domain="edge",door="authz",reason="over_limit",rule="api"}`: "1",
		`sluice_decisions_total{decision="deny",domain="edge",door="rls",reason="over_limit",rule="login"}`: "1",
		`sluice_memory_keys{store="memory"}`: "2",
	} {
		if got := p.metric(t, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	p.tell()
	if got := p.exit(t); got != exitOK {
		t.Errorf("exit code = %d after a drain, want 0", got)
	}
}

// A memory store without room has not failed, and there is nothing to go on
// with in its place: whatever on_error says, a new caller is over the limit,
// and those who have a bucket go on.
func TestServeFullMemory(t *testing.T) {
	t.Parallel()
	for _, onError := range []string{"local", "allow", "deny"} {
		policy := policyText(2, onError) + "  - {name: users, descriptor: [user], limits: [{rate: 2/1h}]}\n"
		p := start(t, "--policy", policyFile(t, policy), "--memory-limit", "1MiB")
		first := check(t, p.conn, "/api/x")
		fillMemory(t, p)
		second, third := check(t, p.conn, "/api/x"), check(t, p.conn, "/api/x")
		if first != 200 || second != 200 || third != 429 {
			t.Errorf("on_error %s: an old bucket answers %d, %d, %d, want 200, 200, 429", onError, first, second, third)
		}
		if got := p.metric(t, `sluice_memory_refused_total{store="memory"}`); got == "0" {
			t.Errorf("on_error %s: %q were refused, want some", onError, got)
		}
	}
}

// fillMemory charges users until one is over the limit for want of room.
func fillMemory(t *testing.T, p *process) {
	t.Helper()
	for from := 0; from < 50_000; from += 50 {
		r := &rlsv3.RateLimitRequest{Domain: "edge"}
		for i := range 50 {
			entry := &rlcommonv3.RateLimitDescriptor_Entry{Key: "user", Value: fmt.Sprint("user ", from+i)}
			r.Descriptors = append(r.Descriptors, &rlcommonv3.RateLimitDescriptor{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{entry}})
		}
		resp, err := rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(t.Context(), r)
		if err != nil {
			t.Fatalf("ShouldRateLimit(50 users) = %v, want an answer", err)
		}
		if resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
			return
		}
	}
	t.Fatal("50,000 users find room in 1 MiB, want some without")
}

func TestServeHealthAndReflection(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)))
	names := []string{authv3.Authorization_ServiceDesc.ServiceName, rlsv3.RateLimitService_ServiceDesc.ServiceName}
	for _, name := range append([]string{""}, names...) {
		got, err := healthv1.NewHealthClient(p.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health.Check(%q) = %v, %v, want SERVING", name, got, err)
		}
	}
	stream, err := reflectionv1.NewServerReflectionClient(p.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		listed = append(listed, s.GetName())
	}
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("reflection lists %q, want %s among them", listed, name)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 200} {
		if got, body := p.get(t, path); got != want {
			t.Errorf("GET %s = %d %s, want %d", path, got, body, want)
		}
	}
}

// Who asks the admin port has no use for large headers.
func TestAdminHeaderLimit(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)))
	for size, want := range map[int]int{8 << 10: http.StatusOK, 64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.admin+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Large", strings.Repeat("x", size))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET /healthz with %d bytes of headers = %d, want %d", size, resp.StatusCode, want)
		}
	}
}

func TestServeOnSockets(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "x") // t.TempDir is too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := start(t, "--policy", policyFile(t, limited(2)), "--grpc-addr", "unix:"+dir+"/g", "--admin-addr", "")
	if got := check(t, dial(t, "unix:"+dir+"/g"), "/api/x"); got != 200 {
		t.Errorf("Check over a socket = %d, want 200", got)
	}
	if p.admin != "off" {
		t.Errorf("admin = %q with --admin-addr '', want off", p.admin)
	}
}

// A policy whose file changes holds without a restart, and what was spent
// stays spent.
func TestReload(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		make, edit func(t *testing.T, dir string)
		path       string
	}{
		{
			name: "a file is written",
			make: func(t *testing.T, dir string) { writeFile(t, dir+"/policy.yaml", limited(2)) },
			edit: func(t *testing.T, dir string) { writeFile(t, dir+"/policy.yaml", limited(5)) },
			path: "/policy.yaml",
		},
		{
			name: "a ConfigMap is changed",
			make: func(t *testing.T, dir string) { configMap(t, dir, "1", limited(2)) },
			edit: func(t *testing.T, dir string) { configMap(t, dir, "2", limited(5)) },
			path: "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.make(t, dir)
			p := start(t, "--policy", dir+tt.path)
			if got := allowance(t, p, "/api/x", 4); got != 2 {
				t.Errorf("%d of 4 allowed at first, want 2", got)
			}
			tt.edit(t, dir)
			p.log.await(t, `"msg":"policy loaded"`, 2)
			if got := allowance(t, p, "/api/x", 10); got != 3 {
				t.Errorf("%d of 10 allowed under the limit of 5 with 2 spent, want 3", got)
			}
		})
	}
}

// configMap writes policy.yaml to dir as Kubernetes does: the files are in a
// folder of their own, and one link is bent from the old one to the new.
func configMap(t *testing.T, dir, version, text string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, ".."+version, "policy.yaml"), text)
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	if err := os.Symlink(".."+version, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		os.RemoveAll(filepath.Join(dir, old))
		return
	}
	if err := os.Symlink("..data/policy.yaml", filepath.Join(dir, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
}

// A bad policy changes nothing, and is seen in the log, in a metric and in the
// readiness.
func TestReloadOfBadPolicy(t *testing.T) {
	t.Parallel()
	path := policyFile(t, limited(2))
	p := start(t, "--policy", path)
	const metric = "sluice_policy_last_reload_successful"
	if got := p.metric(t, metric); got != "1" {
		t.Errorf("%s = %q at first, want 1", metric, got)
	}
	writeFile(t, path, badPolicy)
	p.log.await(t, "last good one stays", 1)
	p.log.await(t, "policy fault", 2)
	for _, place := range []string{"policy.yaml:5:", "policy.yaml:6:"} {
		if len(p.log.lines(place)) == 0 {
			t.Errorf("the log has no fault at %s, want all faults", place)
		}
	}
	if got := p.metric(t, metric); got != "0" {
		t.Errorf("%s = %q with a bad policy, want 0", metric, got)
	}
	if code, body := p.get(t, "/readyz"); code != 200 || !strings.Contains(body, "policy.yaml:5:") {
		t.Errorf("GET /readyz = %d %s with a bad policy, want 200 with the fault", code, body)
	}
	if got := allowance(t, p, "/api/x", 4); got != 2 {
		t.Errorf("%d of 4 allowed with a bad policy, want the 2 of the last good one", got)
	}
	writeFile(t, path, limited(3))
	p.log.await(t, `"msg":"policy loaded"`, 2)
	if got := p.metric(t, metric); got != "1" {
		t.Errorf("%s = %q with a good policy, want 1", metric, got)
	}
	if got := allowance(t, p, "/api/x", 4); got != 1 {
		t.Errorf("%d of 4 allowed under the limit of 3 with 2 spent, want 1", got)
	}
}

// Every request is answered while the policy is replaced again and again,
// every second time by a bad one.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	path := policyFile(t, limited(1_000_000))
	p := start(t, "--policy", path)
	load := newLoad(t, p.conn)
	for i := range 5 {
		writeFile(t, path, badPolicy)
		p.log.await(t, "last good one stays", i+1)
		writeFile(t, path, limited(1_000_001+i))
		p.log.await(t, `"msg":"policy loaded"`, i+2)
	}
	load.stop(t)
}

// load is requests, one after the other by each of some callers, all of which
// must be let through.
type load struct {
	halt    context.CancelFunc
	callers sync.WaitGroup
	calls   atomic.Int64
	failed  atomic.Int64
	first   atomic.Pointer[string]
}

func newLoad(t *testing.T, conn *grpc.ClientConn) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{halt: cancel}
	t.Cleanup(func() { cancel(); l.callers.Wait() })
	for range 8 {
		l.callers.Go(func() {
			for ctx.Err() == nil {
				l.call(conn)
			}
		})
	}
	return l
}

func (l *load) call(conn *grpc.ClientConn) {
	status, err := tryCheck(context.Background(), conn, "/api/x")
	l.calls.Add(1)
	if err == nil && status == http.StatusOK {
		return
	}
	l.failed.Add(1)
	why := http.StatusText(status)
	if err != nil {
		why = err.Error()
	}
	l.first.CompareAndSwap(nil, &why)
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	l.halt()
	l.callers.Wait()
	if l.failed.Load() > 0 {
		t.Errorf("%d of %d requests failed, the first by %s, want none", l.failed.Load(), l.calls.Load(), *l.first.Load())
	}
	if l.calls.Load() == 0 {
		t.Error("no request was made")
	}
}

// One of two replicas ends while both are busy: no request is lost.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	path := policyFile(t, limited(1_000_000))
	p, q := start(t, "--policy", path), start(t, "--policy", path)
	r := manual.NewBuilderWithScheme("replicas")
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: p.grpc}}}, {Addresses: []resolver.Address{{Addr: q.grpc}}},
	}})
	conn := dial(t, "replicas:///", grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	load := newLoad(t, conn)
	const asked = `sluice_decisions_total{decision="allow",domain="edge",door="authz",reason="within",rule="api"}`
	eventually(t, "both replicas are asked", func() bool { return p.metric(t, asked) != "" && q.metric(t, asked) != "" })
	p.tell()
	if got := p.exit(t); got != exitOK {
		t.Errorf("exit code = %d, want 0", got)
	}
	before := load.calls.Load()
	eventually(t, "the other replica goes on", func() bool { return load.calls.Load() > before+100 })
	load.stop(t)
}

// Readiness ends with the order to end, before the port does.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(10)), "--drain-delay", "200ms")
	watch, err := healthv1.NewHealthClient(p.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("Watch = %v, %v, want SERVING", first, err)
	}
	p.tell()
	if next, err := watch.Recv(); err != nil || next.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("Watch = %v, %v when told to end, want NOT_SERVING", next, err)
	}
	if code, body := p.get(t, "/readyz"); code != 503 || !strings.Contains(body, "drain") {
		t.Errorf("GET /readyz = %d %s when told to end, want 503 and drain", code, body)
	}
	if got := check(t, dial(t, p.grpc), "/api/x"); got != 200 {
		t.Errorf("Check on a new connection = %d in the drain delay, want 200", got)
	}
	if got := p.exit(t); got != exitOK {
		t.Errorf("exit code = %d, want 0", got)
	}
}
