package servers_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
)

func TestStart(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		for _, c := range []struct {
			name    string
			options servers.Options
			scheme  string
		}{
			{"port", servers.Options{}, "redis://127.0.0.1:"},
			{"password", servers.Options{Password: "secret"}, "redis://:secret@127.0.0.1:"},
			{"socket", servers.Options{Socket: true}, "unix:///"},
		} {
			t.Run(kind.Name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				s := servers.Start(t, kind, c.options)
				if !strings.HasPrefix(s.URL(), c.scheme) {
					t.Errorf("URL() = %q, want it to begin with %q", s.URL(), c.scheme)
				}
				s.Stop()
				if got := ask(s, "PING"); got != "" {
					t.Errorf("PING after Stop = %q, want no answer", got)
				}
				s.Restart(t)
				if got := ask(s, "PING"); got != "+PONG\r\n" && !strings.HasPrefix(got, "-NOAUTH ") {
					t.Errorf("PING after Restart = %q, want an answer", got)
				}
			})
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := servers.Start(t, servers.Redis, servers.Options{Args: []string{"--maxmemory", "7mb"}})
	s.Pause(t)
	if got := ask(s, "PING"); got != "" {
		t.Errorf("PING while paused = %q, want no answer", got)
	}
	s.Resume(t)
	if got := ask(s, "PING"); got != "+PONG\r\n" {
		t.Errorf("PING after Resume = %q, want +PONG", got)
	}
}

func TestEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var s *servers.Server
	t.Run("test", func(t *testing.T) { s = servers.Start(t, servers.Redis, servers.Options{Socket: true}) })
	if s == nil {
		t.Skip("no server to be had")
	}
	if got := ask(s, "PING"); got != "" {
		t.Errorf("PING after the test = %q, want no answer", got)
	}
	if _, err := os.Stat(filepath.Dir(s.Addr)); !os.IsNotExist(err) {
		t.Errorf("Stat(folder of the server) = %v, want that it is gone", err)
	}
}

// TestMissing starts a server that is nowhere: a developer's test is skipped,
// in CI it fails.
func TestMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"PATH", "REDIS_SERVER", "CI"} {
		t.Setenv(name, "")
	}
	if got := startOf(t); got != "skip" {
		t.Errorf("Start(no binary) = %s, want skip", got)
	}
	t.Setenv("CI", "true")
	if got := startOf(t); got != "fatal" {
		t.Errorf("Start(no binary, in CI) = %s, want fatal", got)
	}
}

// startOf says how a test ends that starts Redis.
func startOf(t *testing.T) string {
	r := &recorder{TB: t, ended: "start"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		servers.Start(r, servers.Redis, servers.Options{})
	}()
	<-done
	return r.ended
}

// A recorder is a test of which the end is recorded.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Skip(...any)  { r.end("skip") }
func (r *recorder) Fatal(...any) { r.end("fatal") }

func (r *recorder) end(how string) {
	r.ended = how
	runtime.Goexit()
}

// ask returns the first line of the answer, "" if there is none soon.
func ask(s *servers.Server, command string) string {
	network := "tcp"
	if strings.HasPrefix(s.URL(), "unix:") {
		network = "unix"
	}
	conn, err := net.Dial(network, s.Addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte(command + "\r\n"))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}
