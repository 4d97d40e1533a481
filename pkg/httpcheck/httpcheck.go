package httpcheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// Options are what a Handler is made of. Policies and Limiter are required.
type Options struct {
	// Policies returns the set to decide by. It is asked once per request and
	// may return another one each time; nil means that there is none.
	Policies func() *policy.Set
	Limiter  *limiter.Limiter
	// Identified is called once for each request that a policy is for, before
	// it is decided upon, on the caller's goroutine. It must not change or
	// keep what it is given. nil calls nothing.
	Identified func(*policy.Policy, *identity.Attributes, identity.Identity)
	// Dialect is the proxy's. "" means Envoy.
	Dialect Dialect
	// Callers are the networks from which checks are answered. Empty means
	// loopback. Who can open our Unix socket is a caller always.
	Callers []netip.Prefix
	// PeerHeader is the header in which the proxy names its peer. It must be
	// one that the proxy sets, whatever a client sends. "" means the
	// dialect's.
	PeerHeader string
	// PathPrefix is what Envoy (path_prefix) and Istio (pathPrefix) put before
	// the path; it is taken off. A path without it is answered 400.
	PathPrefix string
	// DenyStatus replaces the status of denials, except 401 and 403, which
	// every proxy passes on; the decision's own is then in the header
	// x-sluice-status. 0 replaces only what the proxy would take for a
	// failure of ours: for nginx everything, by 403, and for Envoy and Istio
	// 500 and more, by 429.
	DenyStatus int
	// Log gets a warning, at most once a minute, about checks that cannot be
	// answered as the proxy is set up. nil logs nothing.
	Log *slog.Logger
	// Now is the clock of Attributes.Time and of Log's minute. nil means
	// time.Now.
	Now func() time.Time
}

// A Handler answers checks. It is safe for concurrent use.
type Handler struct {
	opts    Options
	words   words
	callers identity.Networks
	misfits misfits
}

// New makes a Handler. It owns nothing.
func New(o Options) (*Handler, error) {
	switch {
	case o.Policies == nil:
		return nil, errors.New("httpcheck: Options.Policies is required")
	case o.Limiter == nil:
		return nil, errors.New("httpcheck: Options.Limiter is required")
	}
	w, err := o.words()
	if err != nil {
		return nil, err
	}
	if len(o.Callers) == 0 {
		o.Callers = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	callers, err := identity.NewNetworks(o.Callers)
	if err != nil {
		return nil, fmt.Errorf("httpcheck: Options.Callers: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handler{opts: o, words: w, callers: callers}, nil
}

// ServeHTTP answers one check. It does not read the body. The server that
// calls it must not answer OPTIONS * by itself, as net/http's does unless it
// is told otherwise (DisableGeneralOptionsHandler). If the request's
// context ended before there was a decision, the answer is 503.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := callerOf(r)
	if !peer.pipe && !h.callers.Contains(peer.addr) {
		w.Header().Set("Connection", "close")
		h.misfit(w, r, http.StatusForbidden, "checks are not answered from this address: http-callers does not name it")
		return
	}
	attrs, fault := h.attributes(r, peer)
	if fault != "" {
		h.misfit(w, r, http.StatusBadRequest, fault)
		return
	}
	d := h.decide(r.Context(), attrs)
	if d.Reason == limiter.Canceled {
		write(w, http.StatusServiceUnavailable, "")
		return
	}
	h.answer(w, response.For(d, response.RequestOf(attrs)))
}

// A caller is who asks us: an address, or the other end of a Unix socket.
type caller struct {
	addr netip.Addr
	pipe bool
}

func callerOf(r *http.Request) caller {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && a.Network() == "unix" {
		return caller{pipe: true}
	}
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return caller{}
	}
	return caller{addr: ap.Addr()}
}

func (h *Handler) decide(ctx context.Context, attrs *identity.Attributes) limiter.Decision {
	p := h.opts.Policies().ForRequests("")
	if p == nil {
		return h.opts.Limiter.Unknown(ctx, "")
	}
	id := p.Edge.Identify(attrs)
	if h.opts.Identified != nil {
		h.opts.Identified(p, attrs, id)
	}
	return h.opts.Limiter.Decide(ctx, p.ForRequest(policy.Request{Attributes: attrs, Identity: id}))
}
