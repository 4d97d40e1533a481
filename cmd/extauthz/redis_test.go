package main

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/test/servers"
)

// Two processes on one Redis admit together what one would.
func TestServeOnRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{Password: "hunter2"})
	policy := policyFile(t, limited(5))
	secret := policyFile(t, "hunter2\n")
	args := []string{"--policy", policy, "--redis-url", "redis://" + redis.Addr, "--redis-password-file", secret, "--store-deadline", "5s"}
	p, q := start(t, args...), start(t, args...)
	if got := allowance(t, p, "/api/x", 3) + allowance(t, q, "/api/x", 10); got != 5 {
		t.Errorf("two processes admit %d of 13, want 5", got)
	}
	if got := p.metric(t, `sluice_store_duration_seconds_count{store="redis"}`); got != "3" {
		t.Errorf("calls of the store = %q, want 3", got)
	}
	if code, body := q.get(t, "/readyz"); code != 200 || !strings.Contains(body, `"name":"store","ok":true`) {
		t.Errorf("GET /readyz = %d %s, want 200 and a store that is well", code, body)
	}
	for _, r := range []*process{p, q} {
		if len(r.log.lines("hunter2")) > 0 {
			t.Errorf("the log has the password: %s", r.log.lines("hunter2"))
		}
	}
}

// A store that is slow to answer the first time, as where all starts at once, is
// no store that is away.
func TestServeOnSlowRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	p := start(t, "--policy", policyFile(t, limited(2)), "--redis-url", "redis://"+lateTo(t, redis.Addr), "--store-deadline", "300ms")
	if got := p.log.lines("does not answer"); len(got) != 0 {
		t.Errorf("the log has %q, want no word of a store that does not answer", got)
	}
}

// lateTo relays to addr, but for the first connection, which nobody answers.
func lateTo(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for first := true; ; first = false {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			if !first {
				go relay(conn, addr)
			}
		}
	}()
	return l.Addr().String()
}

// relay passes on what two sides say, until one of them ends.
func relay(conn net.Conn, addr string) {
	defer conn.Close()
	far, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, conn)
		_ = far.Close()
	}()
	_, _ = io.Copy(conn, far)
}

// A store that is away does not keep it from serving: on_error decides, and
// readiness tells. When the store comes, it is used.
func TestServeWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		onError string
		first   []int // statuses while the store is away
		ready   int
		left    int // tokens, once it is there and was told what was spent
	}{
		{"allow", []int{200, 200, 200}, 200, 2},
		{"local", []int{200, 200, 429}, 200, 0},
		{"deny", []int{503, 503, 503}, 503, 2},
	} {
		t.Run(tt.onError, func(t *testing.T) {
			t.Parallel()
			redis := servers.Start(t, servers.Redis, servers.Options{})
			redis.Kill()
			p := start(t, "--policy", policyFile(t, policyText(2, tt.onError)), "--redis-url", redis.URL(), "--store-deadline", "5s")
			if got := p.log.lines("does not answer"); len(got) != 1 || !strings.Contains(got[0], `"cause":"refused"`) {
				t.Errorf("the log has %q, want one warning that says refused", got)
			}
			for i, want := range tt.first {
				if got := check(t, p.conn, "/api/x"); got != want {
					t.Errorf("Check %d without a store = %d, want %d", i, got, want)
				}
			}
			if code, body := p.get(t, "/readyz"); code != tt.ready || !strings.Contains(body, `"name":"store","ok":false`) {
				t.Errorf("GET /readyz = %d %s without a store, want %d and its fault", code, body, tt.ready)
			}
			for service, want := range map[string]bool{server.Liveness: true, server.Readiness: tt.ready == 200} {
				got, err := healthv1.NewHealthClient(p.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
				if err != nil || got.GetStatus() == healthv1.HealthCheckResponse_SERVING != want {
					t.Errorf("health.Check(%q) = %v, %v without a store, want SERVING %v", service, got, err, want)
				}
			}
			if got := p.metric(t, `sluice_store_errors_total{cause="refused",store="redis"}`); got != "3" {
				t.Errorf("errors of the store = %q, want 3", got)
			}
			redis.Restart(t)
			eventually(t, "all is settled", func() bool { return p.metric(t, "sluice_local_unsettled_buckets") == "0" })
			if got := allowance(t, p, "/api/y", 4); got != tt.left {
				t.Errorf("%d of 4 allowed with a store, want %d", got, tt.left)
			}
			if code, body := p.get(t, "/readyz"); code != 200 {
				t.Errorf("GET /readyz = %d %s with a store, want 200", code, body)
			}
		})
	}
}

// A store that forgets buckets is told of at the start.
func TestServeWarnsOfEviction(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	p := start(t, "--policy", policyFile(t, limited(2)), "--redis-url", redis.URL(), "--store-deadline", "5s")
	if got := p.log.lines("allkeys-lru"); len(got) != 1 {
		t.Errorf("the log has %q, want one warning of allkeys-lru", got)
	}
}

// What is left in Redis is told as serve has it, and none of it is spent.
func TestExplainOnRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	args := []string{"--policy", policyFile(t, limited(5)), "--redis-url", redis.URL(), "--store-deadline", "5s", "--key-prefix", "x:"}
	p := start(t, args...)
	allowance(t, p, "/api/x", 2)
	for range 5 {
		if left, allowed := explained(t, args...); left != 3 || !allowed {
			t.Errorf("run(explain) = %d left, allowed %v, want 3", left, allowed)
		}
		if left, _ := explained(t, "--server", p.admin); left != 3 {
			t.Errorf("run(explain --server) = %d left, want 3", left)
		}
	}
	if got := allowance(t, p, "/api/x", 10); got != 3 {
		t.Errorf("%d of 10 are allowed after explanations, want 3", got)
	}
}

