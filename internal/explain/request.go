package explain

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// A Request is a request to be explained, as a proxy would tell of it. It has
// either Method, Path and what belongs to them, or Descriptors.
type Request struct {
	// Domain is that of the route or the filter. "" leaves the choice to the
	// policies.
	Domain string `json:"domain,omitempty"`

	Method string `json:"method,omitempty"` // "" means GET
	Path   string `json:"path,omitempty"`   // with the query
	Host   string `json:"host,omitempty"`   // "" means what the header host says
	Scheme string `json:"scheme,omitempty"`
	Size   int64  `json:"size,omitempty"` // of the body, in bytes
	// Peer is the address of the direct peer, with or without a port; "unix"
	// is one that came through a Unix socket, "" one without an address.
	Peer string `json:"peer,omitempty"`
	// Headers are lines, in order.
	Headers   []Header                  `json:"headers,omitempty"`
	Principal string                    `json:"principal,omitempty"`
	Context   map[string]string         `json:"context,omitempty"` // extensions
	Metadata  map[string]map[string]any `json:"metadata,omitempty"`
	Stamps    map[string]string         `json:"stamps,omitempty"` // by their names

	Descriptors []Descriptor `json:"descriptors,omitempty"`
	// Hits is the cost of each descriptor. 0 means 1.
	Hits int64 `json:"hits,omitempty"`
}

// A Header is one header line.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Descriptor is what Envoy's rate limit filter sends.
type Descriptor []Entry

// An Entry is one of a Descriptor.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (d Descriptor) text() string {
	parts := make([]string, len(d))
	for i, e := range d {
		parts[i] = e.Key + "=" + e.Value
	}
	return strings.Join(parts, ", ")
}

const (
	maxDescriptors = 1024
	maxHits        = 1 << 40
)

// asked is a Request as the steps of a decision take it.
type asked struct {
	attrs       *identity.Attributes
	response    response.Request
	descriptors []descriptors.Descriptor
	cost        int64 // of each descriptor
}

func (r Request) ask() (asked, error) {
	a, err := r.attributes()
	if err != nil {
		return asked{}, err
	}
	q := asked{attrs: a, cost: max(r.Hits, 1)}
	for _, d := range r.Descriptors {
		entries := make(descriptors.Descriptor, len(d))
		for i, e := range d {
			entries[i] = descriptors.Entry(e)
		}
		q.descriptors = append(q.descriptors, entries)
	}
	switch {
	case r.Hits < 0 || r.Hits > maxHits:
		return q, requestError("found %d hits, want 0 to %d", r.Hits, int64(maxHits))
	case len(r.Descriptors) > maxDescriptors:
		return q, requestError("found %d descriptors, want at most %d", len(r.Descriptors), maxDescriptors)
	case r.Descriptors != nil:
		return q, nil
	case r.Path == "":
		return q, requestError("found no path, want a request such as GET /api/x, or a descriptor")
	}
	q.response = response.RequestOf(a)
	return q, nil
}

// attributes returns r's, as Envoy would send them.
func (r Request) attributes() (*identity.Attributes, error) {
	a := &identity.Attributes{
		Method: cmp.Or(r.Method, "GET"), Path: r.Path, Host: r.Host, Scheme: r.Scheme, Size: r.Size,
		Headers: joined(r.Headers), Principal: r.Principal, Context: r.Context, Metadata: r.Metadata, Stamps: lowered(r.Stamps),
	}
	a.Host = cmp.Or(a.Host, a.Headers["host"])
	delete(a.Headers, "host") // Envoy has it as :authority alone
	var err error
	a.Source, a.Pipe, err = peer(r.Peer)
	return a, err
}

// peer reads an address as a proxy knows its peer's.
func peer(text string) (addr netip.Addr, pipe bool, err error) {
	switch text {
	case "":
		return addr, false, nil
	case "unix":
		return addr, true, nil
	}
	addr, ok := identity.ParseAddr(text)
	if !ok {
		return addr, false, requestError("peer: found %q, want an address, or unix", cut(text))
	}
	return addr, false, nil
}

// joined returns lines as one value for each name.
func joined(lines []Header) map[string]string {
	all := make(map[string]string, len(lines))
	for _, h := range lines {
		name := strings.ToLower(h.Name)
		if before, twice := all[name]; twice {
			all[name] = before + "," + h.Value
		} else {
			all[name] = h.Value
		}
	}
	return all
}

func lowered(stamps map[string]string) map[string]string {
	all := make(map[string]string, len(stamps))
	for name, value := range stamps {
		all[strings.ToLower(name)] = value
	}
	return all
}
