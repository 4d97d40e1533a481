package policy

import (
	"net/netip"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A Spec is one policy as its author wrote it, typed but not yet checked as a
// whole. Compile checks it. Field paths in faults are those of the policy
// file: rules[2].limits[0].rate.
type Spec struct {
	// File names the policy in faults and logs.
	File       string
	Domain     string
	Trust      identity.EdgeSpec
	Identities []IdentitySpec // in the file's order
	Exempt     ExemptSpec
	Rules      []RuleSpec
	// Tree takes the place of Rules in a file of envoyproxy/ratelimit's
	// format; then there is nothing else but the Domain and OnError. It is
	// nil where there are rules.
	Tree    []NodeSpec
	Headers Headers
	OnError OnError
}

// IdentitySpec is one entry of identities.
type IdentitySpec struct {
	Name    string
	Source  identity.SourceSpec
	Missing Missing
}

// ExemptSpec is what is never charged: any of these.
type ExemptSpec struct {
	Paths   []string
	Methods []string
	IPs     []netip.Prefix
}

// RuleSpec is one rule. It has either Match, Per and Missing, or Descriptor.
type RuleSpec struct {
	Name       string
	Match      *MatchSpec
	Per        []string
	Missing    Missing
	Descriptor []EntrySpec
	// Cost is a whole number or an expression in CEL. "" means 1.
	Cost string
	// Limits are the rule's, unless it is Unlimited.
	Limits    []bucket.Limit
	Unlimited bool
	// Overrides take the place of Limits, the first that matches.
	Overrides []OverrideSpec
	Shadow    bool
	Stop      bool
	// Debt takes costs that are known only afterwards, up to MaxDebt tokens
	// beyond the burst; 0 means bucket.DefaultDebt bursts.
	Debt    bool
	MaxDebt int64
	// Lease has replicas take tokens ahead; nil has them ask for each.
	Lease *LeaseSpec
	// OnError is the rule's own word; nil means the file's.
	OnError *OnError
	Deny    Deny
}

// LeaseSpec says how many tokens a replica takes ahead at a time.
type LeaseSpec struct {
	Share int64         // of the burst, in ten-thousandths, up to MostShare; 0 means DefaultShare
	For   time.Duration // from ShortestLease to LongestLease; 0 means DefaultLease
}

// The bounds and defaults of a LeaseSpec.
const (
	DefaultShare  = 100 // 1 %
	MostShare     = 5000
	DefaultLease  = 100 * time.Millisecond
	ShortestLease = 10 * time.Millisecond
	LongestLease  = 10 * time.Second
)

// MatchSpec is which requests a rule is for. All that is set must hold; the
// zero value matches every request.
type MatchSpec struct {
	Path    string
	Methods []string
	Hosts   []string
	// Headers take anybody's word, so that a client can always leave them out.
	Headers []HeaderSpec
	// When is an expression in CEL. "" means none.
	When string
}

// HeaderSpec is a header that a request must have: the value, or a list with
// it, in any case.
type HeaderSpec struct{ Name, Value string }

// OverrideSpec says which other limits hold for some of a rule's requests. All
// that is set of When and Values must hold.
type OverrideSpec struct {
	When   string // an expression in CEL; "" means none
	Values []ValuesSpec
	// Limits are the other ones, unless there are none: Unlimited.
	Limits    []bucket.Limit
	Unlimited bool
}

// ValuesSpec is one name, as in per or of a descriptor's entry, and the values
// of it that an override is for: one of them. They are plain, whatever becomes
// of them in a key. Those of ip are addresses and networks.
type ValuesSpec struct {
	Name   string
	Values []string
}

// path returns the rule's path pattern, "" for none.
func (r *RuleSpec) path() string {
	if r.Match == nil {
		return ""
	}
	return r.Match.Path
}

// EntrySpec is one entry that a descriptor rule wants. Any says that every
// value will do.
type EntrySpec struct {
	Key, Value string
	Any        bool
}

// Missing says what becomes of a request that lacks what a rule's per names.
type Missing struct {
	Kind   MissingKind
	Status int // with MissingStatus: 400 to 499
}

// MissingKind is a way to treat a request without an identity.
type MissingKind uint8

// What a missing identity does. The zero value leaves the choice to the
// identity, whose own zero value is the documented default, status 400.
const (
	MissingUnset  MissingKind = iota
	MissingStatus             // deny before anything is charged
	MissingSkip               // the rule does not apply
	MissingIP                 // the caller is its address instead
	MissingShare              // all such callers share one bucket
)

// A Fault is something wrong in a policy, with its place.
type Fault struct {
	File string // of the policy, as its Spec names it
	Path string // of the field: rules[2].limits[0].rate
	// Line and Column are a place in the field's text, from 1. 0 means the
	// field as a whole.
	Line, Column int

	Found   string
	Want    string
	Do      string // what to do about it; may be empty
	Warning bool   // the policy works, but hardly as meant
}
