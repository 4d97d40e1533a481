package httpcheck

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A Dialect is one proxy's way to ask.
type Dialect string

// The dialects.
const (
	Envoy   Dialect = "envoy" // http_service of Envoy's ext_authz filter
	Istio   Dialect = "istio" // envoyExtAuthzHttp, which is the same
	Traefik Dialect = "traefik"
	Caddy   Dialect = "caddy"
	Nginx   Dialect = "nginx"
)

// words are where a dialect says what. The names are canonical.
type words struct {
	// method and uri are headers; "" means the check's own request line.
	method, uri string
	host        string // a header before Host; may be ""
	scheme      string // a header; may be ""
	peer        string // a header; "" means that the caller is the peer
	// prefixed says that the proxy can put a prefix before the path.
	prefixed bool
	// denials are what the proxy takes for a denial, and instead is the
	// status of those that have another.
	denials func(status int) bool
	instead int
}

func wordsOf(d Dialect) (words, bool) {
	forwarded := words{
		method: "X-Forwarded-Method", uri: "X-Forwarded-Uri", host: "X-Forwarded-Host", scheme: "X-Forwarded-Proto", peer: "X-Forwarded-For",
		denials: func(int) bool { return true },
	}
	switch d {
	case "", Envoy, Istio:
		return words{scheme: "X-Forwarded-Proto", prefixed: true, denials: func(status int) bool { return status < 500 }, instead: http.StatusTooManyRequests}, true
	case Traefik, Caddy:
		return forwarded, true
	case Nginx:
		return words{
			method: "X-Original-Method", uri: "X-Original-Uri", peer: "X-Real-Ip",
			denials: passes, instead: http.StatusForbidden,
		}, true
	default:
		return words{}, false
	}
}

// passes says that every proxy passes a denial of that status on.
func passes(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// words returns the dialect's with what o changes in them.
func (o *Options) words() (words, error) {
	w, ok := wordsOf(o.Dialect)
	switch {
	case !ok:
		return w, fmt.Errorf("httpcheck: Options.Dialect is %q, want envoy, istio, traefik, caddy or nginx", string(o.Dialect))
	case o.PathPrefix != "" && !w.prefixed:
		return w, fmt.Errorf("httpcheck: Options.PathPrefix is %q, want none: in the %s dialect the path is in a header", o.PathPrefix, o.Dialect)
	case o.PathPrefix != "" && o.PathPrefix[0] != '/':
		return w, fmt.Errorf("httpcheck: Options.PathPrefix is %q, want one that begins with /", o.PathPrefix)
	case !isName(o.PeerHeader):
		return w, fmt.Errorf("httpcheck: Options.PeerHeader is %q, want a header's name", o.PeerHeader)
	case o.DenyStatus == 0:
	case o.DenyStatus < 400 || o.DenyStatus > 499 || !w.denials(o.DenyStatus):
		return w, fmt.Errorf("httpcheck: Options.DenyStatus is %d, which the proxy would take for no denial", o.DenyStatus)
	default:
		w.instead, w.denials = o.DenyStatus, passes
	}
	if o.PeerHeader != "" {
		w.peer = http.CanonicalHeaderKey(o.PeerHeader)
	}
	return w, nil
}

// isName says that s is made of what headers' names are made of in practice.
func isName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
}

// attributes reads what peer says of a request. fault says what is missing in
// its words, or there twice.
func (h *Handler) attributes(r *http.Request, peer caller) (attrs *identity.Attributes, fault string) {
	a := &identity.Attributes{Method: r.Method, Path: r.RequestURI, Host: r.Host, Time: h.opts.Now()}
	if h.words.uri == "" {
		fault = h.cutPrefix(a)
	} else {
		fault = h.words.original(a, r.Header)
	}
	if fault != "" {
		return nil, fault
	}
	a.Headers = headers(r.Header)
	a.Scheme = h.words.schemeOf(r.Header)
	if h.words.uri == "" && r.Header.Get("X-Envoy-Auth-Partial-Body") != "true" {
		a.Size = max(r.ContentLength, 0)
	}
	h.words.source(a, r.Header, peer)
	return a, ""
}

// schemeOf returns the scheme that the proxy names, "" for none.
func (w *words) schemeOf(hs http.Header) string {
	if lines := hs[w.scheme]; len(lines) == 1 && (lines[0] == "http" || lines[0] == "https") {
		return lines[0]
	}
	return ""
}

// cutPrefix takes the prefix off the path.
func (h *Handler) cutPrefix(a *identity.Attributes) (fault string) {
	rest, ok := strings.CutPrefix(a.Path, h.opts.PathPrefix)
	if !ok || h.opts.PathPrefix != "" && rest != "" && rest != "*" && rest[0] != '/' {
		return "the path does not begin with http-path-prefix"
	}
	a.Path = rest
	return ""
}

// original reads the words that name the original request.
func (w *words) original(a *identity.Attributes, hs http.Header) (fault string) {
	method, uri := hs[w.method], hs[w.uri]
	switch {
	case len(uri) != 1 || uri[0] == "":
		return "want one " + w.uri + " header, as the proxy must set it"
	case len(method) != 1 || method[0] == "":
		return "want one " + w.method + " header, as the proxy must set it"
	}
	a.Method, a.Path = method[0], uri[0]
	if host := hs[w.host]; len(host) == 1 && host[0] != "" {
		a.Host = host[0]
	}
	return ""
}

// source finds the peer of the proxy that asks, in its word or in who it is.
func (w *words) source(a *identity.Attributes, hs http.Header, peer caller) {
	lines := hs[w.peer]
	if w.peer == "" || len(lines) == 0 {
		a.Source, a.Pipe = peer.addr, peer.pipe
		return
	}
	last := lines[len(lines)-1]
	a.Stamps = map[string]string{strings.ToLower(w.peer): strings.Join(lines, ",")}
	last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	a.Source, _ = identity.ParseAddr(last)
	a.Pipe = last == socketPeer
}

// socketPeer is nginx's word for a peer that came through a Unix socket. A
// client cannot write it where the proxy writes its peer.
const socketPeer = "unix:"

// headers returns the headers by lower-case name, lines of one name joined by
// ",".
func headers(hs http.Header) map[string]string {
	all := make(map[string]string, len(hs))
	for name, lines := range hs {
		if len(lines) == 0 {
			continue
		}
		all[strings.ToLower(name)] = strings.Join(lines, ",")
	}
	return all
}
