package admin

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// open are what is answered without a token: what probes and Prometheus ask
// for. There is no secret in it, and nothing of a client's.
var open = []string{"/", "/healthz", "/readyz", "/metrics"}

// A guard stands before all that the port serves. A browser is not to be a way
// in for the pages that it shows, and who has no token gets no more than open.
type guard struct {
	opts Options
	next http.Handler
}

// Guard returns next behind what Options say of names and the token, and out of
// reach of pages of other sites.
func Guard(o Options, next http.Handler) http.Handler { return guard{o, next} }

// SameSite returns next out of reach of pages of other sites.
func SameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign(r) {
			refuseForeign(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuseForeign(w http.ResponseWriter) {
	http.Error(w, "a page of another site asked for this: open it by itself", http.StatusForbidden)
}

// ServeHTTP answers, or refuses with a word on what to do.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
	switch {
	case !g.hostKnown(r):
		http.Error(w, "this port is not asked for by that name: use its address or localhost, or add the name to "+cmp.Or(g.opts.HostsSetting, "the setting admin-hosts"), http.StatusMisdirectedRequest)
	case foreign(r):
		refuseForeign(w)
	case g.opts.Token != nil && !slices.Contains(open, r.URL.Path) && !g.hasToken(r):
		w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
		http.Error(w, "this needs the token of the setting admin-token-file: Authorization: Bearer TOKEN", http.StatusUnauthorized)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		g.next.ServeHTTP(w, r)
	}
}

// maxBody is more than anything that is to be posted here.
const maxBody = 1 << 20

// hostKnown keeps out pages whose name was made to lead here (DNS rebinding):
// their browser asks for that name. An address cannot be made to, but behind a
// loopback address only loopback is asked for.
func (g guard) hostKnown(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && local.Network() == "unix" {
		return true // no browser asks there
	}
	host := hostname(r.Host)
	if strings.EqualFold(host, "localhost") || g.named(host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return addr.Unmap().IsLoopback() || !ok || !loopback(local)
}

func (g guard) named(host string) bool {
	return slices.ContainsFunc(g.opts.Hosts, func(name string) bool {
		return name == "*" || strings.EqualFold(name, host)
	})
}

// hostname is a Host header without its port and without brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

func loopback(a net.Addr) bool {
	addr, err := netip.ParseAddrPort(a.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// foreign says that a page of another site asks, by what only browsers send.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

// hasToken says that r brings the token. A token that cannot be read now is
// nobody's.
func (g guard) hasToken(r *http.Request) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, err := g.opts.Token()
	if err != nil || len(want) == 0 || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	// Of one length, so that the comparison takes one time.
	a, b := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256(want)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