// A store that stays away is not waited for: the breaker opens, and it is told
// everywhere. Once the store answers it closes by itself.
func TestServeOpensBreaker(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	p := start(t, "--policy", policyFile(t, policyText(1000, "allow")), "--redis-url", redis.URL(), "--store-deadline", "5s")
	redis.Kill()
	if got := allowance(t, p, "/api/x", 30); got != 30 {
		t.Errorf("%d of 30 allowed without a store, want 30", got)
	}
	opened := p.log.await(t, "the store is away", 1)
	if !strings.Contains(opened, `"level":"WARN"`) || !strings.Contains(opened, `"cause":"refused"`) {
		t.Errorf("the log has %s, want a warning that says refused", opened)
	}
	if code, body := p.get(t, "/readyz"); code != 200 || !strings.Contains(body, `"name":"store","ok":false`) || !strings.Contains(body, "redis is away (refused), the breaker is open for ") {
		t.Errorf("GET /readyz = %d %s while open, want 200 and that it is", code, body)
	}
	want := map[string]string{
		`sluice_store_errors_total{cause="refused",store="redis"}`:          "20",
		`sluice_store_errors_total{cause="open",store="redis"}`:             "10",
		`sluice_store_breaker_open{store="redis"}`:                          "1",
		`sluice_store_breaker_transitions_total{store="redis",to="open"}`:   "1",
		`sluice_store_breaker_transitions_total{store="redis",to="closed"}`: "0",
	}
	for name, value := range want {
		if got := p.metric(t, name); got != value {
			t.Errorf("%s = %q, want %s", name, got, value)
		}
	}
	redis.Restart(t)
	if closed := p.log.await(t, "the store answers again", 1); !strings.Contains(closed, `"level":"INFO"`) {
		t.Errorf("the log has %s, want an info", closed)
	}
	if got := p.metric(t, `sluice_store_breaker_open{store="redis"}`); got != "0" {
		t.Errorf("the breaker's gauge = %q once it is closed, want 0", got)
	}
	if code, body := p.get(t, "/readyz"); code != 200 || !strings.Contains(body, `"name":"store","ok":true`) {
		t.Errorf("GET /readyz = %d %s once it is closed, want 200 and a store that is well", code, body)
	}
	if lines := len(p.log.lines("the store ")); lines != 2 {
		t.Errorf("%d lines of the store in the log, want 2", lines)
	}
}

// While the store is away a replica goes on from what it saw last; what it
// spent meanwhile is charged when the store is back, once.
func TestServeSettlesWithRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	args := []string{"--policy", policyFile(t, policyText(10, "local")), "--redis-url", redis.URL(), "--store-deadline", "5s"}
	p, q := start(t, args...), start(t, args...)
	if got := allowance(t, q, "/api/x", 1) + allowance(t, p, "/api/x", 3); got != 4 {
		t.Fatalf("%d of 4 allowed at first, want all", got)
	}
	redis.Kill()
	if got := allowance(t, p, "/api/x", 2); got != 2 {
		t.Errorf("%d of 2 allowed without a store, want 2", got)
	}
	if got := p.metric(t, "sluice_local_unsettled_buckets"); got != "1" {
		t.Errorf("unsettled buckets = %q, want 1", got)
	}
	redis.Restart(t)
	eventually(t, "all is settled", func() bool { return p.metric(t, "sluice_local_unsettled_buckets") == "0" })
	if got := p.metric(t, "sluice_local_settled_tokens_total"); got != "2" {
		t.Errorf("settled tokens = %q, want 2", got)
	}
	if got := allowance(t, q, "/api/x", 10); got != 4 {
		t.Errorf("%d of 10 allowed after 4 and 2 of 10 are spent, want 4", got)
	}
	redis.Kill()
	if got := allowance(t, q, "/api/x", 5); got != 0 {
		t.Errorf("%d of 5 allowed without a store by who saw an empty bucket, want none", got)
	}
	if got := allowance(t, p, "/api/x", 10); got != 4 {
		t.Errorf("%d of 10 allowed without a store by who saw 4 tokens last, want 4", got)
	}
}

// What Redis has denied is denied again without it, unless it shall not be
// remembered.
func TestServeRemembersDenials(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	args := []string{"--policy", policyFile(t, limited(2)), "--redis-url", redis.URL(), "--store-deadline", "5s", "--deny-cache"}
	with, without := start(t, append(args, "2MiB")...), start(t, append(args, "0")...)
	if got := allowance(t, with, "/api/x", 11) + allowance(t, without, "/api/x", 11); got != 2 {
		t.Errorf("%d of 22 allowed, want 2", got)
	}
	const calls, denials = `sluice_store_duration_seconds_count{store="redis"}`, `sluice_store_remembered_denials_total{store="redis"}`
	asked, _ := strconv.Atoi(with.metric(t, calls))
	remembered, _ := strconv.Atoi(with.metric(t, denials))
	if asked+remembered != 11 || asked < 3 || remembered == 0 {
		t.Errorf("of 11 requests %d came to Redis and %d were remembered, want at least 3, and the rest", asked, remembered)
	}
	if got := without.metric(t, calls); got != "11" {
		t.Errorf("calls of the store with deny-cache 0 = %q, want 11", got)
	}
}
