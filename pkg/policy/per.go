package policy

import (
	"strings"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A part is one name in a rule's per: where its value is found, and what
// becomes of a request without one.
type part struct {
	name    string
	from    builtin
	source  identity.Source // with fromSource
	hide    bool
	missing Missing
	// chosen says that any client can write the value, with nobody's leave;
	// anybodys, that it need not even be a credential, which somebody checks.
	chosen, anybodys bool
}

// builtin is a value that is found without an identity.
type builtin uint8

const (
	fromSource builtin = iota
	fromIP
	fromPath
	fromMethod
	fromHost
)

// builtins are the names in per that are no identity's.
var builtins = map[string]builtin{"ip": fromIP, "path": fromPath, "method": fromMethod, "host": fromHost}

// defaultMissing is what a missing value does if nobody says anything else.
var defaultMissing = Missing{Kind: MissingStatus, Status: 400}

func (p *part) value(v *view) (descriptors.Value, bool) {
	found := descriptors.Value{Kind: p.name}
	ok := true
	switch p.from {
	case fromIP:
		found.Text = v.callerIP()
	case fromPath:
		found.Text = v.path
	case fromMethod:
		found.Text = v.attrs.Method
	case fromHost:
		found.Text = v.host
	default:
		found.Text, ok = p.source.Value(v.attrs, v.id)
	}
	if p.hide {
		found.Form = descriptors.Hidden
	}
	return found, ok && found.Text != ""
}

// instead returns what takes the place of a missing value, if anything does.
func (p *part) instead(v *view) (descriptors.Value, bool) {
	switch p.missing.Kind {
	case MissingShare:
		return descriptors.Value{Kind: p.name, Form: descriptors.Shared}, true
	case MissingIP:
		ip := v.callerIP()
		return descriptors.Value{Kind: "ip", Text: ip}, ip != ""
	default:
		return descriptors.Value{}, false
	}
}

// status returns the status that refuses a request without the value, 0 for
// none: the rule does not apply.
func (p *part) status() int {
	switch p.missing.Kind {
	case MissingSkip:
		return 0
	case MissingStatus:
		return p.missing.Status
	default:
		return defaultMissing.Status
	}
}

// values appends to space the values that the rule's bucket is for. If one is
// missing, and nothing takes its place, it returns that part.
func (r *rule) values(v *view, space []descriptors.Value) ([]descriptors.Value, *part) {
	for i := range r.per {
		p := &r.per[i]
		value, ok := p.value(v)
		if !ok {
			value, ok = p.instead(v)
		}
		if !ok {
			return nil, p
		}
		space = append(space, value)
	}
	return space, nil
}

// perSource is the source of a name in per that is no builtin and no identity.
// It takes anybody's word: chosen says whether that is a client's.
func perSource(name string) (spec identity.SourceSpec, chosen, ok bool) {
	kind, key, ok := strings.Cut(name, ".")
	spec.Always = true
	switch kind {
	case "header":
		spec.Header, chosen = key, true
	case "query":
		spec.Query, chosen = key, true
	case "cookie":
		spec.Cookie, chosen = key, true
	case "metadata":
		spec.Metadata = key
	case "context":
		spec.Context = key
	default:
		return spec, false, false
	}
	return spec, chosen, ok && key != ""
}
