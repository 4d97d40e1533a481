// Package admin is what the port answers that is for those who run the program:
// whether it lives, whether it is ready, its metrics and its profiles. It is not
// for clients.
//
// It knows nothing of what it shows: health and metrics are handed to it. Nor
// does it listen: who serves it does.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
)

// Options are what a Handler is made of. Ready and Metrics are required.
type Options struct {
	// Ready is asked at each request of /readyz.
	Ready   func(context.Context) Readiness
	Metrics http.Handler
	// Explain answers what is posted to /explain. It may be nil.
	Explain http.Handler
	// Hosts are names by which the port may be asked, beside localhost and
	// addresses; "*" is any.
	Hosts []string
	// HostsSetting is where Hosts come from, for who is refused; "" means the
	// setting admin-hosts.
	HostsSetting string
	// Token returns what must be brought for all but health and metrics. Where
	// it is nil nothing must be, and nothing here changes anything.
	Token func() ([]byte, error)
	Pprof bool // serve profiles
}

// Readiness says whether requests may be sent here, and of what is looked at
// for that how it stands.
type Readiness struct {
	Ready bool `json:"ready"`
	// Checks may have faults though Ready is true: the service is degraded,
	// but better than none.
	Checks []Check `json:"checks"`
}

// A Check is one thing that was looked at.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail says what is wrong, or in use. It holds no secret and nothing of
	// a client's.
	Detail string `json:"detail,omitempty"`
}

// Handler returns what the port serves: of pprof all but the command line, in
// which there may be a password.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, o.Ready(r.Context())) })
	mux.Handle("GET /metrics", o.Metrics)
	if o.Explain != nil {
		mux.Handle("POST /explain", o.Explain)
	}
	if o.Pprof {
		profiles(mux)
	}
	return Guard(o, mux)
}

func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

func index(w http.ResponseWriter, _ *http.Request) {
	text(w, "/healthz        alive\n/readyz         ready, and what is degraded\n/metrics        for Prometheus\n/explain        what would become of a request (POST, by extauthz explain --server)\n/debug/pprof/   profiles\n")
}

func text(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, body) // who asked may be gone
}

func ready(w http.ResponseWriter, r Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !r.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(r) // who asked may be gone
}
