package policy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// maxName is the most letters in a name.
const maxName = 64

// What names are made of. They become labels of metrics and fields of keys.
const (
	identityName = letters + "0123456789_-"
	ruleName     = identityName + ".:/"
	domainName   = ruleName
)

// name checks the name at path.
func (c *compiler) name(path, name, allowed string) {
	if name != "" && len(name) <= maxName && made(name, allowed) {
		return
	}
	found := quote(name)
	if name == "" {
		found = "no name"
	}
	marks := strings.Join(strings.Split(strings.TrimPrefix(allowed, letters+"0123456789"), ""), " ")
	c.fault(path, found, "1 to "+number(maxName)+" letters, digits and "+marks, "")
}

// made says that s consists of the letters in allowed.
func made(s, allowed string) bool {
	for i := range len(s) {
		if strings.IndexByte(allowed, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isToken(s string) bool {
	return s != "" && made(s, letters+"0123456789!#$%&'*+-.^_`|~")
}

// usual are the methods that nobody writes in lower case and means it.
var usual = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

func (c *compiler) methods(path string, methods []string) {
	for i, m := range methods {
		upper := strings.ToUpper(m)
		switch {
		case !isToken(m):
			c.fault(place(path, i), quote(m), "a method such as GET", "")
		case m != upper && slices.Contains(usual, upper):
			c.fault(place(path, i), quote(m), upper+": methods are told apart by case", "")
		}
	}
}

func (c *compiler) missing(path string, m Missing) {
	switch {
	case m.Kind > MissingShare:
		c.fault(path, number(int(m.Kind)), "a status from 400 to 499, skip, ip or share", "")
	case m.Kind == MissingStatus && (m.Status < 400 || m.Status > 499):
		c.fault(path, number(m.Status), "a status from 400 to 499, skip, ip or share", "")
	}
}

func (c *compiler) deny(path string, d Deny) {
	if d.Status != 0 && (d.Status < 400 || d.Status > 599) {
		c.fault(path+".status", number(d.Status), "a status from 400 to 599", "")
	}
	if strings.ContainsFunc(d.ContentType, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.fault(path+".content_type", quote(d.ContentType), "a media type such as application/json", "")
	}
}

func (c *compiler) headers() {
	h := c.spec.Headers
	h.CORS = slices.Clone(h.CORS)
	c.shown = &h
	c.names(&h)
	for i, origin := range h.CORS {
		if !isOrigin(origin) {
			c.fault(place("headers.cors", i), quote(origin), "an origin as browsers write it, such as https://app.example, or * for all", "")
		}
	}
}

// names refuses header names that no header can have, or that another header
// of an answer has: a proxy that sets headers by name would keep one of the two.
func (c *compiler) names(h *Headers) {
	fields := []struct{ field, name, own string }{
		{"limit", h.Limit, "x-ratelimit-limit"},
		{"remaining", h.Remaining, "x-ratelimit-remaining"},
		{"reset", h.Reset, "x-ratelimit-reset"},
		{"retry_after", h.RetryAfter, "retry-after"},
		{"policy", h.Policy, "ratelimit-policy"},
		{"rule", h.Rule, ""},
	}
	taken := make(map[string]string)
	for _, name := range otherHeaders {
		taken[name] = "a header with a meaning of its own"
	}
	for _, f := range fields {
		if f.name == "" {
			taken[f.own] = "the name of " + f.field + " as well"
		}
	}
	for _, f := range fields {
		path, lower := "headers.names."+f.field, strings.ToLower(f.name)
		switch {
		case f.name == "":
		case !isToken(f.name):
			c.fault(path, quote(f.name), "a header's name such as X-RateLimit-Limit", "")
		case taken[lower] != "":
			c.fault(path, quote(f.name)+", which is "+taken[lower], "a name of its own", "")
		default:
			taken[lower] = "the name of " + f.field + " as well"
		}
	}
}

// otherHeaders are headers that an answer may have beside those with names of
// the policy's, or that HTTP itself needs.
var otherHeaders = []string{
	"ratelimit", "x-envoy-ratelimited", "grpc-status", "grpc-message", "vary", "access-control-allow-origin", "access-control-expose-headers",
	"content-type", "content-length", "transfer-encoding", "connection", "host",
}

// isOrigin says that a browser writes s, which leaves a scheme's usual port
// out, or that it stands for all origins.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if s == "*" || err != nil || strings.Contains(s, "*") {
		return s == "*"
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host}
	usual := u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" // never written
	return u.Scheme != "" && u.Host != "" && !usual && s == bare.String() && s == strings.ToLower(s)
}

// eitherOr refuses a descriptor rule with what only rules for requests have.
func (c *compiler) eitherOr(s *RuleSpec, path string) {
	for _, f := range []struct {
		field string
		set   bool
	}{{"match", s.Match != nil}, {"per", s.Per != nil}, {"missing", s.Missing.Kind != MissingUnset}, {"cost", s.Cost != ""}} {
		if f.set {
			c.fault(path+"."+f.field, f.field+" beside descriptor", "either descriptor, or match, per, missing and cost", "make two rules of it")
		}
	}
}

// place is the path of element i of the list at path.
func place(path string, i int) string { return path + "[" + number(i) + "]" }

func number(n int) string { return strconv.Itoa(n) }

func quote(s string) string { return strconv.Quote(s) }
