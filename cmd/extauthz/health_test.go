package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/test/servers"
)

func TestHealthOfServe(t *testing.T) {
	t.Parallel()
	socket := "unix:" + filepath.Join(t.TempDir(), "s")
	p := start(t, "--policy", policyFile(t, limited(2)))
	atSocket := start(t, "--policy", policyFile(t, limited(2)), "--grpc-addr", socket)
	_, port, _ := net.SplitHostPort(p.grpc)
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		want    string
	}{
		{"by flag", []string{"--addr", p.grpc}, nil, p.grpc},
		{"by the variable of serve", nil, []string{"SLUICE_GRPC_ADDR=" + p.grpc}, p.grpc},
		{"where serve listens everywhere", nil, []string{"SLUICE_GRPC_ADDR=:" + port}, ":" + port},
		{"and so in IPv6", nil, []string{"SLUICE_GRPC_ADDR=[::]:" + port}, "[::]:" + port},
		{"at a socket", []string{"--addr", socket}, nil, socket},
		{"a service", []string{"--addr", p.grpc, "--service", "envoy.service.auth.v3.Authorization"}, nil, p.grpc},
	} {
		code, stdout, stderr := ran(append([]string{"health"}, tt.args...), tt.environ)
		if want := tt.want + ": SERVING\n"; code != exitOK || stdout != want || stderr != "" {
			t.Errorf("%s: run(health %q) = %d, %q, %q, want 0 and %q", tt.name, tt.args, code, stdout, stderr, want)
		}
	}
	for _, ends := range []*process{p, atSocket} {
		ends.tell()
		ends.exit(t)
	}
	if code, stdout, stderr := ran([]string{"health", "--addr", p.grpc}, nil); code != exitFailed || stdout != "" || !strings.Contains(stderr, "does not answer") {
		t.Errorf("after serve has ended run(health) = %d, %q, %q, want 1 and that it does not answer", code, stdout, stderr)
	}
}

// serveHealth serves gRPC health that says status.
func serveHealth(t *testing.T, status healthv1.HealthCheckResponse_ServingStatus, opts ...grpc.ServerOption) (string, *health.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, h := grpc.NewServer(opts...), health.NewServer()
	h.SetServingStatus("", status)
	healthv1.RegisterHealthServer(s, h)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Errorf("Serve() = %v, want no error", err)
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(s.Stop)
	return l.Addr().String(), h
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	draining, _ := serveHealth(t, healthv1.HealthCheckResponse_NOT_SERVING)
	admin := start(t, "--policy", policyFile(t, limited(2))).admin
	for _, tt := range []struct {
		args   []string
		status string
		want   string
	}{
		{[]string{"--addr", draining}, "NOT_SERVING", "says NOT_SERVING"},
		{[]string{"--addr", draining, "--service", "none"}, "UNKNOWN", "has no service none"},
		{[]string{"--addr", draining, "--wait", "250ms"}, "NOT_SERVING", "says NOT_SERVING"},
		{[]string{"--addr", admin}, "UNKNOWN", "is this the gRPC address"},
		{[]string{"--addr", draining, "--tls"}, "UNKNOWN", "does not answer"},
	} {
		code, stdout, stderr := ran(append([]string{"health"}, tt.args...), nil)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("run(health %q) = %d, %q, %q, want 1 and %q", tt.args, code, stdout, stderr, tt.want)
		}
		code, stdout, stderr = ran(append([]string{"health", "--json"}, tt.args...), nil)
		var got healthReport
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFailed || stderr != "" ||
			got.OK || got.Addr != tt.args[1] || got.Status != tt.status || !strings.Contains(got.Error, tt.want) {
			t.Errorf("run(health --json %q) = %d, %q, %q, want 1, %s and %q", tt.args, code, stdout, stderr, tt.status, tt.want)
		}
	}
}

func TestHealthWaits(t *testing.T) {
	t.Parallel()
	addr, server := serveHealth(t, healthv1.HealthCheckResponse_NOT_SERVING)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if code, stdout, stderr := ran([]string{"health", "--addr", addr, "--wait", patience.String()}, nil); code != exitOK {
			t.Errorf("run(health --wait) = %d, %q, %q, want 0 once it serves", code, stdout, stderr)
		}
	}()
	server.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	<-done
}

func TestHealthOverTLS(t *testing.T) {
	t.Parallel()
	files := servers.NewCertificates(t)
	creds, err := credentials.NewServerTLSFromFile(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serveHealth(t, healthv1.HealthCheckResponse_SERVING, grpc.Creds(creds))
	for _, tt := range []struct {
		args []string
		code int
		want string // in what is said
	}{
		{[]string{"--tls-ca", files.CAFile}, exitOK, "SERVING"},
		{[]string{"--tls-ca", files.CAFile, "--tls-cert", files.CertFile, "--tls-key", files.KeyFile}, exitOK, "SERVING"},
		{[]string{"--tls-ca", files.CAFile, "--tls-server-name", "somebody.else"}, exitFailed, "somebody.else"},
		{[]string{"--tls"}, exitFailed, "unknown authority"},
		{nil, exitFailed, "does not answer"},
		{[]string{"--tls-ca", "/none"}, exitUsage, "tls-ca: open /none"},
		{[]string{"--tls-ca", files.KeyFile}, exitUsage, "tls-ca: found no certificate in " + files.KeyFile},
		{[]string{"--tls-cert", files.CertFile}, exitUsage, "want both or none"},
		{[]string{"--tls-cert", files.CertFile, "--tls-key", files.CertFile}, exitUsage, "tls-cert, tls-key: "},
	} {
		args := append([]string{"health", "--addr", addr}, tt.args...)
		code, stdout, stderr := ran(args, nil)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("run(%q) = %d, %q, %q, want %d and %q", args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

func TestHealthReport(t *testing.T) {
	t.Parallel()
	addr, _ := serveHealth(t, healthv1.HealthCheckResponse_SERVING)
	code, stdout, _ := ran([]string{"health", "--addr", addr, "--json"}, nil)
	var got map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("run(health --json) = %d, %q, want 0 and JSON", code, stdout)
	}
	want := map[string]any{"ok": true, "addr": addr, "service": "", "status": "SERVING"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run(health --json) differs (-want +got):\n%s", diff)
	}
}
