package servers

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
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
	conn, err := s.dial()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	r := bufio.NewReader(conn)
	if s.options.Password != "" {
		if _, err := exchange(conn, r, "AUTH", s.options.Password); err != nil {
			return "", err
		}
	}
	return exchange(conn, r, args...)
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

func exchange(w io.Writer, r *bufio.Reader, args ...string) (string, error) {
	ask := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		ask += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, ask); err != nil {
		return "", err
	}
	return answer(r)
}

func answer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, line := line[0], strings.TrimRight(line[1:], "\r\n")
	n, _ := strconv.Atoi(line)
	switch {
	case kind == '-':
		return "", errors.New(line)
	case kind == '$' && n >= 0:
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	case kind == '*':
		return list(r, n)
	default:
		return line, nil
	}
}

func list(r *bufio.Reader, n int) (string, error) {
	items := make([]string, max(n, 0))
	for i := range items {
		var err error
		if items[i], err = answer(r); err != nil {
			return "", err
		}
	}
	return strings.Join(items, "\n"), nil
}
