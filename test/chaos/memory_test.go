package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// oneEach is a policy of which every request of a key comes into a bucket of
// its own, by either door.
const oneEach = `domain: edge
identities:
  key: {header: x-key, believe: always, hash: true, missing: 400}
rules:
  - {name: key, match: {path: /*}, per: [key], limits: [{rate: 1/1h}], on_error: local}
  - {name: a, descriptor: [a], limits: [{rate: 1/1h}], on_error: local}
`

// perRequest is how many buckets one request to the rate limit service is for.
const perRequest = 20

// The memory of a process is bounded, whatever the number of keys: once it
// holds what it may, it does not grow.
func TestMemory(t *testing.T) {
	t.Parallel()
	limit := fmt.Sprintf("%dMiB", max(1, *keys*64/5_000_000))
	for name, args := range map[string][]string{
		"memory":        {"--store", "memory"},
		"redis is away": {"--redis-url", deadRedis(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(policy, []byte(oneEach), 0o600); err != nil {
				t.Fatal(err)
			}
			e := serve(t, append(args, "--policy", policy, "--memory-limit", limit)...)
			checkFlat(t, e, name+", keys of descriptors", descriptors, *keys/perRequest)
			checkFlat(t, e, name+", values of a header", header, *keys/5)
		})
	}
}

// deadRedis is the address of a server that is gone.
func deadRedis(t *testing.T) string {
	t.Helper()
	s := servers.Start(t, servers.Redis, servers.Options{})
	s.Kill()
	return s.URL()
}

// descriptors asks for perRequest buckets, which no other request asks for.
func descriptors(quarter int) bench.Request {
	r := bench.RLS{Domain: "edge"}
	for i := range perRequest {
		r.Descriptors = append(r.Descriptors, []bench.Entry{{Key: "a", Value: fmt.Sprintf("%d-{n}-%d", quarter, i)}})
	}
	return r
}

// header asks with a header whose value no other request has.
func header(quarter int) bench.Request {
	return bench.Authz{Headers: []bench.Entry{{Key: "x-key", Value: fmt.Sprintf("%d-{n}", quarter)}}}
}

// checkFlat makes so many requests, each for keys of its own, and looks at the
// memory after each quarter of them.
func checkFlat(t *testing.T, e *stack.Extauthz, name string, request func(quarter int) bench.Request, requests int) {
	t.Helper()
	var rss, series []int
	for quarter := range 4 {
		askAll(t, e, request(quarter), requests/4)
		rss, series = append(rss, resident(t, e.PID())), append(series, len(scrape(t, e.Admin)))
	}
	t.Logf("%s: %d requests; resident after each quarter: %v KiB", name, requests, rss)
	if most := rss[1]*11/10 + 8<<10; rss[3] > most {
		t.Errorf("%s: %d KiB are resident at the end and %d after half, want %d at most", name, rss[3], rss[1], most)
	}
	if series[3] != series[0] {
		t.Errorf("%s: %d series of metrics after a quarter and %d at the end, want as many", name, series[0], series[3])
	}
}

// askAll makes so many requests. Each is to be answered.
func askAll(t *testing.T, e *stack.Extauthz, r bench.Request, requests int) {
	t.Helper()
	client, err := bench.Dial(bench.Target{Addr: e.GRPC, Connections: 2}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	report, err := bench.Run(t.Context(), client, bench.Options{Callers: 16, Requests: int64(requests), Timeout: patience})
	if err != nil || report.Unanswered > 0 {
		t.Fatalf("%d of %d requests have no answer, %v %s", report.Unanswered, report.Requests, err, report.FirstError)
	}
}

// resident returns the KiB of memory that a process has.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("the status of %d tells no VmRSS: %v", pid, err)
	}
	return kib
}
