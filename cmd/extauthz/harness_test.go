package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// patience bounds every wait for an event.
const patience = 30 * time.Second

// A journal is a log whose lines can be waited for.
type journal struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // is closed at the next write
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// Write adds to the log.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
	return j.text.Write(p)
}

func (j *journal) read() (string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String(), j.changed
}

// lines returns the whole lines that hold part.
func (j *journal) lines(part string) []string {
	text, _ := j.read()
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// await waits until count lines hold part, and returns the last of them.
func (j *journal) await(t *testing.T, part string, count int) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		_, changed := j.read()
		if found := j.lines(part); len(found) >= count {
			return found[count-1]
		}
		select {
		case <-changed:
		case <-deadline:
			text, _ := j.read()
			t.Fatalf("no %d lines with %q in the log after %v:\n%s", count, part, patience, text)
		}
	}
}

// A process is extauthz serve, run within the test.
type process struct {
	log               *journal
	grpc, http, admin string
	conn              *grpc.ClientConn
	scrape            *http.Client       // asks the admin port by TLS; nil asks in plain text
	tell              context.CancelFunc // it to end
	code              chan int
}

// start runs serve with args and waits until it is ready.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{log: newJournal(), code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	p.tell = cancel
	args = append([]string{"serve", "--log-format", "json", "--grpc-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, args...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.code <- run(ctx, args, nil, io.Discard, p.log)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	p.connect(t)
	return p
}

func (p *process) connect(t *testing.T) {
	t.Helper()
	var ready struct{ GRPC, HTTP, Admin string }
	if err := json.Unmarshal([]byte(p.log.await(t, `"msg":"ready"`, 1)), &ready); err != nil {
		t.Fatal(err)
	}
	p.grpc, p.http, p.admin = ready.GRPC, ready.HTTP, ready.Admin
	p.conn = dial(t, p.grpc)
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case code := <-p.code:
		return code
	case <-time.After(patience):
		t.Fatalf("serve has not ended after %v", patience)
		return -1
	}
}

// get returns what the admin port answers.
func (p *process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	url, c := "http://"+p.admin+path, http.DefaultClient
	if p.scrape != nil {
		url, c = "https://"+p.admin+path, p.scrape
	}
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// metric returns the value of the series that begins with name, "" for none.
func (p *process) metric(t *testing.T, name string) string {
	t.Helper()
	_, body := p.get(t, "/metrics")
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// eventually waits until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// check asks ext_authz about a request, and returns the status that its client
// would get.
func check(t *testing.T, conn *grpc.ClientConn, path string) int {
	t.Helper()
	status, err := tryCheck(t.Context(), conn, path)
	if err != nil {
		t.Fatalf("Check(%s) = %v, want an answer", path, err)
	}
	return status
}

func tryCheck(ctx context.Context, conn *grpc.ClientConn, path string) (int, error) {
	peer := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "203.0.113.7"}}}
	resp, err := authv3.NewAuthorizationClient(conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: peer},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: path, Host: "example.com"}},
	}})
	if err != nil {
		return 0, err
	}
	if denied := resp.GetDeniedResponse(); denied != nil {
		return int(denied.GetStatus().GetCode()), nil
	}
	return http.StatusOK, nil
}

// allowance returns how many of n requests for path are let through.
func allowance(t *testing.T, p *process, path string, n int) int {
	t.Helper()
	allowed := 0
	for range n {
		if check(t, p.conn, path) == http.StatusOK {
			allowed++
		}
	}
	return allowed
}

// shouldRateLimit asks the rate limit service about one descriptor.
func shouldRateLimit(t *testing.T, p *process, key, value string) rlsv3.RateLimitResponse_Code {
	t.Helper()
	resp, err := rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
		Domain:      "edge",
		Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}}},
	})
	if err != nil {
		t.Fatalf("ShouldRateLimit(%s=%s) = %v, want an answer", key, value, err)
	}
	return resp.GetOverallCode()
}

// limited is a policy with n requests an hour, on both doors.
func limited(n int) string { return policyText(n, "local") }

func policyText(n int, onError string) string {
	return fmt.Sprintf(`domain: edge
on_error: %s
rules:
  - name: api
    match: {path: /api/*}
    per: [ip]
    limits: [{rate: %d/1h}]
  - name: login
    descriptor: [generic_key=login]
    limits: [{rate: %d/1h}]
`, onError, n, n)
}

const badPolicy = `domain: edge
rules:
  - name: api
    match: {path: /api/*}
    limits: [{rate: 5/1q}]
    colour: red
`

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, path, text)
	return path
}
