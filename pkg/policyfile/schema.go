package policyfile

import (
	"net/netip"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// This file is what a policy file looks like: a form for each kind of mapping,
// a line for each field.

// policyFile reads a whole file.
func policyFile(d *decoder, f field) {
	s := &d.spec
	form{
		fields: map[string]reader{
			"domain":     text(&s.Domain),
			"trust":      trust(&s.Trust),
			"identities": named(&s.Identities, caller),
			"exempt":     exempt(&s.Exempt),
			"rules":      list(&s.Rules, rule),
			"headers":    headers(&s.Headers),
			"on_error":   onError(&s.OnError),
		},
		required: []string{"domain", "rules"},
	}.read(d, f)
}

// wanted is what a fault says of a required field that is not there.
var wanted = map[string]string{
	"domain": "a domain, such as domain: edge",
	"rules":  "a list of rules",
	"name":   "a name of its own, which keys and metrics carry",
	"limits": "at least one limit, such as [{rate: 20/10s}]",
	"rate":   wantRate,
	"key":    "the key of an entry, such as generic_key",
}

func trust(e *identity.EdgeSpec) reader {
	return form{fields: map[string]reader{
		"proxies":     list(&e.Proxies, network),
		"hops":        count(&e.Hops),
		"stamp":       text(&e.Stamp),
		"header":      text(&e.Header),
		"ipv4_prefix": count(&e.IPv4Prefix),
		"ipv6_prefix": count(&e.IPv6Prefix),
	}}.read
}

func network(p *netip.Prefix) reader { return parsed(p, wantNetwork, parseNetwork) }

func caller(id *policy.IdentitySpec, name string) reader {
	id.Name = name
	s := &id.Source
	return form{fields: map[string]reader{
		"header":    text(&s.Header),
		"claim":     text(&s.Claim),
		"provider":  text(&s.Provider),
		"bearer":    flag(&s.Bearer),
		"cookie":    text(&s.Cookie),
		"query":     text(&s.Query),
		"metadata":  text(&s.Metadata),
		"context":   text(&s.Context),
		"principal": flag(&s.Principal),
		"believe":   choice(&s.Always, option[bool]{"always", true}),
		"commas":    flag(&s.Commas),
		"hash":      flag(&s.Hash),
		"missing":   missing(&id.Missing),
	}}.read
}

func exempt(e *policy.ExemptSpec) reader {
	return form{fields: map[string]reader{
		"paths":   list(&e.Paths, text),
		"methods": list(&e.Methods, text),
		"ips":     list(&e.IPs, network),
	}}.read
}

func rule(r *policy.RuleSpec) reader {
	return form{
		fields: map[string]reader{
			"name":       text(&r.Name),
			"match":      match(&r.Match),
			"per":        list(&r.Per, text),
			"missing":    missing(&r.Missing),
			"descriptor": list(&r.Descriptor, entry),
			"cost":       cost(&r.Cost),
			"limits":     list(&r.Limits, limit),
			"unlimited":  flag(&r.Unlimited),
			"overrides":  list(&r.Overrides, override),
			"shadow":     flag(&r.Shadow),
			"stop":       flag(&r.Stop),
			"debt":       flag(&r.Debt),
			"max_debt":   count(&r.MaxDebt),
			"lease":      lease(&r.Lease),
			"on_error":   ownOnError(&r.OnError),
			"deny":       deny(&r.Deny),
		},
		later:    laterInRule,
		required: []string{"name", "limits"},
		instead:  noLimits,
	}.read
}

var laterInRule = map[string]string{
	"ban": "leave it out: a denial bans nobody",
}

// noLimits is what takes the place of limits.
var noLimits = map[string]string{"limits": "unlimited"}

// lease reads how tokens are taken ahead. {} is by the defaults.
func lease(into **policy.LeaseSpec) reader {
	return func(d *decoder, f field) {
		l := new(policy.LeaseSpec)
		*into = l
		form{fields: map[string]reader{
			"share": parsed(&l.Share, wantShare, parseShare),
			"for":   parsed(&l.For, wantLasts, parseLasts),
		}}.read(d, f)
	}
}

// match reads which requests a rule is for. {} is all of them.
func match(into **policy.MatchSpec) reader {
	return func(d *decoder, f field) {
		m := new(policy.MatchSpec)
		*into = m
		form{fields: map[string]reader{
			"path":    text(&m.Path),
			"methods": list(&m.Methods, text),
			"hosts":   list(&m.Hosts, text),
			"headers": named(&m.Headers, header),
			"when":    expression(&m.When),
		}}.read(d, f)
	}
}

func header(h *policy.HeaderSpec, name string) reader {
	h.Name = name
	return text(&h.Value)
}

func override(o *policy.OverrideSpec) reader {
	return form{
		fields: map[string]reader{
			"when":      expression(&o.When),
			"values":    named(&o.Values, values),
			"limits":    list(&o.Limits, limit),
			"unlimited": flag(&o.Unlimited),
		},
		required: []string{"limits"},
		instead:  noLimits,
	}.read
}

func values(v *policy.ValuesSpec, name string) reader {
	v.Name = name
	return list(&v.Values, anyText)
}

func entry(e *policy.EntrySpec) reader {
	return parsed(e, "key=value, or a key alone for any value", parseEntry)
}

func limit(l *bucket.Limit) reader {
	return func(d *decoder, f field) {
		r := rate{tokens: 1, per: time.Second} // should it be faulty
		form{
			fields: map[string]reader{
				"name":   text(&l.Name),
				"rate":   parsed(&r, wantRate, parseRate),
				"burst":  count(&l.Burst),
				"refill": refill(&l.Refill),
				"zone":   parsed(&l.Zone, wantZone, parseZone),
			},
			required: []string{"rate"},
		}.read(d, f)
		l.Tokens, l.Per, l.Calendar = r.tokens, r.per, r.calendar
	}
}

func refill(r *bucket.Refill) reader {
	options := make([]option[bucket.Refill], 0, 4)
	for _, mode := range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Aligned, bucket.Sliding} {
		options = append(options, option[bucket.Refill]{mode.String(), mode})
	}
	return choice(r, options...)
}

