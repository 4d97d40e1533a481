package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

func TestTakeFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server servers.Options
		broken func(t *testing.T, s *servers.Server) (url string)
		want   string
	}{
		{"stopped", servers.Options{}, stopped, "refused"},
		{"stopped socket", servers.Options{Socket: true}, stopped, "refused"},
		{"no password", servers.Options{Password: "secret"}, withoutPassword, "auth"},
		{"wrong password", servers.Options{Password: "secret"}, wrongPassword, "auth"},
		{"user may not", servers.Options{}, withoutRights, "auth"},
		{"replica", servers.Options{Args: []string{"--replicaof", "127.0.0.1 1"}}, nil, "readonly"},
		{"stale replica", servers.Options{Args: []string{"--replicaof", "127.0.0.1 1"}}, stale, "readonly"},
		{"out of memory", servers.Options{Args: []string{"--maxmemory", "1"}}, nil, "full"},
		{"too few replicas", servers.Options{Args: []string{"--min-replicas-to-write", "1"}}, nil, "replicas"},
		{"busy", servers.Options{Args: []string{"--busy-reply-threshold", "1"}}, inAScript, "busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range servers.Kinds() {
				s := servers.Start(t, kind, c.server)
				url := s.URL()
				if c.broken != nil {
					url = c.broken(t, s)
				}
				store := open(t, redisstore.Options{URL: url, Deadline: patience})
				err := store.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1))
				if got := causeOf(err); got != c.want {
					t.Errorf("%s: Take = %v with cause %q, want cause %q", kind.Name, err, got, c.want)
				}
			}
		})
	}
}

func stopped(_ *testing.T, s *servers.Server) string {
	s.Stop()
	return s.URL()
}

func withoutPassword(_ *testing.T, s *servers.Server) string {
	return strings.Replace(s.URL(), ":secret@", "", 1)
}

func wrongPassword(_ *testing.T, s *servers.Server) string {
	return strings.Replace(s.URL(), ":secret@", ":wrong@", 1)
}

func withoutRights(t *testing.T, s *servers.Server) string {
	do(t, s, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-set")
	return strings.Replace(s.URL(), "redis://", "redis://reader:secret@", 1)
}

func stale(t *testing.T, s *servers.Server) string {
	do(t, s, "CONFIG", "SET", "replica-serve-stale-data", "no")
	return s.URL()
}

// inAScript keeps the server busy until the test ends.
func inAScript(t *testing.T, s *servers.Server) string {
	runner, killer := client(t, s), client(t, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runner.Eval(context.Background(), "while true do end", nil)
	}()
	t.Cleanup(func() {
		killer.ScriptKill(context.Background())
		<-done
	})
	for !strings.HasPrefix(errorText(killer.Ping(t.Context()).Err()), "BUSY ") {
		if t.Context().Err() != nil {
			break
		}
	}
	return s.URL()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestTakeOnce has a charge time out that the server makes later: it is not
// sent again.
func TestTakeOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{})
			patient := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
			hasty := open(t, redisstore.Options{URL: server.URL(), Deadline: 100 * time.Millisecond})
			charge := one(t)
			look := charge
			look.Cost = 0
			take(t, patient, look)               // the server knows the script now
			for hasty.Ping(t.Context()) != nil { // until it has a connection
			}
			server.Pause(t)
			err := hasty.Take(t.Context(), []bucket.Charge{charge}, make([]bucket.Result, 1))
			if got := causeOf(err); got != "timeout" {
				t.Errorf("Take(paused server) = %v with cause %q, want cause timeout", err, got)
			}
			if got := causeOf(hasty.Ping(t.Context())); got != "timeout" {
				t.Errorf("Ping(paused server) has cause %q, want timeout", got)
			}
			server.Resume(t)
			// What the server had in its buffers is done before it answers twice.
			do(t, server, "PING")
			do(t, server, "PING")
			if got := take(t, patient, look)[0].Remaining; got != 9 {
				t.Errorf("Remaining after a charge of 1 of 10 that timed out = %d, want 9", got)
			}
		})
	}
}

func TestTakeAfterRestart(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{})
	store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
	take(t, store, one(t))
	server.Kill()
	err := store.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1))
	if got := causeOf(err); got != "refused" && got != "broken" {
		t.Errorf("Take(killed server) = %v with cause %q, want refused or broken", err, got)
	}
	server.Restart(t)
	if got := take(t, store, one(t))[0].Remaining; got != 9 {
		t.Errorf("Remaining after a restart = %d, want 9 of an empty server's 10", got)
	}
}

func TestTakeAfterScriptFlush(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
		for i := range int64(3) {
			if got := take(t, store, one(t))[0].Remaining; got != 9-i {
				t.Errorf("%s: Remaining after %d charges = %d, want %d", kind.Name, i+1, got, 9-i)
			}
			do(t, server, "SCRIPT", "FLUSH")
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	store, err := redisstore.New(redisstore.Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatalf("Close() = %v, want no error", err)
	}
	err = store.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1))
	if got := causeOf(err); got != "closed" {
		t.Errorf("Take(closed store) = %v with cause %q, want closed", err, got)
	}
}

// TestAnswered has what servers answer that a test cannot well bring about.
func TestAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"LOADING Redis is loading the dataset in memory", "loading"},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", "disk"},
		{"ERR max number of clients reached", "clients"},
		{"CLUSTERDOWN Hash slot not served", "clusterdown"},
		{"MOVED 3999 127.0.0.1:6381", "moved"},
		{"ERR Error running script (call to f_4a2267): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", "full"},
		{"ERR unknown command 'evalsha'", "other"},
	} {
		if got := redisstore.Answered(c.text); got != c.want {
			t.Errorf("Answered(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		for policy, want := range map[string]int{"noeviction": 0, "allkeys-lru": 1, "volatile-ttl": 1} {
			server := servers.Start(t, kind, servers.Options{Args: []string{"--maxmemory-policy", policy}})
			store := open(t, redisstore.Options{URL: server.URL()})
			got, err := store.Warnings(t.Context())
			if err != nil || len(got) != want || (want > 0 && !strings.Contains(got[0], policy)) {
				t.Errorf("%s: Warnings(maxmemory-policy %s) = %q, %v, want %d that name it", kind.Name, policy, got, err, want)
			}
		}
	}
}

// one is a charge of 1 on a bucket of 10 that hardly refills.
func one(t *testing.T) bucket.Charge {
	t.Helper()
	return bucket.Charge{Key: "one", Limits: limits(t, bucket.Limit{Tokens: 10, Per: 1000 * time.Hour}), Cost: 1}
}

func limits(t *testing.T, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatalf("NewLimits(%+v) = %v, want no error", list, err)
	}
	return ls
}

func take(t *testing.T, s *redisstore.Store, charges ...bucket.Charge) []bucket.Result {
	t.Helper()
	results := make([]bucket.Result, len(charges))
	if err := s.Take(t.Context(), charges, results); err != nil {
		t.Fatalf("Take(%+v) = %v, want no error", charges, err)
	}
	return results
}

// do has the server carry out a command of which the answer does not matter.
func do(t *testing.T, s *servers.Server, args ...any) {
	t.Helper()
	if err := client(t, s).Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v = %v, want no error", args, err)
	}
}

func causeOf(err error) string {
	var caused interface{ Cause() string }
	if errors.As(err, &caused) {
		return caused.Cause()
	}
	return ""
}
