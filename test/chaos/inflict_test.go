package chaos_test

import (
	"net"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
)

// onDisk keeps every write.
var onDisk = servers.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}}

// slow takes 8 ms for each key that it loads, and answers after each of stuff's.
var slow = servers.Options{Args: []string{"--key-load-delay", "8000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"}}

func kill(_ *testing.T, s *system) { s.server.Kill() }

// follow has the server follow one that takes connections and says nothing.
func follow(t *testing.T, s *system) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s.do(t, "REPLICAOF", "127.0.0.1", port)
}

func restart(t *testing.T, s *system) { s.server.Restart(t) }

// stuff has the server save what it is long at reading.
func stuff(t *testing.T, s *system) {
	s.do(t, "EVAL", "for i = 1, 10000 do redis.call('SET', 'filler:' .. i, string.rep('x', 1100)) end return 1", "0")
	s.do(t, "SAVE")
}

func reload(t *testing.T, s *system) {
	kill(t, s)
	s.says(t, "the store is away")
	s.server.Launch(t)
}

func hasten(t *testing.T, s *system) {
	s.server.Await(t, func(answer string) bool { return answer == "OK" }, "CONFIG", "SET", "key-load-delay", "0")
	s.server.Await(t, func(answer string) bool { return answer == "PONG" }, "PING")
}

func often(args ...any) func(*testing.T, *system) {
	return func(t *testing.T, s *system) {
		for range 20 {
			s.do(t, args...)
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// hangUp ends every connection, with calls under way: those are held back for
// a moment before.
func hangUp(t *testing.T, s *system) {
	for range 20 {
		s.do(t, "CLIENT", "PAUSE", "1000", "WRITE")
		time.Sleep(5 * time.Millisecond)
		s.do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		s.do(t, "CLIENT", "UNPAUSE")
		time.Sleep(5 * time.Millisecond)
	}
}
