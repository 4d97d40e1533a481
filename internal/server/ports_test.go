package server_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/test/authority"
)

// certificatesOf reads what s holds, and again as it changes; each reading is told to
// the channel.
func certificatesOf(t *testing.T, s *authority.Mount, sans ...string) (*server.Certificates, <-chan error) {
	t.Helper()
	reloads := make(chan error, 16)
	c, err := server.NewCertificates(server.CertificatesOptions{
		Setting: "grpc-tls", CertFile: s.Path("tls.crt"), KeyFile: s.Path("tls.key"), ClientCAFile: s.Path("ca.crt"),
		ClientSANs: sans, Protocols: []string{"h2", "http/1.1"}, Reloaded: func(err error) { reloads <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, reloads
}

func next(t *testing.T, reloads <-chan error) error {
	t.Helper()
	select {
	case err := <-reloads:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the files were not read again within 20s")
		return nil
	}
}

// A ports is one gRPC port and one for HTTP, by the same certificates.
type ports struct {
	grpc, http string

	mu      sync.Mutex
	refused []string
}

func servePorts(t *testing.T, c *server.Certificates) *ports {
	t.Helper()
	p := &ports{}
	refused := func(reason string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refused = append(p.refused, reason)
	}
	r := run(t, server.Options{
		Services: []server.Service{echo(func(context.Context) error { return nil })}, TLS: c.Config(), Refused: refused,
	})
	p.grpc = r.addr.String()
	url, _ := serveHTTP(t, server.HTTPOptions{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), TLS: c.Config(), Refused: refused, DrainTime: time.Second,
	})
	p.http = strings.TrimPrefix(url, "http://")
	return p
}

// call asks the gRPC port on a connection of its own; nil is in plain text.
func (p *ports) call(t *testing.T, client *tls.Config) error {
	t.Helper()
	creds := insecure.NewCredentials()
	if client != nil {
		creds = credentials.NewTLS(client)
	}
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return conn.Invoke(ctx, "/test.Echo/Call", new(emptypb.Empty), new(emptypb.Empty))
}

// ask asks the HTTP port on a connection of its own; nil is in plain text.
func (p *ports) ask(t *testing.T, client *tls.Config) (int, error) {
	t.Helper()
	scheme := "http://"
	if client != nil {
		scheme = "https://"
	}
	transport := &http.Transport{TLSClientConfig: client}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, Timeout: 20 * time.Second}
	resp, err := c.Get(scheme + p.http)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// wantsReasons wants the reasons of both ports, in any order, and forgets them.
func (p *ports) wantsReasons(t *testing.T, name, want string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		p.mu.Lock()
		got := p.refused
		if len(got) >= 2 {
			p.refused = nil
		}
		p.mu.Unlock()
		if len(got) >= 2 {
			for _, reason := range got {
				if reason != want {
					t.Errorf("%s: refused for %q, want %q", name, got, want)
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: refused for %q after 20s, want %q of both ports", name, got, want)
		}
		time.Sleep(time.Millisecond)
	}
}