const wantMissing = "a status from 400 to 499, skip, ip or share"

// missing reads a status, or a word.
func missing(m *policy.Missing) reader {
	word := parsed(&m.Kind, wantMissing, parseMissing)
	status := count(&m.Status)
	return func(d *decoder, f field) {
		if f.node.ShortTag() != "!!int" {
			word(d, f)
			return
		}
		m.Kind = policy.MissingStatus
		status(d, f)
	}
}

func parseMissing(s string) (policy.MissingKind, *mismatch) {
	switch s {
	case "skip":
		return policy.MissingSkip, nil
	case "ip":
		return policy.MissingIP, nil
	case "share":
		return policy.MissingShare, nil
	}
	if wholeNumber.MatchString(s) {
		return policy.MissingUnset, &mismatch{wantMissing, "write the status without quotes"}
	}
	return policy.MissingUnset, &mismatch{want: wantMissing}
}

func onError(into *policy.OnError) reader {
	return choice(
		into, option[policy.OnError]{"allow", policy.Allow},
		option[policy.OnError]{"deny", policy.Deny503}, option[policy.OnError]{"local", policy.Local},
	)
}

// ownOnError reads a rule's on_error, which may be the same as the zero value
// and yet not the file's.
func ownOnError(into **policy.OnError) reader {
	return func(d *decoder, f field) {
		*into = new(policy.OnError)
		onError(*into)(d, f)
	}
}

func deny(into *policy.Deny) reader {
	return form{fields: map[string]reader{
		"status":       count(&into.Status),
		"content_type": text(&into.ContentType),
		"body":         anyText(&into.Body),
	}}.read
}

func headers(h *policy.Headers) reader {
	names := form{fields: map[string]reader{
		"limit":       text(&h.Limit),
		"remaining":   text(&h.Remaining),
		"reset":       text(&h.Reset),
		"retry_after": text(&h.RetryAfter),
		"policy":      text(&h.Policy),
		"rule":        text(&h.Rule),
	}}
	return form{fields: map[string]reader{
		"style": choice(
			&h.Style, option[policy.Style]{"x-ratelimit", policy.XRateLimit}, option[policy.Style]{"ietf", policy.IETF},
			option[policy.Style]{"both", policy.Both}, option[policy.Style]{"none", policy.None},
		),
		"names": names.read,
		"cors":  list(&h.CORS, text),
	}}.read
}
