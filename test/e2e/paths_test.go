package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/test/stack"
)

const pathCount = 2000

// A rule means by a path what Envoy hands on. Paths are sent to Envoy, and
// what it says of them to an authorization service must be what NormalPath
// makes of them.
func TestPathsAreEnvoys(t *testing.T) {
	t.Parallel()
	envoy := need(t, stack.EnvoyPath)
	y := &system{setup: &setup{listen: []int{10000, 10001}}, ports: map[int]int{}}
	r := startRecorder(t)
	y.ports[recorderPort] = r.port
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	y.startEnvoy(ctx, t, envoy, filepath.Join("testdata", "paths_envoy.yaml"))
	targets := oddTargets()
	if len(targets) != pathCount {
		t.Fatalf("there are %d targets, want %d", len(targets), pathCount)
	}
	t.Run("group", func(t *testing.T) { // ends when both have
		for _, l := range pathListeners {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				found := comparePaths(t, r.asked(t, l.name, y.ports[l.port], targets), l.first)
				for i, d := range pathDifferences {
					if found[i] != l.differ[i] {
						t.Errorf("%d paths differ, want %d: %s", found[i], l.differ[i], d.why)
					}
				}
			})
		}
	})
}

var pathListeners = []struct {
	name   string
	port   int
	first  func(target string) string // what it does before all else
	differ []int                      // how many differ in each known way
}{
	{"escaped slashes kept", 10000, func(target string) string { return target }, []int{103, 41, 4}},
	{"escaped slashes unescaped", 10001, unescapeSlashes, []int{121, 46, 3}},
}

// unescapeSlashes is what Envoy does before all else where it is told to.
func unescapeSlashes(target string) string {
	path, query, found := strings.Cut(target, "?")
	path = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`).Replace(path)
	if found {
		return path + "?" + query
	}
	return path
}

// A pathSeen is a target and what Envoy made of its path.
type pathSeen struct{ target, path string }

// asked sends the targets to a port and returns those that came to be checked.
// The rest, which Envoy refuses, must be few.
func (r *recorder) asked(t *testing.T, key string, port int, targets []string) []pathSeen {
	t.Helper()
	c := &rawClient{port: port}
	defer c.close()
	var seen []pathSeen
	refused := map[int]int{}
	for _, target := range targets {
		status, err := c.get(target, key)
		if err != nil {
			t.Fatalf("GET %q: %v", target, err)
		}
		got, _ := r.take(key)
		if (got != nil) != (status == http.StatusNoContent) {
			t.Errorf("GET %q: %d, and it was checked: %v", target, status, got != nil)
		}
		if got == nil {
			refused[status]++
			continue
		}
		seen = append(seen, pathSeen{target, got.path})
	}
	for status, n := range refused {
		if status < 400 || status > 499 {
			t.Errorf("Envoy refused %d targets with %d, want a fault of the client", n, status)
		}
	}
	if n := len(targets) - len(seen); n > len(targets)/10 || n == 0 {
		t.Errorf("Envoy refused %d of %d targets (by status: %v), want some, and at most a tenth", n, len(targets), refused)
	}
	return seen
}

// A rawClient sends targets as they are, over one connection while it lasts.
type rawClient struct {
	port   int
	conn   net.Conn
	reader *bufio.Reader
}

func (c *rawClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// get sends a target and returns the status. A connection that Envoy closed
// after the last answer is made anew.
func (c *rawClient) get(target, key string) (int, error) {
	fresh := c.conn == nil
	status, err := c.try(target, key)
	if err != nil && !fresh && hangsUp(err) {
		c.close()
		return c.try(target, key)
	}
	return status, err
}

func hangsUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

func (c *rawClient) try(target, key string) (int, error) {
	if c.conn == nil {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(anna)}, Timeout: patience}
		conn, err := d.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err != nil {
			return 0, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: sluice.test\r\nX-Case: %s\r\n\r\n", target, key); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.Close {
		c.close()
	}
	return resp.StatusCode, err
}

// A comparedPath is one whose two readings may differ.
type comparedPath struct {
	target string // as Envoy begins with it
	envoys string // what Envoy made of it, with escapes in upper case
	ours   string // NormalPath of the target
	again  string // NormalPath of what Envoy made
}

// A pathDifference is a known one between a target's NormalPath and what Envoy
// makes of the target.
type pathDifference struct {
	why string
	is  func(p comparedPath) bool
}

var pathDifferences = []pathDifference{
	{
		why: "of nothing but slashes Envoy leaves two, which no rule should have to know",
		is:  func(p comparedPath) bool { return p.envoys == "//" && p.ours == "/" && p.again == p.ours },
	},
	{
		why: "a dot segment with parameters that Envoy finds when it reads its own path again: an escape or a backslash hid it",
		is:  func(p comparedPath) bool { return dotted.MatchString(p.envoys) && p.again == p.ours },
	},
	{
		why: "the same, and Envoy took it for a name when dots or doubled slashes beside it counted segments",
		is:  func(p comparedPath) bool { return hidden.MatchString(p.target) && p.again != p.ours },
	},
}

var (
	escaped = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	dotted  = regexp.MustCompile(`/\.\.?;`)
	hidden  = regexp.MustCompile(`(?i)[/\\](%2e|\.%2e|%2e\.|%2e%2e);|\\\.\.?;`)
)

// comparePaths wants of each target that Envoy's path and the target are one
// path here, and that this is Envoy's, but for known differences. It returns
// how many there are of each.
func comparePaths(t *testing.T, seen []pathSeen, first func(string) string) (found []int) {
	t.Helper()
	found = make([]int, len(pathDifferences))
	for _, s := range seen {
		path, _, _ := strings.Cut(s.path, "?")
		p := comparedPath{first(s.target), escaped.ReplaceAllStringFunc(path, strings.ToUpper), "", policy.NormalPath(s.path)}
		p.ours = policy.NormalPath(p.target)
		if p.again != p.envoys && p.envoys != "//" && !dotted.MatchString(p.envoys) {
			t.Errorf("NormalPath(%q) = %q, want it as Envoy made it", s.path, p.again)
		}
		if p.envoys == p.ours {
			continue
		}
		i := slices.IndexFunc(pathDifferences, func(d pathDifference) bool { return d.is(p) })
		if i < 0 {
			t.Errorf("NormalPath(%q) = %q; Envoy's path is %q, and NormalPath of that is %q: want them the same", p.target, p.ours, p.envoys, p.again)
			continue
		}
		found[i]++
	}
	return found
}
