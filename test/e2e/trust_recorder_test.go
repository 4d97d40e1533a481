package e2e_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// A recorder allows everything, and keeps what Envoy said. It is safe for
// concurrent use.
type recorder struct {
	authv3.UnimplementedAuthorizationServer
	rlsv3.UnimplementedRateLimitServiceServer
	port int

	mu     sync.Mutex
	checks map[string]*check
	remote map[string]string
}

// A check is what ext_authz sent of one request.
type check struct {
	source  string            // the address, or pipe and its path
	path    string            // as it is in the message
	headers map[string]string // as they are in the message
	lines   []string          // of header_map, each a name, a colon and a value
	stamp   string            // the metadata x-client-ip
}

// startRecorder starts one that ends with the test.
func startRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{port: l.Addr().(*net.TCPAddr).Port, checks: map[string]*check{}, remote: map[string]string{}}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, r)
	rlsv3.RegisterRateLimitServiceServer(s, r)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return r
}

// Check keeps a request of ext_authz under its context extension "case", or
// else its header x-case.
func (r *recorder) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	a := req.GetAttributes()
	http := a.GetRequest().GetHttp()
	c := &check{source: addressText(a.GetSource().GetAddress()), path: http.GetPath(), headers: http.GetHeaders()}
	for _, line := range http.GetHeaderMap().GetHeaders() {
		c.lines = append(c.lines, line.GetKey()+": "+string(line.GetRawValue()))
	}
	md, _ := metadata.FromIncomingContext(ctx)
	c.stamp = strings.Join(md.Get("x-client-ip"), " and ")
	key := a.GetContextExtensions()["case"]
	if key == "" {
		key = c.headers["x-case"]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks[key] = c
	return &authv3.CheckResponse{}, nil
}

func addressText(a *corev3.Address) string {
	if p := a.GetPipe(); p != nil {
		return "pipe " + p.GetPath()
	}
	return a.GetSocketAddress().GetAddress()
}

// ShouldRateLimit keeps the values of a request of RLS under its domain.
func (r *recorder) ShouldRateLimit(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	var values []string
	for _, d := range req.GetDescriptors() {
		for _, e := range d.GetEntries() {
			values = append(values, e.GetValue())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remote[req.GetDomain()] = strings.Join(values, " ")
	return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}, nil
}

// take returns what was kept under key since it was last taken: a check, nil
// for none, and the values of descriptors.
func (r *recorder) take(key string) (c *check, remote string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, remote = r.checks[key], r.remote[key]
	delete(r.checks, key)
	delete(r.remote, key)
	return c, remote
}
