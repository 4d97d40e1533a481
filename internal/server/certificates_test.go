package server_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/test/authority"
)

const envoy = "spiffe://cluster.local/ns/edge/sa/envoy"

// Only who shows what is wanted gets an answer, on both ports, and each who
// does not is counted by why.
func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	ours, others := authority.New(t), authority.New(t)
	c, _ := certificatesOf(t, authority.NewMount(t, ours.Issue(t, authority.Leaf{}), ours), "spiffe://cluster.local/ns/*/sa/envoy", "*.edge.example")
	p := servePorts(t, c)
	old := ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{envoy}}))
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for _, tt := range []struct {
		name   string
		client *tls.Config
		reason string // "" is let in
	}{
		{"the URI", ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{envoy}})), ""},
		{"the DNS name", ours.Client(ours.Issue(t, authority.Leaf{DNS: []string{"envoy-0.edge.example"}})), ""},
		{"one name of many", ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{"spiffe://x/y", envoy}})), ""},
		{"another name", ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{"spiffe://cluster.local/ns/edge/sa/other"}})), "name"},
		{"no name", ours.Client(ours.Issue(t, authority.Leaf{})), "name"},
		{"another authority", others.Client(others.Issue(t, authority.Leaf{URIs: []string{envoy}})), "certificate"},
		{"expired", ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{envoy}, NotAfter: time.Now().Add(-time.Hour)})), "certificate"},
		{"no certificate", ours.Client(), "no_certificate"},
		{"TLS 1.1", old, "version"},
		{"plain text", nil, "not_tls"},
	} {
		if tt.client != nil {
			tt.client.RootCAs = ours.Pool
		}
		err := p.call(t, tt.client)
		status, askErr := p.ask(t, tt.client)
		if tt.reason == "" {
			if err != nil || askErr != nil || status != http.StatusOK {
				t.Errorf("%s: Call = %v, GET = %d, %v, want answers", tt.name, err, status, askErr)
			}
			continue
		}
		if err == nil || askErr == nil && status == http.StatusOK {
			t.Errorf("%s: Call = %v, GET = %d, %v, want errors", tt.name, err, status, askErr)
		}
		p.wantsReasons(t, tt.name, tt.reason)
	}
}

// Whoever is believed anew is, and whoever is not any more is refused, without
// a restart.
func TestAuthoritiesChange(t *testing.T) {
	t.Parallel()
	was, is := authority.New(t), authority.New(t)
	pair := was.Issue(t, authority.Leaf{})
	s := authority.NewMount(t, pair, was)
	c, reloads := certificatesOf(t, s)
	p := servePorts(t, c)
	// They keep their tickets, and must not get in by one.
	before, after := was.Client(was.Issue(t, authority.Leaf{})), is.Client(is.Issue(t, authority.Leaf{}))
	before.ClientSessionCache, after.RootCAs = tls.NewLRUClientSessionCache(0), was.Pool
	if err := p.call(t, before); err != nil {
		t.Errorf("Call = %v, want an answer", err)
	}
	if err := p.call(t, after); err == nil {
		t.Error("Call(a client of an authority that is not believed yet) = nil, want an error")
	}
	s.Change(t, pair.CertPEM, pair.KeyPEM, is.PEM)
	if err := next(t, reloads); err != nil {
		t.Fatalf("Reloaded(%v), want nil", err)
	}
	if err := p.call(t, before); err == nil {
		t.Error("Call(a client of an authority that is believed no more) = nil, want an error")
	}
	if err := p.call(t, after); err != nil {
		t.Errorf("Call = %v, want an answer", err)
	}
	if status, err := p.ask(t, before); err == nil {
		t.Errorf("GET(a client of an authority that is believed no more) = %d, want an error", status)
	}
}

