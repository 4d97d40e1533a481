package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-mesh/sluice/test/authority"
	"github.com/sluice-mesh/sluice/test/stack"
)

var (
	sluiceLeaf = authority.Leaf{DNS: []string{"sluice.edge.svc"}}
	envoyLeaf  = authority.Leaf{URIs: []string{"spiffe://cluster.local/ns/edge/sa/envoy"}}
)

// mutual is mtls.yaml and what it says to start extauthz with, where the two
// have their files.
func mutual(t *testing.T, sluice, envoy *authority.Mount) setup {
	t.Helper()
	root := must(t)(stack.Root())
	dir := t.TempDir()
	for _, name := range []string{"mtls-certificate.yaml", "mtls-authority.yaml"} {
		text := readFile(t, filepath.Join(root, "envoy", name))
		writeFile(t, filepath.Join(dir, name), strings.ReplaceAll(text, "/etc/envoy/tls", envoy.Dir))
	}
	s := edge("mtls.yaml")
	s.edit = func(text string) string {
		// A handshake takes its time on a machine that is busy with other things.
		text = strings.ReplaceAll(text, "connect_timeout: 0.25s", fmt.Sprintf("connect_timeout: %ds", int(patience.Seconds())))
		return strings.ReplaceAll(text, "/etc/envoy/mtls-", dir+"/mtls-")
	}
	for _, flag := range tlsFlag.FindAllString(readFile(t, filepath.Join(root, s.config)), -1) {
		s.args = append(s.args, strings.Fields(strings.ReplaceAll(flag, "/etc/sluice/tls", sluice.Dir))...)
	}
	return s
}

var tlsFlag = regexp.MustCompile(`--grpc-tls-\S+ \S+`)

// Envoy and Sluice know each other by name, and nobody else is let in: not a
// client of Envoy's authority with another name, and no other Sluice.
func TestMTLS(t *testing.T) {
	t.Parallel()
	ours, others := authority.New(t), authority.New(t)
	for name, tt := range map[string]struct {
		sluice, envoy *authority.Mount
		refused       string // why Sluice refuses Envoy, or Envoy Sluice; "" is asked
	}{
		"as published": {authority.NewMount(t, ours.Issue(t, sluiceLeaf), ours), authority.NewMount(t, ours.Issue(t, envoyLeaf), ours), ""},
		"two authorities": {
			authority.NewMount(t, ours.Issue(t, sluiceLeaf), others), authority.NewMount(t, others.Issue(t, envoyLeaf), ours), "",
		},
		"an Envoy of another name":  {authority.NewMount(t, ours.Issue(t, sluiceLeaf), ours), authority.NewMount(t, ours.Issue(t, sluiceLeaf), ours), "name"},
		"an Envoy of others":        {authority.NewMount(t, ours.Issue(t, sluiceLeaf), ours), authority.NewMount(t, others.Issue(t, envoyLeaf), ours), "certificate"},
		"a Sluice of another name":  {authority.NewMount(t, ours.Issue(t, authority.Leaf{}), ours), authority.NewMount(t, ours.Issue(t, envoyLeaf), ours), "client"},
		"a Sluice of another world": {authority.NewMount(t, others.Issue(t, sluiceLeaf), ours), authority.NewMount(t, ours.Issue(t, envoyLeaf), ours), "client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := start(t, mutual(t, tt.sluice, tt.envoy))
			c := y.from(anna, edgePort)
			if tt.refused == "" {
				c.admits(t, 5, http.MethodGet, "/hello")
				return
			}
			for range 7 {
				if got := c.one(t, http.MethodGet, "/hello"); got.status != http.StatusOK {
					t.Errorf("GET /hello: %d, want %d, since nobody could be asked", got.status, http.StatusOK)
				}
			}
			if got := y.upstream.Unasked(); got != 7 {
				t.Errorf("the upstream was told of %d requests that nobody decided about, want 7", got)
			}
			reason := `sluice_tls_handshake_failures_total{port="grpc",reason="` + tt.refused + `"}`
			eventually(t, reason, func() bool { return strings.Contains(scrape(t, y.sluices[0].Admin), reason) })
		})
	}
}

// All certificates and both authorities are replaced while requests run, as an
// operator would: first both are believed, then the new certificates are
// shown, then the old authority is dropped.
func TestMTLSRotates(t *testing.T) {
	t.Parallel()
	was, is := authority.New(t), authority.New(t)
	both := append(append([]byte(nil), was.PEM...), is.PEM...)
	oldSluice, oldEnvoy := was.Issue(t, sluiceLeaf), was.Issue(t, envoyLeaf)
	sluice, envoy := authority.NewMount(t, oldSluice, was), authority.NewMount(t, oldEnvoy, was)
	envoy.Change(t, oldEnvoy.CertPEM, oldEnvoy.KeyPEM, both)
	s := mutual(t, sluice, envoy)
	s.args = append(s.args, "--max-connection-age", "1s") // so that there are handshakes all the time
	var w way
	s.via = w.to
	y := start(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var asked atomic.Int64
	failed := make(chan error, 1)
	c := y.from(anna, edgePort)
	go func() { failed <- c.keepAsking(ctx, &asked) }()
	loaded := func(n int) {
		t.Helper()
		eventually(t, "Sluice has read its files", func() bool {
			return strings.Count(y.sluices[0].Output.String(), "certificates loaded") >= n
		})
	}
	sluice.Change(t, oldSluice.CertPEM, oldSluice.KeyPEM, both)
	loaded(1)
	w.more(t, failed)
	newSluice, newEnvoy := is.Issue(t, sluiceLeaf), is.Issue(t, envoyLeaf)
	sluice.Change(t, newSluice.CertPEM, newSluice.KeyPEM, both)
	loaded(2)
	w.more(t, failed)
	envoy.Change(t, newEnvoy.CertPEM, newEnvoy.KeyPEM, is.PEM)
	w.more(t, failed)
	stop()
	if err := <-failed; err != nil {
		t.Error(err)
	}
	if got := y.upstream.Unasked(); got != 0 {
		t.Errorf("%d of %d requests passed unasked while certificates were replaced, want none", got, asked.Load())
	}
	// Envoy does not tell when it has read its files: so the last step may
	// come too soon for it, and is mended by itself.
	sluice.Change(t, newSluice.CertPEM, newSluice.KeyPEM, is.PEM)
	loaded(3)
	eventually(t, "Envoy asks with its new certificate", func() bool {
		return c.one(t, http.MethodGet, "/hello").header.Get("X-RateLimit-Limit") != ""
	})
}

// A way is what Envoy connects to in Sluice's place. It counts.
type way struct {
	opened atomic.Int64
	conns  sync.WaitGroup
}

// to passes on all connections to port, until the test ends.
func (w *way) to(t *testing.T, port int) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.opened.Add(1)
			w.conns.Go(func() { pass(conn, fmt.Sprintf("127.0.0.1:%d", port)) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.conns.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// pass passes on what one side says to the other, until both have ended.
func pass(conn net.Conn, addr string) {
	defer conn.Close()
	other, err := net.Dial("tcp4", addr)
	if err != nil {
		return
	}
	defer other.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(conn, other) // its end is the end of the connection
		conn.Close()
	}()
	_, _ = io.Copy(other, conn)
	other.Close()
	<-back
}

// more waits until Envoy has opened two more connections: the first may have
// been under way. Who asks must not have failed.
func (w *way) more(t *testing.T, failed <-chan error) {
	t.Helper()
	before := w.opened.Load()
	eventually(t, "Envoy opens more connections", func() bool {
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
		return w.opened.Load() >= before+2
	})
}
