package chaos_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// The ports that envoy/replicas.yaml names, and that of a third replica.
const (
	edgePort     = 10000
	upstreamPort = 8080
)

var replicaPorts = []int{9001, 9011, 9021}

// TestRollingRestart restarts three replicas behind an Envoy, one after the
// other, that lets nothing pass unasked: every request is decided.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	l := f.ask(t)
	l.await(t, 200)
	for i := range f.replicas {
		f.restart(t, i)
		before := f.decided(t, i)
		eventually(t, "Envoy asks the new replica", func() bool { return f.decided(t, i) > before })
		l.await(t, 200)
	}
	l.end(t)
	if n := f.upstream.Unasked(); n > 0 {
		t.Errorf("%d requests passed unasked, want none", n)
	}
	t.Logf("%d requests during a restart of %d replicas, %d failed", l.answered.Load(), len(f.replicas), l.failed.Load())
}

// A fleet is replicas of extauthz on one Redis, and the Envoy that asks them.
type fleet struct {
	program  string
	args     []string
	replicas []*stack.Extauthz
	upstream *stack.Upstream
	url      string
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	path, err := stack.EnvoyPath()
	if err != nil {
		missing(t, err)
	}
	f := &fleet{program: program(t)}
	redis := servers.Start(t, servers.Redis, servers.Options{})
	f.args = []string{"--policy", policyFile(t), "--redis-url", redis.URL(), "--store-deadline", patience.String(), "--drain-delay", "3s"}
	for range replicaPorts {
		f.replicas = append(f.replicas, f.serve(t, 21500))
	}
	f.startEnvoy(t, path)
	return f
}

// serve starts a replica, that ends with the test.
func (f *fleet) serve(t *testing.T, port int) *stack.Extauthz {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := stack.StartExtauthz(ctx, f.program, port, f.args...)
	if err != nil {
		t.Fatal(err)
	}
	endWell(t, e)
	return e
}

// restart ends a replica as an update does, and starts it where it was.
func (f *fleet) restart(t *testing.T, i int) {
	t.Helper()
	old := f.replicas[i]
	if err := old.Stop(patience); err != nil {
		t.Fatalf("extauthz after SIGTERM: %v, want exit 0", err)
	}
	f.replicas[i] = f.serve(t, old.Port())
	if got := f.replicas[i].Port(); got != old.Port() {
		t.Fatalf("another process took port %d of a replica between its end and its start", old.Port())
	}
}

// decided says how many requests a replica has decided.
func (f *fleet) decided(t *testing.T, i int) float64 {
	t.Helper()
	sum := 0.0
	for name, value := range scrape(t, f.replicas[i].Admin) {
		if strings.HasPrefix(name, "sluice_decisions_total") {
			sum += value
		}
	}
	return sum
}

// startEnvoy starts the published Envoy of replicas with one replica more, and
// has it let nothing pass when none answers.
func (f *fleet) startEnvoy(t *testing.T, path string) {
	t.Helper()
	var err error
	if f.upstream, err = stack.StartUpstream(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.upstream.Stop(context.Background()) })
	edge, err := stack.ReservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	o := stack.EnvoyOptions{
		Path: path, Config: strict(t), Dir: t.TempDir(), Patience: patience,
		Listen: map[int]*stack.Port{edgePort: edge}, Connect: map[int]int{upstreamPort: f.upstream.Port},
	}
	for i, port := range replicaPorts {
		o.Connect[port] = f.replicas[i].Port()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	envoy, err := stack.StartEnvoy(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = envoy.Stop(patience) })
	f.url = fmt.Sprintf("http://127.0.0.1:%d", edge.Number)
}

// strict writes envoy/replicas.yaml with a third replica, and so that a
// question without an answer is seen.
func strict(t *testing.T) string {
	t.Helper()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	published, err := os.ReadFile(filepath.Join(root, "envoy", "replicas.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(published)
	for _, edit := range [][2]string{
		{"failure_mode_allow: true", "failure_mode_allow: false"},
		{lastReplica, lastReplica + strings.Replace(lastReplica, "9011", "9021", 1)},
	} {
		if strings.Count(text, edit[0]) != 1 {
			t.Fatalf("envoy/replicas.yaml has %q %d times, want once", edit[0], strings.Count(text, edit[0]))
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	path := filepath.Join(t.TempDir(), "strict.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const lastReplica = "              - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9011}}}\n"

// A clientele asks an Envoy, each client one request after the other.
type clientele struct {
	stop             context.CancelFunc
	wait             sync.WaitGroup
	answered, failed atomic.Int64
	wrong            chan error // the first few
}

// ask begins to ask. Each answer must be one that a rule decided.
func (f *fleet) ask(t *testing.T) *clientele {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &clientele{stop: stop, wrong: make(chan error, 8)}
	for range callers {
		c.wait.Go(func() {
			client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				c.note(decidedBy(client, f.url+"/shut"))
				time.Sleep(rest)
			}
		})
	}
	t.Cleanup(func() { stop(); c.wait.Wait() })
	return c
}

// decidedBy asks once, and is an error unless a rule allowed it.
func decidedBy(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Ratelimit-Limit") == "" {
		return fmt.Errorf("%s %v, want 200 and the headers of a limit", resp.Status, resp.Header)
	}
	return nil
}

func (c *clientele) note(err error) {
	c.answered.Add(1)
	if err == nil {
		return
	}
	c.failed.Add(1)
	select {
	case c.wrong <- err:
	default:
	}
}

// await waits for n more answers.
func (c *clientele) await(t *testing.T, n int64) {
	t.Helper()
	from := c.answered.Load()
	eventually(t, fmt.Sprintf("%d more answers", n), func() bool { return c.answered.Load() >= from+n })
}

// end ends the asking. No request may have failed.
func (c *clientele) end(t *testing.T) {
	t.Helper()
	c.stop()
	c.wait.Wait()
	for n := len(c.wrong); n > 0; n-- {
		t.Error(<-c.wrong)
	}
	if n := c.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed, want none", n, c.answered.Load())
	}
}