// Files that cannot be used change nothing, and are told of; good ones after
// them are used.
func TestBadFilesChangeNothing(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	first, second := ours.Issue(t, authority.Leaf{}), ours.Issue(t, authority.Leaf{})
	s := authority.NewMount(t, first, ours)
	c, reloads := certificatesOf(t, s)
	p := servePorts(t, c)
	for _, tt := range []struct {
		name          string
		cert, key, ca []byte
		want          string
	}{
		{"a key of another", second.CertPEM, first.KeyPEM, ours.PEM, "setting grpc-tls-key: found "},
		{"no certificate", second.KeyPEM, second.KeyPEM, ours.PEM, "setting grpc-tls-cert: found no certificate in " + s.Path("tls.crt")},
		{"half a certificate", second.CertPEM[:len(second.CertPEM)/2], second.KeyPEM, ours.PEM, "setting grpc-tls-cert"},
		{"an authority that is none", second.CertPEM, second.KeyPEM, second.KeyPEM, "setting grpc-tls-client-ca: found no certificate in "},
		{"no authority", second.CertPEM, second.KeyPEM, nil, "setting grpc-tls-client-ca: found an empty file in "},
	} {
		s.Change(t, tt.cert, tt.key, tt.ca)
		err := next(t, reloads)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: Reloaded(%v), want %q", tt.name, err, tt.want)
		}
		if got := c.Err(); got != err {
			t.Errorf("%s: Err() = %v, want %v", tt.name, got, err)
		}
		if got := shown(t, p.grpc, ours.Client(first)); got != string(first.TLS.Certificate[0]) {
			t.Errorf("%s: another certificate is shown, want the last good one", tt.name)
		}
	}
	s.Change(t, second.CertPEM, second.KeyPEM, ours.PEM)
	if err := next(t, reloads); err != nil || c.Err() != nil {
		t.Errorf("Reloaded(%v), Err() = %v, want nil", err, c.Err())
	}
	if got := shown(t, p.grpc, ours.Client(first)); got != string(second.TLS.Certificate[0]) {
		t.Error("the old certificate is shown, want the new one")
	}
}

// shown is the certificate that a port shows.
func shown(t *testing.T, addr string, client *tls.Config) string {
	t.Helper()
	client.NextProtos = []string{"h2"}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr, client)
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	defer conn.Close()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// No call fails while certificates are replaced, though each opens a
// connection.
func TestReloadCertificatesUnderLoad(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	s := authority.NewMount(t, ours.Issue(t, authority.Leaf{}), ours)
	c, reloads := certificatesOf(t, s)
	p := servePorts(t, c)
	client := ours.Client(ours.Issue(t, authority.Leaf{}))
	var calls atomic.Int64
	ctx, halt := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if err := p.call(t, client); err != nil {
					t.Errorf("Call = %v, want an answer", err)
				}
				calls.Add(1)
			}
		})
	}
	for range 3 {
		fresh := ours.Issue(t, authority.Leaf{})
		s.Change(t, fresh.CertPEM, fresh.KeyPEM, ours.PEM)
		if err := next(t, reloads); err != nil {
			t.Errorf("Reloaded(%v), want nil", err)
		}
	}
	halt()
	callers.Wait()
	if calls.Load() == 0 {
		t.Error("no call was made")
	}
}

// All that is wrong is told, each with its setting and its file.
func TestNewCertificatesFails(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	good, old := ours.Issue(t, authority.Leaf{}), ours.Issue(t, authority.Leaf{NotAfter: time.Now().Add(-time.Hour)})
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for _, tt := range []struct {
		o    server.CertificatesOptions
		want []string
	}{
		{server.CertificatesOptions{CertFile: missing, KeyFile: missing}, []string{
			"setting x-tls-cert: found nothing (no such file or directory) in " + missing + ", want a certificate in PEM",
			"setting x-tls-key: found nothing",
		}},
		{server.CertificatesOptions{CertFile: good.KeyFile, KeyFile: good.KeyFile, ClientCAFile: missing, ClientSANs: []string{"a b"}}, []string{
			"setting x-tls-cert: found no certificate in " + good.KeyFile,
			"setting x-tls-client-ca: found nothing",
			`setting x-tls-client-san: found "a b"`,
		}},
		{server.CertificatesOptions{CertFile: old.CertFile, KeyFile: old.KeyFile}, []string{"setting x-tls-cert: found a certificate that expired 2"}},
		{server.CertificatesOptions{CertFile: good.CertFile, KeyFile: old.KeyFile}, []string{"setting x-tls-key: found something else", "want the key of the certificate in " + good.CertFile}},
	} {
		tt.o.Setting = "x-tls"
		_, err := server.NewCertificates(tt.o)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("NewCertificates(%+v) = %v, want %q", tt.o, err, want)
			}
		}
	}
}

