package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/sluice-mesh/sluice/test/stack"
)

const (
	firstTrustPort = 10000 // of the first setup; the next has the next
	recorderPort   = 9100
)

// trusting is an Envoy with a listener for each of its setups, and what it
// asks.
type trusting struct {
	*system
	recorder *recorder
	pipes    string              // the folder of the Unix sockets
	reserved map[int]*stack.Port // what each setup listens on
}

// startTrusting starts it, and ends it with the test.
func startTrusting(t *testing.T, setups []trustSetup) *trusting {
	t.Helper()
	envoy := need(t, stack.EnvoyPath)
	y := &trusting{
		system:   &system{setup: &setup{store: "memory", sluices: []int{sluicePort}}, ports: map[int]int{}, policyFile: t.TempDir()},
		recorder: startRecorder(t), pipes: shortDir(t), reserved: map[int]*stack.Port{},
	}
	for i, s := range setups {
		writeFile(t, filepath.Join(y.policyFile, fmt.Sprintf("%02d.yaml", i)), s.policyText())
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	y.startUpstream(t)
	y.startSluices(ctx, t)
	y.ports[recorderPort] = y.recorder.port
	config := filepath.Join(t.TempDir(), "trust.yaml")
	writeFile(t, config, y.envoyText(t, setups))
	y.startListeners(ctx, t, envoy, config)
	return y
}

// startListeners is startEnvoy with ports that the setups chose.
func (y *trusting) startListeners(ctx context.Context, t *testing.T, path, config string) {
	t.Helper()
	o := stack.EnvoyOptions{Path: path, Config: config, Dir: t.TempDir(), Listen: y.reserved, Connect: y.ports, Patience: patience}
	e, err := stack.StartEnvoy(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	endWithTest(t, e.Process, e.Stop)
	y.envoy = e
}

// reserve finds a port for the ith setup. One that is listened on at all
// addresses of the machine must not be one that a client might connect from,
// at any of them.
func (y *trusting) reserve(t *testing.T, i int, everywhere bool) {
	t.Helper()
	first := 0
	if everywhere {
		first = 10000 + rand.IntN(20000) // below those that machines give to clients
	}
	p, err := stack.ReservePort(first)
	if err != nil {
		t.Fatal(err)
	}
	y.reserved[firstTrustPort+i] = p
}

// shortDir is a folder for Unix sockets, whose names must not be long.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// policyText is a policy under which each caller has one request.
func (s trustSetup) policyText() string {
	rules := s.rules
	if rules == "" {
		rules = "[{name: requests, per: [ip], missing: 418, limits: [{rate: 1/1d}]}, " +
			"{name: descriptors, descriptor: [remote_address], limits: [{rate: 1/1d}]}]"
	}
	return fmt.Sprintf("domain: %q\ntrust: {%s}\nidentities: {%s}\nrules: %s\n", s.domain(), s.trust, s.identities, rules)
}

// domain is the setup's name, as a domain may be called.
func (s trustSetup) domain() string { return notInDomain.ReplaceAllString(s.name, "-") }

var notInDomain = regexp.MustCompile(`[^a-zA-Z0-9_.]+`)

// envoyText is the configuration, and reserves the ports that it listens on.
func (y *trusting) envoyText(t *testing.T, setups []trustSetup) string {
	t.Helper()
	type listener struct {
		Name, Address, Listener, HCM string
		Raw                          bool
	}
	var listeners []listener
	for i, s := range setups {
		l := listener{s.domain(), "", s.listener, s.hcm, s.raw}
		switch s.at {
		case "pipe":
			l.Address = fmt.Sprintf("{pipe: {path: %q}}", y.pipe(i))
		case "":
			l.Address = fmt.Sprintf("{socket_address: {address: 127.0.0.1, port_value: %d}}", firstTrustPort+i)
			y.reserve(t, i, false)
		default:
			l.Address = strings.ReplaceAll(s.at, "PORT", fmt.Sprintf("port_value: %d", firstTrustPort+i))
			l.Listener = strings.ReplaceAll(s.listener, "PORT", fmt.Sprintf("port_value: %d", firstTrustPort+i))
			y.reserve(t, i, true)
		}
		listeners = append(listeners, l)
	}
	var text bytes.Buffer
	if err := template.Must(template.ParseFiles("testdata/trust_envoy.yaml.tmpl")).Execute(&text, listeners); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func (y *trusting) pipe(i int) string { return filepath.Join(y.pipes, fmt.Sprint(i)) }

// dial connects to the ith setup as a client at an address: by the setup's
// Unix socket, or over a proxy that announces the address by the PROXY
// protocol, or from the address itself.
func (y *trusting) dial(ctx context.Context, i int, s trustSetup, from string) (net.Conn, error) {
	var d net.Dialer
	if s.at == "pipe" {
		return d.DialContext(ctx, "unix", y.pipe(i))
	}
	port := y.reserved[firstTrustPort+i].Number
	if s.announced && from != "" {
		c, err := d.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(c, "PROXY TCP4 %s 127.0.0.1 40000 80\r\n", from)
		return c, err
	}
	if strings.Contains(from, ":") {
		return d.DialContext(ctx, "tcp6", fmt.Sprintf("[::1]:%d", port))
	}
	d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	return d.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}

// send sends one request to the ith setup and returns its status, or
// hungUp.
func (y *trusting) send(t *testing.T, i int, s trustSetup, path string, c caller) int {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		Protocols:         new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return y.dial(ctx, i, s, c.from)
		},
	}
	transport.Protocols.SetHTTP1(!s.http2)
	transport.Protocols.SetUnencryptedHTTP2(s.http2)
	defer transport.CloseIdleConnections()
	one := &client{Client: http.Client{Transport: transport, Timeout: 2 * patience}, url: "http://sluice.test"}
	a, err := one.ask(t.Context(), http.MethodGet, path, c.header...)
	switch {
	case closed(err):
		return hungUp
	case err != nil:
		t.Fatalf("GET %s from %s with %q: %v", path, c.from, c.header, err)
	}
	return a.status
}

// closed says that the other side hung up.
func closed(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.As(err, &op) && op.Op == "read"
}
