package explain_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

const onePerMinute = "domain: edge\nrules:\n  - {name: all, per: [ip], limits: [{rate: 1/1m}]}\n"

// newServer serves explanations of onePerMinute.
func newServer(t *testing.T) (addr string, o explain.Options) {
	t.Helper()
	o = explain.Options{Set: doortest.Load(t, onePerMinute), Store: doortest.Memory(t, doortest.NewClock())}
	s := httptest.NewServer(explain.Handler(func() explain.Options { return o }))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), o
}

func TestAsk(t *testing.T) {
	t.Parallel()
	addr, o := newServer(t)
	r := explain.Request{Path: "/x", Peer: "192.0.2.1", Headers: []explain.Header{{Name: "x-id", Value: "\x1b\xff"}}}
	want, err := explain.Explain(t.Context(), o, r)
	if err != nil {
		t.Fatalf("Explain(%+v) = %v, want no error", r, err)
	}
	got, err := explain.Ask(t.Context(), explain.Server{Addr: addr}, r)
	if err != nil {
		t.Fatalf("Ask(%+v) = %v, want no error", r, err)
	}
	if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
		t.Errorf("Ask(%+v) differs from Explain, -want +got:\n%s", r, diff)
	}
}

func TestAskFails(t *testing.T) {
	t.Parallel()
	addr, _ := newServer(t)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a token", http.StatusUnauthorized) }))
	defer locked.Close()
	for _, tt := range []struct {
		addr string
		r    explain.Request
		want string
	}{
		{addr, explain.Request{}, "found no path"},
		{addr, explain.Request{Path: "/x", Peer: "nobody"}, "want an address"},
		{strings.TrimPrefix(other.URL, "http://"), explain.Request{Path: "/x"}, "is this the admin address"},
		{strings.TrimPrefix(locked.URL, "http://"), explain.Request{Path: "/x"}, "a token; explain shows it the token in --admin-token-file"},
		{"unix:/does/not/exist", explain.Request{Path: "/x"}, "/does/not/exist"},
		{"unix:/does/not/exist", explain.Request{Path: "/x"}, "is this the admin address"},
	} {
		if _, err := explain.Ask(t.Context(), explain.Server{Addr: tt.addr}, tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Ask(%s, %+v) = %v, want an error with %q", tt.addr, tt.r, err, tt.want)
		}
	}
}

func TestHandlerRefuses(t *testing.T) {
	t.Parallel()
	addr, _ := newServer(t)
	const asJSON = "application/json"
	for _, tt := range []struct {
		kind, body string
		status     int
	}{
		{asJSON, `{"path": "/x"}`, http.StatusOK},
		{asJSON + "; charset=utf-8", `{"path": "/x"}`, http.StatusOK},
		{"text/plain", `{"path": "/x"}`, http.StatusUnsupportedMediaType},
		{"", `{"path": "/x"}`, http.StatusUnsupportedMediaType},
		{asJSON, `{"path": "/x", "pear": "1.2.3.4"}`, http.StatusBadRequest},
		{asJSON, `{"path": "/x"} {"path": "/y"}`, http.StatusBadRequest},
		{asJSON, `{"path": "/` + strings.Repeat("x", 300<<10) + `"}`, http.StatusBadRequest},
		{asJSON, ``, http.StatusBadRequest},
		{asJSON, `{"descriptors": [[]], "hits": -1}`, http.StatusBadRequest},
		{asJSON, `{"descriptors": [[]]}`, http.StatusOK},
	} {
		resp, err := http.Post("http://"+addr+"/explain", tt.kind, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("POST %s of type %s answers %d, want %d", tt.body[:min(len(tt.body), 60)], tt.kind, resp.StatusCode, tt.status)
		}
	}
}

// Whatever is asked, what is printed is printable.
func FuzzExplain(f *testing.F) {
	f.Add("GET", "/x", "h", "192.0.2.1", "x-forwarded-for", "1.2.3.4", "k", "v")
	f.Add("\x1b", "\x00", "\u202e", "unix", "x-user-id", "\xff\n", "\t", "\v")
	yaml := "domain: edge\ntrust: {proxies: [192.0.2.0/24]}\nidentities:\n  user: {header: x-user-id, missing: skip}\n" +
		"rules:\n  - {name: a, per: [ip], limits: [{rate: 1/1m}], deny: {body: '{path} {host}'}}\n  - {name: b, per: [user, path, method, host], limits: [{rate: 0/1m}], missing: share}\n" +
		"  - {name: c, descriptor: [k], limits: [{rate: 5/1m}]}\n"
	clock := doortest.NewClock()
	set := doortest.Load(f, yaml)
	f.Fuzz(func(t *testing.T, method, path, host, peer, name, value, key, entry string) {
		o := explain.Options{Set: set, Store: doortest.Memory(t, clock)}
		for _, r := range []explain.Request{
			{Method: method, Path: path, Host: host, Peer: peer, Headers: []explain.Header{{Name: name, Value: value}, {Name: name, Value: key}}, Context: map[string]string{key: entry}, Stamps: map[string]string{key: entry}},
			{Descriptors: []explain.Descriptor{{{Key: key, Value: entry}}, {{Key: "k", Value: value}}}},
		} {
			report, err := explain.Explain(context.Background(), o, r)
			if err != nil {
				continue
			}
			checkPrintable(t, text(t, report))
			checkPrintable(t, asJSON(t, report))
			throughJSON(t, report)
		}
	})
}
