// Package policy says which rules apply to a request, and what each of them
// charges: compiled matching, from a request's attributes and identity or from
// a descriptor to the buckets that it touches.
//
// It reads no files: package policyfile makes a Set from YAML. It asks no
// store: package limiter does.
package policy

import (
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A Request is a request as the rules see it.
type Request struct {
	Attributes *identity.Attributes
	Identity   identity.Identity
}

// A Match is what a policy makes of a request or a descriptor.
type Match struct {
	// Exempt says that no rule was looked at: the request is allowed,
	// nothing is charged and no header is sent.
	Exempt bool
	// Refusal, unless nil, denies the request before anything is charged.
	Refusal *Refusal
	// Applied are the rules that apply, in the file's order.
	Applied []Applied
}

// A Refusal denies a request for what it lacks.
type Refusal struct {
	Rule   *Rule
	Name   string // what is missing: a name in the rule's per
	Status int    // 400 to 499
}

// Applied is one rule that applies to a request: the bucket that it charges.
// It carries all that the steps after it need.
type Applied struct {
	Rule *Rule
	bucket.Charge
}

// A Rule is what later steps need to know of a rule: names and prepared
// answers. It never changes once the policy is compiled.
type Rule struct {
	Domain string // of its file
	Name   string
	Shadow bool
	// OnError is what becomes of a request when the store does not answer.
	OnError OnError
	Deny    Deny
	Headers *Headers // its file's; never nil in a compiled policy
}

// OnError is what a rule wants when its store does not answer.
type OnError uint8

// What a rule wants when its store does not answer. The zero value is Local,
// the documented default.
const (
	Local OnError = iota
	Allow
	Deny503 // deny: 503, over RLS OVER_LIMIT
)

// Deny is the answer to a denied request.
type Deny struct {
	Status      int    // 0 means 429
	ContentType string // "" with a body means text/plain
	Body        string // with {path}, {rule}, {retry_after}, {method} and {host}
}

// Headers says which rate-limit headers an answer carries, under which names.
type Headers struct {
	Style                                       Style
	Limit, Remaining, Reset, RetryAfter, Policy string // "" means the style's own name
}

// Style is a family of rate-limit headers.
type Style uint8

// The styles. The zero value is the documented default.
const (
	XRateLimit Style = iota
	IETF
	Both
	None
)
