package policy

import (
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// attributeNames are what expressions may ask for: Envoy's attributes, as far as an
// external authorization request has them, with the same names.
var attributeNames = []struct {
	name string
	kind *cel.Type
}{
	{"request.path", cel.StringType},     // as it came, query included
	{"request.url_path", cel.StringType}, // the normal path
	{"request.query", cel.StringType},    // as it came
	{"request.host", cel.StringType},     // lower case, without its port
	{"request.method", cel.StringType},
	{"request.scheme", cel.StringType},
	{"request.protocol", cel.StringType},
	{"request.headers", cel.MapType(cel.StringType, cel.StringType)}, // those that are believed
	{"request.referer", cel.StringType},
	{"request.useragent", cel.StringType},
	{"request.id", cel.StringType},
	{"request.size", cel.IntType},
	{"request.time", cel.TimestampType},
	{"source.address", cel.StringType}, // without its port
	{"source.principal", cel.StringType},
	{"connection.mtls", cel.BoolType},
	{"metadata.filter_metadata", cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.DynType))},
	{"claims", cel.MapType(cel.StringType, cel.DynType)}, // jwt_authn's payload
	{"context", cel.MapType(cel.StringType, cel.StringType)},
}

// listNames is what a fault says of them.
func listNames() string {
	list := make([]string, len(attributeNames))
	for i, n := range attributeNames {
		list[i] = n.name
	}
	return "the names are " + strings.Join(list, ", ")
}

// variables are the names' values for one request, found when they are asked
// for. They are for one request alone.
type variables struct {
	view     view
	believed map[string]string
	claims   map[string]any
}

// variables returns those of v's request, made when the first expression asks.
func (v *view) variables() *variables {
	if v.vars == nil {
		v.vars = &variables{view: *v}
	}
	return v.vars
}

// Parent says that there are no other names.
func (*variables) Parent() cel.Activation { return nil }

// ResolveName returns the value of a name, if the request has it.
func (vs *variables) ResolveName(name string) (any, bool) {
	a := vs.view.attrs
	switch name {
	case "request.path":
		return a.Path, true
	case "request.url_path":
		return vs.view.path, true
	case "request.query":
		return queryOf(a.Path), true
	case "request.host":
		return vs.view.host, true
	case "request.method":
		return a.Method, true
	case "request.scheme":
		return a.Scheme, true
	case "request.protocol":
		return a.Protocol, true
	case "request.headers":
		return vs.headers(), true
	case "request.referer":
		return vs.headers()["referer"], true
	case "request.useragent":
		return vs.headers()["user-agent"], true
	default:
		return vs.resolveRarer(name)
	}
}

func (vs *variables) resolveRarer(name string) (any, bool) {
	a := vs.view.attrs
	switch name {
	case "request.id":
		return a.ID, true
	case "request.size":
		return a.Size, true
	case "request.time":
		return a.Time, !a.Time.IsZero()
	case "source.address":
		return addressText(a), true
	case "source.principal":
		return a.Principal, true
	case "connection.mtls":
		return a.Principal != "", true
	case "metadata.filter_metadata":
		return a.Metadata, true
	case "claims":
		return vs.payload(), true
	case "context":
		return a.Context, true
	default:
		return nil, false
	}
}

// headers returns the headers that are believed: all from a peer that is
// trusted, else those that the policy believes whoever sent them.
func (vs *variables) headers() map[string]string {
	all := vs.view.attrs.Headers
	if vs.view.id.Trusted {
		return all
	}
	if vs.believed == nil {
		vs.believed = make(map[string]string, len(vs.view.believed))
		for _, name := range vs.view.believed {
			if value, ok := all[name]; ok {
				vs.believed[name] = value
			}
		}
	}
	return vs.believed
}

// payload returns what jwt_authn made of the request's tokens.
func (vs *variables) payload() map[string]any {
	if vs.claims == nil {
		vs.claims = identity.Claims(vs.view.attrs)
	}
	return vs.claims
}

func addressText(a *identity.Attributes) string {
	if !a.Source.IsValid() {
		return ""
	}
	return a.Source.Unmap().String()
}

// queryOf returns the query of a target, without its mark.
func queryOf(target string) string {
	target, _, _ = strings.Cut(target, "#")
	_, query, _ := strings.Cut(target, "?")
	return query
}
