package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

const (
	startTime = time.Minute
	stopTime  = 20 * time.Second
	// patience replaces the published timeouts: a machine that is busy must
	// not look like a Sluice that is away.
	patience = time.Minute
)

// The ports that published files name.
const (
	edgePort     = 10000
	proxiedPort  = 10001
	inboundPort  = 15006
	upstreamPort = 8080
	sluicePort   = 9001
	secondSluice = 9011
)

// A setup is what a test starts: published files, by their path in the
// checkout.
type setup struct {
	config, policy string
	store          string // memory or redis
	listen         []int  // nil means edgePort
	sluices        []int  // where each extauthz listens; nil means sluicePort
	// What else this test needs: other words in the files, more arguments for
	// extauthz, another service behind Envoy than stack.Upstream.
	edit, editPolicy func(text string) string
	args             []string
	upstream         func(t *testing.T) (port int)
	mortal           bool // an extauthz may be killed
	// via returns the port by which Envoy gets to the one of an extauthz.
	via func(t *testing.T, port int) int
}

// A system is a running setup: clients are to ask its Envoy.
type system struct {
	*setup
	born       time.Time // before its first request
	published  string    // the policy
	policyFile string    // the copy of it that runs, to be edited
	upstream   *stack.Upstream
	sluices    []*stack.Extauthz
	envoy      *stack.Envoy
	ports      map[int]int // published port to real one
}

// start starts s, and ends it with the test. If the test failed, it shows what
// every process said.
func start(t *testing.T, s setup) *system {
	t.Helper()
	envoy := need(t, stack.EnvoyPath)
	if s.listen == nil {
		s.listen = []int{edgePort}
	}
	if s.sluices == nil {
		s.sluices = []int{sluicePort}
	}
	root := must(t)(stack.Root())
	y := &system{setup: &s, born: time.Now(), ports: map[int]int{}, policyFile: filepath.Join(t.TempDir(), "policy.yaml")}
	y.published = edited(s.editPolicy, readFile(t, filepath.Join(root, s.policy)))
	writeFile(t, y.policyFile, y.published)

	extauthz(t) // which may take long to build, and is not late to start for that
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	y.startUpstream(t)
	y.startSluices(ctx, t)
	config := filepath.Join(root, s.config)
	if s.edit != nil {
		text := s.edit(readFile(t, config))
		config = filepath.Join(t.TempDir(), "edited.yaml")
		writeFile(t, config, text)
	}
	y.startEnvoy(ctx, t, envoy, config)
	return y
}

func edited(edit func(string) string, text string) string {
	if edit == nil {
		return text
	}
	return edit(text)
}

func (y *system) startUpstream(t *testing.T) {
	t.Helper()
	if y.setup.upstream != nil {
		y.ports[upstreamPort] = y.setup.upstream(t)
		return
	}
	u, err := stack.StartUpstream(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Stop(context.Background()); err != nil {
			t.Errorf("upstream: %v", err)
		}
	})
	y.upstream = u
	y.ports[upstreamPort] = u.Port
}

func (y *system) startSluices(ctx context.Context, t *testing.T) {
	t.Helper()
	args := append([]string{"--policy", y.policyFile, "--store-deadline", patience.String()}, storeArgs(t, y.store)...)
	args = append(args, y.args...)
	for _, published := range y.setup.sluices {
		e, err := stack.StartExtauthz(ctx, extauthz(t), 0, args...)
		if err != nil {
			t.Fatal(err)
		}
		end := e.Stop
		if y.mortal {
			end = func(grace time.Duration) error { _ = e.Stop(grace); return nil }
		}
		endWithTest(t, e.Process, end)
		y.sluices = append(y.sluices, e)
		y.ports[published] = e.Port()
		if y.via != nil {
			y.ports[published] = y.via(t, e.Port())
		}
	}
}

func (y *system) startEnvoy(ctx context.Context, t *testing.T, path, config string) {
	t.Helper()
	o := stack.EnvoyOptions{
		Path: path, Config: config, Dir: t.TempDir(),
		Listen: map[int]*stack.Port{}, Connect: map[int]int{}, Patience: patience,
	}
	for published, port := range y.ports {
		o.Connect[published] = port
	}
	for _, published := range y.listen {
		p, err := stack.ReservePort(0)
		if err != nil {
			t.Fatal(err)
		}
		o.Listen[published] = p
		y.ports[published] = p.Number
	}
	e, err := stack.StartEnvoy(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	endWithTest(t, e.Process, e.Stop)
	y.envoy = e
}

// endWithTest ends p with the test, whose failure it is if p does not end well.
func endWithTest(t *testing.T, p *stack.Process, stop func(time.Duration) error) {
	t.Cleanup(func() {
		if err := stop(stopTime); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", p.Name, p.Output.String())
		}
	})
}

// need returns the path of a part, and skips the test where it is not on this
// machine. In CI it fails.
func need(t *testing.T, find func() (string, error)) string {
	t.Helper()
	path, err := find()
	switch {
	case err == nil:
		return path
	case errors.Is(err, stack.ErrNoPart) && os.Getenv("CI") == "":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
	return ""
}

var systems atomic.Int64

// storeArgs are the arguments of an extauthz that keeps its buckets in store,
// apart from all others'.
func storeArgs(t *testing.T, store string) []string {
	t.Helper()
	if store == "memory" {
		return []string{"--store", store}
	}
	need(t, stack.RedisPath)
	r, err := redis()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--store", store, "--redis-url", r.URL, "--key-prefix", fmt.Sprintf("e2e%d:", systems.Add(1))}
}

// extauthz returns the path of the program under test.
func extauthz(t *testing.T) string {
	t.Helper()
	return must(t)(programs())
}

// must returns a function that returns its first argument, and ends the test
// if there is an error.
func must(t *testing.T) func(string, error) string {
	return func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
