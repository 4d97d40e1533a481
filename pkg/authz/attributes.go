package authz

import (
	"context"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// attributes reads what is there; all of it may be missing. The result shares
// memory with a.
func attributes(a *authv3.AttributeContext) *identity.Attributes {
	http := a.GetRequest().GetHttp()
	source := a.GetSource()
	attrs := &identity.Attributes{
		Method:    http.GetMethod(),
		Path:      http.GetPath(),
		Host:      http.GetHost(),
		Scheme:    http.GetScheme(),
		Protocol:  http.GetProtocol(),
		ID:        http.GetId(),
		Size:      http.GetSize(),
		Headers:   headers(http),
		Principal: source.GetPrincipal(),
		Context:   a.GetContextExtensions(),
		Metadata:  filterMetadata(a.GetMetadataContext()),
	}
	attrs.Source, attrs.Pipe = peer(source.GetAddress())
	if at := a.GetRequest().GetTime(); at != nil {
		attrs.Time = at.AsTime()
	}
	return attrs
}

// peer reads an address. Envoy writes that of an internal listener, and
// anything that is no IP address, as neither of the two.
func peer(a *corev3.Address) (addr netip.Addr, pipe bool) {
	if a.GetPipe() != nil {
		return netip.Addr{}, true
	}
	addr, err := netip.ParseAddr(a.GetSocketAddress().GetAddress())
	if err != nil {
		return netip.Addr{}, false
	}
	return addr, false
}

// headers returns the headers by lower-case name, the lines of one name joined
// by ",". Envoy sends them so in one field, or raw line by line in another.
func headers(http *authv3.AttributeContext_HttpRequest) map[string]string {
	lines := http.GetHeaderMap().GetHeaders()
	if len(lines) == 0 {
		return lowered(http.GetHeaders())
	}
	all := make(joiner, len(lines)+len(http.GetHeaders()))
	for name, value := range http.GetHeaders() {
		all.add(name, value)
	}
	for _, line := range lines {
		value := line.GetValue()
		if raw := line.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		all.add(line.GetKey(), value)
	}
	return all.headers()
}

// A joiner joins the lines of each name. It holds bytes, since a hundred
// thousand lines of one name must not be copied for each of them.
type joiner map[string][]byte

func (j joiner) add(name, value string) {
	name = strings.ToLower(name)
	before, twice := j[name]
	if twice {
		before = append(before, ',')
	}
	j[name] = append(before, value...)
}

func (j joiner) headers() map[string]string {
	hs := make(map[string]string, len(j))
	for name, value := range j {
		hs[name] = string(value)
	}
	return hs
}

// lowered returns hs itself if its names are lower-case, as Envoy's are. Names
// that differ only in case are lines of one header.
func lowered(hs map[string]string) map[string]string {
	for name := range hs {
		if name != strings.ToLower(name) {
			return relowered(hs)
		}
	}
	return hs
}

func relowered(hs map[string]string) map[string]string {
	all := make(joiner, len(hs))
	for name, value := range hs {
		all.add(name, value)
	}
	return all.headers()
}

// filterMetadata reads the request's dynamic metadata. Of the typed metadata,
// whose messages only the filters know that wrote it, nothing is read.
func filterMetadata(m *corev3.Metadata) map[string]map[string]any {
	filters := m.GetFilterMetadata()
	if len(filters) == 0 {
		return nil
	}
	all := make(map[string]map[string]any, len(filters))
	for name, fields := range filters {
		all[name] = fields.AsMap()
	}
	return all
}

// stamps returns what Envoy's call says by that name. One that comes twice gives
// no single answer, and its joined values are none that is looked for.
func stamps(ctx context.Context, name string) map[string]string {
	values := metadata.ValueFromIncomingContext(ctx, name)
	if len(values) == 0 {
		return nil
	}
	return map[string]string{name: strings.Join(values, ",")}
}
