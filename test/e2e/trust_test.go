package e2e_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A trustSetup is one way to set an Envoy up, and a policy's trust that suits
// it.
type trustSetup struct {
	name string

	at       string // pipe, or the listener's address where it is not 127.0.0.1
	listener string // further fields of the listener
	hcm      string // and of the HTTP connection manager
	raw      bool   // headers are sent as encode_raw_headers does
	http2    bool   // clients speak HTTP/2
	// announced says that clients come over a proxy that speaks the PROXY
	// protocol, except those from "".
	announced bool

	trust, identities string // of the policy
	rules             string // "" is one request for each ip, and each remote_address

	facts   []fact
	callers [][]caller // each is one caller in all its guises: it has one request
	refused []caller   // with missingStatus
	rls     []rlsCase  // in this order
}

const (
	missingStatus = http.StatusTeapot // which nobody else says
	hungUp        = -1                // the status of a connection that Envoy closed
)

// A caller sends a request from an address with header lines, each a name and
// a value.
type caller struct {
	from   string
	header []string
}

// A fact is what Envoy says of a request, which the policies rely on.
type fact struct {
	caller
	status int    // 0 is 200; with any other nobody is asked
	source string // the address of the peer: "" is that of the caller, anything is any pipe
	// headers are those to be wanted; "" is one that must not be there, and
	// anything one that must, whatever its value.
	headers map[string]string
	lines   []string // all that header_map has of their names, each a name, a colon and a value
	rls     string   // the descriptors remote_address, masked_remote_address and user; "" is any
	stamp   string   // "" is any
}

const anything = "*"

// An rlsCase is a request that is limited by its remote_address alone.
type rlsCase struct {
	caller
	passes bool
}

// In every setup of Envoy the callers that a policy's trust tells apart have
// what is theirs: who forges an address has no second request, and takes
// nobody's.
func TestTrust(t *testing.T) {
	t.Parallel()
	runSetups(t, onThisMachine(t, trustSetups()))
}

func runSetups(t *testing.T, setups []trustSetup) {
	t.Helper()
	y := startTrusting(t, setups)
	t.Run("group", func(t *testing.T) { // ends when all of them have
		for i, s := range setups {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				y.checkFacts(t, i, s)
				y.checkCallers(t, i, s)
				y.checkRLS(t, i, s)
			})
		}
	})
}

func (y *trusting) checkFacts(t *testing.T, i int, s trustSetup) {
	t.Helper()
	for _, f := range s.facts {
		status := y.send(t, i, s, "/facts", f.caller)
		got, remote := y.recorder.take(s.domain())
		f.compare(t, status, got, remote)
	}
}

// compare wants f of a request that was answered with a status.
func (f fact) compare(t *testing.T, status int, got *check, remote string) {
	t.Helper()
	want := cmp.Or(f.status, http.StatusOK)
	if asked := want == http.StatusOK; status != want || asked != (got != nil) {
		t.Errorf("from %q with %q: status %d and the check %+v, want %d, and a check: %v", f.from, f.header, status, got, want, asked)
		return
	}
	if got == nil {
		return
	}
	f.compareCheck(t, got)
	if f.rls != "" && f.rls != remote {
		t.Errorf("from %q with %q: the descriptors are %q, want %q", f.from, f.header, remote, f.rls)
	}
}

func (f fact) compareCheck(t *testing.T, got *check) {
	t.Helper()
	source := cmp.Or(f.source, f.from)
	if pipe := strings.HasPrefix(got.source, "pipe /"); got.source != source && (source != anything || !pipe) {
		t.Errorf("from %q with %q: the source is %q, want %q", f.from, f.header, got.source, source)
	}
	for name, want := range f.headers {
		if value := got.headers[name]; value != want && (want != anything || value == "") {
			t.Errorf("from %q with %q: the check has %s %q, want %q", f.from, f.header, name, value, want)
		}
	}
	if lines := got.named(f.lines); !slices.Equal(lines, f.lines) {
		t.Errorf("from %q with %q: the check has the lines %q, want %q", f.from, f.header, lines, f.lines)
	}
	if f.stamp != "" && f.stamp != got.stamp {
		t.Errorf("from %q with %q: the stamp is %q, want %q", f.from, f.header, got.stamp, f.stamp)
	}
}

// named are the lines of header_map that have a name of one of lines.
func (c *check) named(lines []string) []string {
	var found []string
	for _, line := range c.lines {
		name, _, _ := strings.Cut(line, ":")
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+":") }) {
			found = append(found, line)
		}
	}
	return found
}

func (y *trusting) checkCallers(t *testing.T, i int, s trustSetup) {
	t.Helper()
	for n, guises := range s.callers {
		if len(guises) == 1 {
			guises = append(guises, guises[0])
		}
		for k, c := range guises {
			want := http.StatusTooManyRequests
			if k == 0 {
				want = http.StatusOK
			}
			if got := y.send(t, i, s, "/", c); got != want {
				t.Errorf("caller %d, request %d, from %s with %q: %d, want %d", n+1, k+1, c.from, c.header, got, want)
			}
		}
	}
	for _, c := range s.refused {
		if got := y.send(t, i, s, "/", c); got != missingStatus {
			t.Errorf("from %q with %q: %d, want %d", c.from, c.header, got, missingStatus)
		}
	}
}

func (y *trusting) checkRLS(t *testing.T, i int, s trustSetup) {
	t.Helper()
	for n, r := range s.rls {
		want := http.StatusTooManyRequests
		if r.passes {
			want = http.StatusOK
		}
		if got := y.send(t, i, s, "/rls", r.caller); got != want {
			t.Errorf("descriptor %d, from %s with %q: %d, want %d", n+1, r.from, r.header, got, want)
		}
	}
}
