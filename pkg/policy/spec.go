package policy

import (
	"net/netip"

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
	Headers    Headers
	OnError    OnError
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
	Limits     []bucket.Limit
	Shadow     bool
	Stop       bool
	// OnError is the rule's own word; nil means the file's.
	OnError *OnError
	Deny    Deny
}

// MatchSpec is which requests a rule is for. All that is set must hold; the
// zero value matches every request.
type MatchSpec struct {
	Path    string
	Methods []string
	Hosts   []string
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
	File    string // of the policy, as its Spec names it
	Path    string // of the field: rules[2].limits[0].rate
	Found   string
	Want    string
	Do      string // what to do about it; may be empty
	Warning bool   // the policy works, but hardly as meant
}
