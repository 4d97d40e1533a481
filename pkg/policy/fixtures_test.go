package policy_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// hourly is a limit of n an hour.
func hourly(n int64) []bucket.Limit {
	return []bucket.Limit{{Tokens: n, Per: time.Hour}}
}

// compile returns the policy of s, in which nothing but warnings may be wrong.
func compile(t testing.TB, s policy.Spec) *policy.Policy {
	t.Helper()
	if s.Domain == "" {
		s.Domain = "edge"
	}
	p, faults := policy.Compile(s, policy.Options{HashKey: []byte("k")})
	if p == nil {
		t.Fatalf("Compile(%+v) = %+v, want no faults", s, faults)
	}
	return p
}

// rules is a Spec of rules alone; a rule without a limit gets 100 an hour.
func rules(rs ...policy.RuleSpec) policy.Spec {
	for i := range rs {
		if rs[i].Limits == nil && !rs[i].Unlimited {
			rs[i].Limits = hourly(100)
		}
	}
	return policy.Spec{Domain: "edge", Rules: rs}
}

// A call is a request in few words.
type call struct {
	method, path, host string
	peer               string
	headers            map[string]string
	metadata           map[string]map[string]any
	context            map[string]string
}

func (c call) attributes() *identity.Attributes {
	a := &identity.Attributes{Method: c.method, Path: c.path, Host: c.host, Headers: c.headers, Metadata: c.metadata, Context: c.context}
	if a.Method == "" {
		a.Method = "GET"
	}
	if a.Path == "" {
		a.Path = "/"
	}
	if c.peer != "" {
		a.Source = netip.MustParseAddr(c.peer)
	}
	return a
}

// ask returns what p makes of c.
func ask(p *policy.Policy, c call) policy.Match {
	a := c.attributes()
	return p.ForRequest(policy.Request{Attributes: a, Identity: p.Edge.Identify(a)})
}

// names returns the names of the rules in applied.
func names(applied []policy.Applied) []string {
	var list []string
	for _, a := range applied {
		list = append(list, a.Rule.Name)
	}
	return list
}

var now = time.Unix(1_000_000, 0)

// A ledger charges applied rules as a store would, at the moment now: all or none.
type ledger map[string]bucket.Bucket

// decide returns A for allowed, D for denied and X for exempt.
func (l ledger) decide(m policy.Match) byte {
	switch {
	case m.Exempt:
		return 'X'
	case m.Refusal != nil:
		return 'D'
	case slices.ContainsFunc(m.Applied, func(a policy.Applied) bool {
		return !a.Unlimited && !l[a.Key].Settle(a.Limits, now).Holds(a.Limits, a.Cost)
	}):
		return 'D'
	}
	for _, a := range m.Applied {
		if !a.Unlimited {
			l[a.Key], _ = l[a.Key].Take(a.Limits, now, a.Cost)
		}
	}
	return 'A'
}
