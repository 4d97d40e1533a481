package chaos_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// Of slow nothing comes back while the test lasts, of quick soon.
const clockPolicy = `domain: edge
on_error: deny
rules:
  - {name: slow, match: {path: /slow}, per: [ip], limits: [{rate: 5/50m}]}
  - {name: slow-interval, match: {path: /interval}, per: [ip], limits: [{rate: 5/50m, refill: interval}]}
  - {name: slow-sliding, match: {path: /sliding}, per: [ip], limits: [{rate: 5/50m, refill: sliding}]}
  - {name: quick, match: {path: /quick}, per: [ip], limits: [{rate: 5/1s}]}
`

// TestRedisClock steps the clock of Redis back and forth by an hour. A step
// back gives nobody a token and keeps nobody out for longer than without it; a
// step forward is time that has passed, and gives what comes back in that.
func TestRedisClock(t *testing.T) {
	t.Parallel()
	clock := servers.NewClock(t)
	redis := servers.Start(t, servers.Redis, servers.Options{Env: clock.Env})
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(clockPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	e := serve(t, "--policy", policy, "--redis-url", redis.URL(), "--store-deadline", patience.String(), "--deny-cache", "0")
	for i, step := range []struct {
		ahead time.Duration
		want  int64 // of a burst of 5
	}{
		{0, 5},
		{0, 0},
		{-time.Hour, 0},
		{0, 5},
		{-time.Hour, 0},
		{-2 * time.Hour, 0},
		{time.Hour, 5},
		{0, 0},
		{time.Hour, 5},
		{time.Hour, 0},
	} {
		stepClock(t, clock, redis, step.ahead)
		for _, path := range []string{"/slow", "/interval", "/sliding"} {
			if got := allowed(t, e, path, 12); got != step.want {
				t.Errorf("step %d: %d of 12 for %s are allowed with the clock %v ahead, want %d", i, got, path, step.ahead, step.want)
			}
		}
		eventually(t, "quick is denied", func() bool { return allowed(t, e, "/quick", 20) < 20 })
		eventually(t, "quick is allowed again", func() bool { return allowed(t, e, "/quick", 1) == 1 })
	}
}

// stepClock sets the clock, and waits until the server goes by it.
func stepClock(t *testing.T, c *servers.Clock, s *servers.Server, ahead time.Duration) {
	t.Helper()
	c.Set(t, ahead)
	s.Await(t, func(text string) bool {
		seconds, _, _ := strings.Cut(text, "\n")
		n, err := strconv.ParseInt(seconds, 10, 64)
		off := time.Until(time.Unix(n, 0)) - ahead
		return err == nil && off > -time.Minute && off < time.Minute
	}, "TIME")
}

// allowed says how many of n requests are allowed. Each is to be answered.
func allowed(t *testing.T, e *stack.Extauthz, path string, n int64) int64 {
	t.Helper()
	client, err := bench.Dial(bench.Target{Addr: e.GRPC, Connections: 1}, bench.Authz{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	report, err := bench.Run(t.Context(), client, bench.Options{Requests: n, Timeout: patience})
	if err != nil || report.Unanswered > 0 || report.Requests != n {
		t.Fatalf("%d requests for %s: %+v, %v, want an answer to each", n, path, report, err)
	}
	return report.Answers[bench.OK]
}
