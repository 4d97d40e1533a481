package policy

import (
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A view is a request with what many rules ask of it, found once.
type view struct {
	attrs  *identity.Attributes
	id     identity.Identity
	edge   *identity.Edge
	path   string // normal
	host   string // lower case, without its port
	caller string // the masked address; see callerIP

	believed []string // headers; see Policy
	vars     *variables
	failures []Failure
}

var noAttributes identity.Attributes

func (p *Policy) view(r Request) view {
	if r.Attributes == nil {
		r.Attributes = &noAttributes
	}
	return view{
		attrs: r.Attributes,
		id:    r.Identity,
		edge:  &p.Edge,
		path:  NormalPath(r.Attributes.Path),
		host:  hostOf(r.Attributes.Host),

		believed: p.believed,
	}
}

// callerIP returns the text of the caller's masked address, "" for none.
func (v *view) callerIP() string {
	if v.caller == "" && v.id.Client.IsValid() {
		v.caller = v.edge.Caller(v.id.Client)
	}
	return v.caller
}

// A matcher is what a rule wants of a request besides its path.
type matcher struct {
	methods []string
	hosts   hosts
	headers []HeaderSpec // names in lower case
}

func (m *matcher) matches(v *view) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, v.attrs.Method) {
		return false
	}
	return m.hosts.contain(v.host) && m.hasHeaders(v.attrs.Headers)
}

func (m *matcher) hasHeaders(all map[string]string) bool {
	for _, h := range m.headers {
		if !hasMember(all[h.Name], h.Value) {
			return false
		}
	}
	return true
}

// hasMember says that a header's value is wanted, or is a list that has it, in
// any case.
func hasMember(value, wanted string) bool {
	if strings.EqualFold(strings.TrimSpace(value), wanted) {
		return true
	}
	for member := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.TrimSpace(member), wanted) {
			return true
		}
	}
	return false
}

// covers says that m matches whatever o does.
func (m *matcher) covers(o *matcher) bool {
	if len(m.methods) > 0 && (len(o.methods) == 0 || !containsAll(m.methods, o.methods)) {
		return false
	}
	return m.hosts.covers(o.hosts) && !slices.ContainsFunc(m.headers, func(h HeaderSpec) bool { return !slices.Contains(o.headers, h) })
}

func containsAll(set, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(set, s) })
}

// hosts are names, each its own or all below it. None match every host.
type hosts struct {
	names    []string
	suffixes []string // .example.com
}

// parseHosts reads the host patterns of a rule; the faults' paths are the
// places in them.
func parseHosts(patterns []string) (hosts, []Fault) {
	var h hosts
	var faults []Fault
	for i, text := range patterns {
		name, wild := strings.CutPrefix(strings.ToLower(text), "*")
		bare := name
		if wild {
			bare = strings.TrimPrefix(name, ".")
		}
		if !isHost(bare) || wild && bare == name {
			faults = append(faults, Fault{Path: place("", i), Found: quote(text), Want: "a host such as api.example.com or *.example.com, without a port"})
			continue
		}
		if wild {
			h.suffixes = append(h.suffixes, name)
		} else {
			h.names = append(h.names, name)
		}
	}
	return h, faults
}

// isHost says that hostOf can return s: a name, an IPv4 address or an IPv6 one
// in brackets.
func isHost(s string) bool {
	inner, allowed := s, "abcdefghijklmnopqrstuvwxyz0123456789-_."
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		inner, allowed = s[1:len(s)-1], "abcdef0123456789:."
	}
	return inner != "" && made(inner, allowed) && !strings.HasSuffix(inner, ".")
}

func (h *hosts) contain(host string) bool {
	if len(h.names) == 0 && len(h.suffixes) == 0 || slices.Contains(h.names, host) {
		return true
	}
	for _, s := range h.suffixes {
		if len(host) > len(s) && strings.HasSuffix(host, s) {
			return true
		}
	}
	return false
}

func (h *hosts) covers(o hosts) bool {
	if len(h.names) == 0 && len(h.suffixes) == 0 {
		return true
	}
	if len(o.names) == 0 && len(o.suffixes) == 0 {
		return false
	}
	return !slices.ContainsFunc(o.names, func(s string) bool { return !h.contain(s) }) &&
		!slices.ContainsFunc(o.suffixes, func(s string) bool { return !slices.Contains(h.suffixes, s) && !h.contain(s) })
}

// hostOf returns the host of an authority in lower case, without its port and
// without the dot that ends a full name.
func hostOf(authority string) string {
	host := authority
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// exempt is what a policy never charges.
type exempt struct {
	paths   pathIndex
	methods []string
	clients identity.Networks
}

func (e *exempt) covers(v *view) bool {
	if slices.Contains(e.methods, v.attrs.Method) || v.id.Client.IsValid() && e.clients.Contains(v.id.Client) {
		return true
	}
	var space [8]int32
	return len(e.paths.find(v.path, space[:0])) > 0
}
