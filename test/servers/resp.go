package servers

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/resp"
)

// Do has the server carry out a command, and returns the answer as text: a
// list has its items on lines of their own. It ends the test on an error.
func (s *Server) Do(t testing.TB, args ...string) string {
	t.Helper()
	text, err := s.Try(args...)
	if err != nil {
		t.Fatalf("%s: %s = %v, want no error", s.kind.Name, strings.Join(args, " "), err)
	}
	return text
}

// Try is Do, but returns what the server says is wrong.
func (s *Server) Try(args ...string) (string, error) {
	dialed, err := s.dial()
	if err != nil {
		return "", err
	}
	conn := resp.New(dialed)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if s.options.Password != "" {
		if _, err := conn.Do("AUTH", s.options.Password); err != nil {
			return "", err
		}
	}
	return conn.Do(args...)
}

// Await repeats a command until want holds of its answer, and returns that.
func (s *Server) Await(t testing.TB, want func(answer string) bool, args ...string) string {
	t.Helper()
	var text string
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, err = s.Try(args...); err == nil && want(text) {
			return text
		}
	}
	t.Fatalf("%s: %s = %q, %v for 30s, want another answer", s.kind.Name, strings.Join(args, " "), text, err)
	return ""
}

func (s *Server) dial() (net.Conn, error) {
	network := "tcp"
	if s.options.Socket {
		network = "unix"
	}
	d := &net.Dialer{Timeout: time.Second}
	if c := s.options.Certificates; c != nil {
		return tls.DialWithDialer(d, network, s.Addr, c.Client())
	}
	return d.Dial(network, s.Addr)
}
