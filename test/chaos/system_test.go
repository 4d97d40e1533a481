package chaos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// small is the limit that is reached: by the rules that go on alone.
const small = 3

const policyText = `domain: edge
rules:
  - {name: open, match: {path: /open}, per: [ip], limits: [{rate: 1000000/1s}], on_error: allow}
  - {name: shut, match: {path: /shut}, per: [ip], limits: [{rate: 1000000/1s}], on_error: deny}
  - {name: alone, match: {path: /alone}, per: [ip], limits: [{rate: 3/1h}], on_error: local}
  - {name: purse, match: {path: /purse}, per: [ip], limits: [{rate: 200/10000h}], on_error: deny}
  - {name: rls-open, descriptor: [open=yes, who], limits: [{rate: 1000000/1s}], on_error: allow}
  - {name: rls-shut, descriptor: [shut=yes, who], limits: [{rate: 1000000/1s}], on_error: deny}
  - {name: rls-alone, descriptor: [alone=yes, who], limits: [{rate: 3/1h}], on_error: local}
`

// A system is extauthz, the Redis that it keeps buckets in, and the way from
// one to the other.
type system struct {
	server *servers.Server
	way    *way
	*stack.Extauthz
}

func startSystem(t *testing.T, f fault, args ...string) *system {
	t.Helper()
	s := &system{server: servers.Start(t, servers.Redis, f.server)}
	s.way = openWay(t, s.server.Addr)
	addr := s.server.Addr
	if f.byWay {
		addr = s.way.addr
	}
	args = append([]string{"--policy", policyFile(t), "--redis-url", "redis://" + addr, "--store-deadline", deadline.String()}, args...)
	s.Extauthz = serve(t, args...)
	return s
}

// serve starts extauthz with args, which do not say where to listen. It must
// end well, with the test.
func serve(t *testing.T, args ...string) *stack.Extauthz {
	t.Helper()
	path := program(t) // which may take long to build
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := stack.StartExtauthz(ctx, path, 0, args...)
	if err != nil {
		t.Fatal(err)
	}
	endWell(t, e)
	return e
}

// endWell ends e with the test. It is to exit 0.
func endWell(t *testing.T, e *stack.Extauthz) {
	t.Cleanup(func() {
		if err := e.Stop(patience); err != nil {
			t.Errorf("extauthz after SIGTERM: %v, want exit 0; it said:\n%s", err, e.Output.String())
		}
	})
}

// program returns the path of extauthz.
func program(t *testing.T) string {
	t.Helper()
	path, err := programs.build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// policyFile writes the policy, and returns where it is.
func policyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(policyText), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// missing ends a test for want of a part: it is skipped, and fails in CI.
func missing(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, stack.ErrNoPart) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// do has the server do a command.
func (s *system) do(t *testing.T, args ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.server.Addr, MaxRetries: -1})
	defer c.Close()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// metrics returns the value of each series.
func (s *system) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	return scrape(t, s.Admin)
}

// scrape returns the value of each series that an admin port tells.
func scrape(t *testing.T, admin string) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			values[line[:i]], _ = strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		}
	}
	return values
}

func errorsBy(cause string) string {
	return `sluice_store_errors_total{cause="` + cause + `",store="redis"}`
}

// says waits until extauthz logs text.
func (s *system) says(t *testing.T, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line, err := s.Await(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// eventually waits until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