// The gRPC port speaks HTTP/2 alone, and says so.
func TestALPN(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	c, _ := certificatesOf(t, authority.NewMount(t, ours.Issue(t, authority.Leaf{}), ours))
	p := servePorts(t, c)
	client := ours.Client(ours.Issue(t, authority.Leaf{}))
	client.NextProtos = []string{"http/1.1", "h2"}
	conn, err := tls.Dial("tcp", p.grpc, client)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Errorf("protocol = %q, want h2", got)
	}
	if err := p.call(t, client); status.Code(err) != codes.OK {
		t.Errorf("Call = %v, want an answer", err)
	}
}

func TestSANMatches(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	for _, tt := range []struct {
		pattern string
		leaf    authority.Leaf
		want    bool
	}{
		{envoy, authority.Leaf{URIs: []string{envoy}}, true},
		{envoy, authority.Leaf{URIs: []string{envoy + "2"}}, false},
		{envoy, authority.Leaf{URIs: []string{"spiffe://cluster.local/ns/edge/sa/Envoy"}}, false},
		{"spiffe://cluster.local/ns/*/sa/*", authority.Leaf{URIs: []string{envoy}}, true},
		{"spiffe://cluster.local/*/envoy", authority.Leaf{URIs: []string{envoy}}, false},
		{"spiffe://cluster.local/**", authority.Leaf{URIs: []string{envoy}}, true},
		{"spiffe://cluster.local/ns/**/envoy", authority.Leaf{URIs: []string{envoy}}, true},
		{"spiffe://cluster*local/ns/edge/sa/envoy", authority.Leaf{URIs: []string{envoy}}, true},
		{"spiffe://cluster.local/ns/edge/sa/*", authority.Leaf{URIs: []string{"spiffe://cluster.local/ns/edge/sa/"}}, false},
		{"spiffe://clusterxlocal/ns/edge/sa/envoy", authority.Leaf{URIs: []string{envoy}}, false},
		{"a.example", authority.Leaf{DNS: []string{"A.Example"}}, true},
		{"*.example", authority.Leaf{DNS: []string{"a.example"}}, true},
		{"*.example", authority.Leaf{DNS: []string{"a.b.example"}}, false},
		{"**.example", authority.Leaf{DNS: []string{"a.b.example"}}, true},
		{"*.example", authority.Leaf{DNS: []string{".example"}}, false},
		{"*.example", authority.Leaf{DNS: []string{"a.example.evil"}}, false},
		{"*.example", authority.Leaf{URIs: []string{"a.example"}}, false},
		{"127.0.0.1", authority.Leaf{}, true},
		{"sluice.test", authority.Leaf{}, false}, // the subject's name is none
	} {
		s, err := server.ParseSAN(tt.pattern)
		if err != nil {
			t.Fatalf("ParseSAN(%q) = %v, want a pattern", tt.pattern, err)
		}
		if got := s.Matches(ours.Issue(t, tt.leaf).TLS.Leaf); got != tt.want {
			t.Errorf("ParseSAN(%q).Matches(%+v) = %v, want %v", tt.pattern, tt.leaf, got, tt.want)
		}
	}
}
