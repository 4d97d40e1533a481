package identity

import (
	"fmt"
	"strings"
)

// A Source says where an identity's value is found. The zero value finds
// nothing. It never changes and is safe for concurrent use.
type Source struct {
	kind       kind
	name       string
	provider   string
	needsTrust bool
	commas     bool
	hash       bool
}

type kind uint8

const (
	none kind = iota
	header
	bearer
	cookie
	query
	claim
	metadata
	context
	principal
)

// NewSource compiles spec. The error is of type SpecErrors and says all that
// is wrong.
func NewSource(spec SourceSpec) (Source, error) {
	kinds := spec.kinds()
	if len(kinds) != 1 {
		return Source{}, SpecErrors{{Found: fields(kinds), Want: "one of header, claim, bearer, cookie, query, metadata, context and principal"}}
	}
	k := kinds[0]
	s := Source{
		kind:       k.kind,
		name:       k.name,
		provider:   spec.Provider,
		needsTrust: k.kind <= query && !spec.Always,
		commas:     spec.Commas,
	}
	if s.kind == header {
		s.name = strings.ToLower(s.name)
	}
	s.hash = spec.Hash || s.secret()
	if faults := spec.check(s); len(faults) > 0 {
		return Source{}, faults
	}
	return s, nil
}

// A setKind is a kind that a spec asks for.
type setKind struct {
	kind  kind
	field string
	name  string
}

// kinds returns the kinds that s sets.
func (s SourceSpec) kinds() []setKind {
	all := []setKind{
		{header, "header", s.Header},
		{claim, "claim", s.Claim},
		{cookie, "cookie", s.Cookie},
		{query, "query", s.Query},
		{metadata, "metadata", s.Metadata},
		{context, "context", s.Context},
	}
	var set []setKind
	for _, k := range all {
		if k.name != "" {
			set = append(set, k)
		}
	}
	if s.Bearer {
		set = append(set, setKind{bearer, "bearer", ""})
	}
	if s.Principal {
		set = append(set, setKind{principal, "principal", ""})
	}
	return set
}

// fields lists what a spec sets.
func fields(set []setKind) string {
	if len(set) == 0 {
		return "none"
	}
	names := make([]string, len(set))
	for i, k := range set {
		names[i] = k.field
	}
	return strings.Join(names, " and ")
}

// check returns what is wrong in s beside its kinds.
func (s SourceSpec) check(compiled Source) SpecErrors {
	var faults SpecErrors
	if s.Provider != "" && compiled.kind != claim {
		faults = append(faults, SpecError{"provider", fmt.Sprintf("%q", s.Provider), "a provider only with claim"})
	}
	if field, want := compiled.checkName(); want != "" {
		faults = append(faults, SpecError{field, fmt.Sprintf("%q", compiled.name), want})
	}
	return faults
}

// checkName returns what was wanted in which field if the name cannot be one.
func (s Source) checkName() (field, want string) {
	switch {
	case s.kind == header && !isToken(s.name):
		return "header", "a header's name"
	case s.kind == cookie && !isToken(s.name):
		return "cookie", "a cookie's name"
	case s.kind == claim && !isPath(s.name):
		return "claim", "a dotted path such as org.id"
	case s.kind == metadata && (!isPath(s.name) || !strings.Contains(s.name, ".")):
		return "metadata", "a filter's name, a dot, and a dotted path"
	default:
		return "", ""
	}
}

// isPath reports whether s is a path whose parts between dots are not empty.
func isPath(s string) bool {
	return s != "" && !strings.HasPrefix(s, ".") && !strings.HasSuffix(s, ".") && !strings.Contains(s, "..")
}

// NeedsTrust reports whether values come from what a client can write, and are
// believed only from a trusted peer.
func (s Source) NeedsTrust() bool { return s.needsTrust }

// Hash reports whether a value must be hidden in a key: because the spec says
// so, or because it is a credential by its nature, which bearer tokens, cookies
// and the headers that carry them are.
func (s Source) Hash() bool { return s.hash }

// secret reports whether values are credentials by their nature.
func (s Source) secret() bool {
	switch s.kind {
	case bearer, cookie:
		return true
	case header:
		return s.name == "authorization" || s.name == "proxy-authorization" || s.name == "cookie"
	default:
		return false
	}
}

// Value finds the value in a, whose identity is id. Without ok it is missing:
// absent, empty, not believed, or there more than once. The text may share
// memory with a.
func (s Source) Value(a *Attributes, id Identity) (value string, ok bool) {
	if s.needsTrust && !id.Trusted {
		return "", false
	}
	value = s.find(a)
	return value, value != ""
}

// find returns the value in a, "" for a missing one.
func (s Source) find(a *Attributes) string {
	switch s.kind {
	case header:
		return s.list(a.Headers[s.name])
	case bearer:
		return s.list(bearerToken(a.Headers["authorization"]))
	case cookie:
		return s.list(findCookie(a.Headers["cookie"], s.name))
	case query:
		return s.list(findQuery(a.Path, s.name))
	case claim:
		return findClaim(a.Metadata[jwtFilter], s.provider, s.name)
	case metadata:
		return findMetadata(a.Metadata, s.name)
	case context:
		return a.Context[s.name]
	case principal:
		return a.Principal
	default:
		return ""
	}
}

// list returns v without spaces around it. One with a comma is missing, unless
// the source takes them: then it is a list, which is the same however its lines
// were joined.
func (s Source) list(v string) string {
	v = trim(v)
	if !strings.Contains(v, ",") {
		return v
	}
	if !s.commas {
		return ""
	}
	return joinList(v)
}

// joinList writes a list with bare commas and without its empty members.
func joinList(v string) string {
	var b strings.Builder
	for member := range strings.SplitSeq(v, ",") {
		member = trim(member)
		if member == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(member)
	}
	return b.String()
}

// bearerToken returns the token of an Authorization header.
func bearerToken(v string) string {
	scheme, token, _ := strings.Cut(strings.ReplaceAll(trim(v), "\t", " "), " ")
	token = trim(token)
	if !strings.EqualFold(scheme, "bearer") || strings.Contains(token, " ") {
		return ""
	}
	return token
}
