// Package policy says which rules apply to a request, and what each of them
// charges: compiled matching, from a request's attributes and identity or from
// a descriptor to the buckets that it touches.
//
// It reads no files: package policyfile makes a Set from YAML. It asks no
// store: package limiter does.
package policy

import (
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A Request is a request as the rules see it.
type Request struct {
	// Attributes are read only. Nil ones are those of an empty request.
	Attributes *identity.Attributes
	// Identity is what the Edge of the same policy made of Attributes.
	Identity identity.Identity
}

// A Match is what a policy makes of a request or a descriptor.
type Match struct {
	// Exempt says that no rule was looked at: the request is allowed,
	// nothing is charged and no header is sent.
	Exempt bool
	// Refusal, unless nil, denies the request before anything is charged.
	Refusal *Refusal
	// Applied are the rules that apply, in the file's order; none with a
	// Refusal.
	Applied []Applied
	// Failures are the expressions that had no value. What a rule does then
	// is done already.
	Failures []Failure
	// Spare says that a quota is among what was asked for that charges
	// nothing, so that not all of a request's quotas can deny.
	Spare bool
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
	// Unlimited says that the rule charges this request nothing. The Charge
	// has no Limits then, but the Key of the rule's bucket.
	Unlimited bool
	// Quota says that a denial by this bucket denies the request only if all
	// quotas of the request deny. A quota is charged alone.
	Quota bool
	// Brought says that the request brought the limit with it, in place of the
	// rule's limits or, in a tree, of all that is said there.
	Brought bool
	// Way is the way through a tree that metrics show: the rule's name, unless
	// the rule wants values of the request in it. It is empty for other rules.
	Way string
}

// A Policy is one compiled file: its trusted edge, its identities and its
// rules. Compile makes it. It never changes and is safe for concurrent use.
type Policy struct {
	// File is the Spec's.
	File   string
	Domain string
	// Edge finds the Identity of a Request.
	Edge identity.Edge

	keyer    descriptors.Keyer
	believed []string // headers that expressions see whoever sent them
	exempt   exempt
	rules    []rule // in the file's order
	paths    pathIndex
	entries  entryNode
	tree     *tree // nil where there are rules
	answers  bool  // it has rules for requests, not descriptors alone
	words    words
}

// A rule is a compiled rule. It has either match and per or fixed and open.
type rule struct {
	*Rule
	limits    *bucket.Limits // nil: none
	overrides []override
	stop      bool

	match matcher // the path apart, which is in Policy.paths
	when  *expression
	per   []part
	cost  cost

	order []int // of a descriptor's entries in the key
}

// Rules lists the rules in the file's order. The slice is the caller's.
func (p *Policy) Rules() []*Rule {
	rules := make([]*Rule, 0, len(p.rules))
	for i := range p.rules {
		rules = append(rules, p.rules[i].Rule)
	}
	if p.tree != nil {
		for _, l := range p.tree.leaves {
			rules = append(rules, l.Rule)
		}
	}
	return rules
}

// ForRequest returns the rules for requests that apply to r, and what they
// charge. A rule that must be refused for what r lacks refuses all of r, unless
// a rule before it stopped the search. A shadow rule neither refuses nor stops:
// it does not apply to a request that lacks what it asks for.
func (p *Policy) ForRequest(r Request) Match {
	v := p.view(r)
	if p.exempt.covers(&v) {
		return Match{Exempt: true}
	}
	m := p.match(&v)
	m.Failures = v.failures
	return m
}

func (p *Policy) match(v *view) (m Match) {
	var space [32]int32
	found := p.paths.find(v.path, space[:0])
	for n, id := range found {
		rule, before := &p.rules[id], len(v.failures)
		if !rule.matches(v) {
			continue
		}
		sure := len(v.failures) == before
		charge, lacks := rule.charge(p, v)
		if status := rule.refusal(lacks); status != 0 {
			return Match{Refusal: &Refusal{Rule: rule.Rule, Name: lacks.name, Status: status}}
		}
		if lacks != nil {
			continue
		}
		if m.Applied == nil {
			m.Applied = make([]Applied, 0, len(found)-n)
		}
		m.Applied = append(m.Applied, Applied{Rule: rule.Rule, Charge: charge, Unlimited: charge.Limits == nil})
		if rule.stop && sure {
			break
		}
	}
	return m
}

// matches says that r, whose path v has, is for v. A when that fails is true:
// a rule must not be escaped by what makes it fail. Nor must the rules after
// it, which such a rule does not stop.
func (r *rule) matches(v *view) bool {
	return r.match.matches(v) && (r.when == nil || r.when.holds(v, r.Rule, true))
}

// charge returns what r charges for v, or the part that v lacks.
func (r *rule) charge(p *Policy, v *view) (bucket.Charge, *part) {
	var space [8]descriptors.Value
	values, lacks := r.values(v, space[:0])
	if lacks != nil {
		return bucket.Charge{}, lacks
	}
	charge := r.chargeFor(p, values)
	charge.Limits = r.limitsFor(v)
	if charge.Limits != nil {
		charge.Cost = r.cost.of(v, r.Rule)
	}
	return charge, nil
}

func (r *rule) chargeFor(p *Policy, values []descriptors.Value) bucket.Charge {
	return bucket.Charge{
		Key:    p.keyer.Key(r.Domain, r.Name, values...),
		Limits: r.limits,
		Cost:   1,
		Shadow: r.Shadow,
	}
}

// refusal returns the status that refuses a request which lacks a part, 0 for
// none.
func (r *rule) refusal(lacks *part) int {
	if lacks == nil || r.Shadow {
		return 0
	}
	return lacks.status()
}
