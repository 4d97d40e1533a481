package explain

import (
	"fmt"
	"net/netip"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// identify sets who the request comes from.
func (r *Report) identify(p *policy.Policy, a *identity.Attributes, t identity.Trace, named []policy.Value) {
	id := &Identity{
		Client: address(t.Identity.Client), Caller: p.Edge.Caller(t.Identity.Client), Evidence: t.Evidence.String(),
		Believed: t.Trusted, Trust: t.Trust, Header: t.Header, Hops: []Hop{}, More: t.More, Named: []Value{},
	}
	for i := range t.Hops {
		id.Hops = append(id.Hops, hopOf(t, i, a))
	}
	for _, v := range named {
		id.Named = append(id.Named, valueOf(v))
	}
	r.Identity = id
	r.advise(p, a, t)
}

// address writes a, "" for none.
func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func hopOf(t identity.Trace, i int, a *identity.Attributes) Hop {
	h := t.Hops[i]
	hop := Hop{From: t.Header, Text: cut(h.Text), Address: address(h.Addr), Verdict: h.Verdict.String(), Client: i == t.Client}
	if isPeer := h.Text == "" && i == 0 && t.Trust != "stamp" && (a.Pipe || a.Source.IsValid()); isPeer {
		hop.From, hop.Why = "peer", peerWhy(t, h.Verdict)
		if a.Pipe {
			hop.Text = "unix"
		}
	} else {
		hop.Why = entryWhy(t, h.Verdict, hop.Client)
	}
	return hop
}

func peerWhy(t identity.Trace, v identity.Verdict) string {
	switch {
	case v == identity.Trusted:
		return "in trust.proxies: its " + t.Header + " is read" + ending(t.Client == 0, ", and says nothing better: the client")
	case v == identity.Counted:
		return "trust.hops counts from here" + ending(t.Client == 0, ", and finds nobody further: the client")
	case t.Trust == "none":
		return "trust names nobody, so the peer is the client"
	default:
		return "not in trust.proxies: the client"
	}
}

func entryWhy(t identity.Trace, v identity.Verdict, client bool) string {
	switch v {
	case identity.Trusted:
		return "in trust.proxies: goes on" + ending(client, ", to no better one: the client")
	case identity.Untrusted:
		return "not in trust.proxies: the client"
	case identity.Counted:
		return "counted" + ending(client, ", to the end of trust.hops: the client")
	case identity.Repeated:
		return "the peer again: not counted twice"
	case identity.Garbage:
		return "no address: nothing left of it is believed"
	case identity.Stamped:
		return "Envoy's own word: the client"
	}
	if len(t.Hops) > 0 && t.Hops[0].Verdict == identity.Untrusted {
		return "not read: anybody may have written it"
	}
	return "not read: whoever wrote it is not trusted"
}

func ending(so bool, text string) string {
	if so {
		return text
	}
	return ""
}

// advise says what to do about a forwarded header that nobody vouches for.
func (r *Report) advise(p *policy.Policy, a *identity.Attributes, t identity.Trace) {
	if p.Edge.Unread(a, t.Identity) == "" {
		return
	}
	r.Advice = append(r.Advice, fmt.Sprintf("%s was sent, and is not believed. If the peer is a proxy of yours that sets it, say so: trust.proxies: [%s]",
		t.Header, netip.PrefixFrom(t.Identity.Client, t.Identity.Client.BitLen())))
}

func valueOf(v policy.Value) Value {
	value := Value{Name: v.Name, Value: cut(v.Text), Hidden: v.Hidden && v.Why == identity.Present}
	if v.Why != identity.Present {
		value.Missing = v.Why.String()
		value.Why = absence(v.Why) + ": " + consequence(v.Missing)
	}
	return value
}

func absence(why identity.Absence) string {
	switch why {
	case identity.Absent:
		return "not there"
	case identity.Empty:
		return "empty"
	case identity.Twice:
		return "there more than once, or with a comma"
	case identity.Unbelieved:
		return "not believed, since the peer is not in trust.proxies"
	default:
		return "not in the form that it must have"
	}
}

func consequence(m policy.Missing) string {
	switch m.Kind {
	case policy.MissingSkip:
		return "the rule does not apply"
	case policy.MissingIP:
		return "the address takes its place"
	case policy.MissingShare:
		return "all who lack it share one bucket"
	case policy.MissingStatus:
		return fmt.Sprintf("refused with %d", m.Status)
	default:
		return "refused with 400"
	}
}
