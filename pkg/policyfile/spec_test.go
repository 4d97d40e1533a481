package policyfile_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// wholePolicy uses every field there is.
const wholePolicy = `
domain: edge
trust:
  proxies: [10.0.0.0/8, 192.0.2.1, "::ffff:172.16.0.0/108", 2001:db8::/32]
  header: x-forwarded-for
  ipv6_prefix: 56
  ipv4_prefix: 24
identities:
  user:   {header: x-user-id, missing: 401}
  key:    {header: x-api-key, believe: always, hash: true, missing: share, commas: true}
  tenant: {claim: org_id, provider: main, missing: skip}
  token:  {bearer: true, believe: always, missing: ip}
  crumb:  {cookie: session, believe: always}
  asked:  {query: k, believe: always}
  seen:   {metadata: my.filter.name}
  route:  {context: route}
  peer:   {principal: true}
exempt: {paths: [/healthz], methods: [OPTIONS], ips: [10.9.0.0/16, 10.8.0.1]}
rules:
  - name: anonymous
    match: {path: /api/anonymous/*, methods: [GET], hosts: [api.example.com], headers: {Upgrade: websocket, x-b: c}, when: 'request.method != "HEAD"'}
    per: [ip]
    cost: 3
    limits:
      - {rate: 20/10s, refill: interval}
      - {rate: 10/1m, burst: 100, refill: greedy, name: slow}
  - name: sensitive
    match: {path: /api/sensitive/*}
    per: [ip, user]
    missing: 400
    limits: [{rate: 10/10s}]
    on_error: local
    shadow: true
    deny: {status: 503, content_type: application/json, body: '{"blockedUrl":"{path}"}'}
  - name: rest
    match: {}
    per: []
    stop: true
    unlimited: true
    debt: true
    max_debt: 77
    cost: request.size / 1024
    deny: {body: ''}
  - name: login
    descriptor: [generic_key=login=now, remote_address, empty=]
    limits: [{rate: 5/1m}]
    lease: {share: 2.5%, for: 250ms}
    overrides:
      - {when: 'claims.plan == "gold"', limits: [{rate: 7/1s}]}
      - {values: {user: [alice, ''], key: [k]}, unlimited: true}
headers:
  style: both
  names: {limit: X-A, remaining: X-B, reset: X-C, retry_after: X-D, policy: X-E}
on_error: deny
`

func wholeSpec() policy.Spec {
	local := policy.Local
	prefix := netip.MustParsePrefix
	return policy.Spec{
		File: "edge.yaml", Domain: "edge",
		Trust: identity.EdgeSpec{
			Proxies: []netip.Prefix{prefix("10.0.0.0/8"), prefix("192.0.2.1/32"), prefix("172.16.0.0/12"), prefix("2001:db8::/32")},
			Header:  "x-forwarded-for", IPv6Prefix: 56, IPv4Prefix: 24,
		},
		Identities: []policy.IdentitySpec{
			{Name: "user", Source: identity.SourceSpec{Header: "x-user-id"}, Missing: policy.Missing{Kind: policy.MissingStatus, Status: 401}},
			{Name: "key", Source: identity.SourceSpec{Header: "x-api-key", Always: true, Hash: true, Commas: true}, Missing: policy.Missing{Kind: policy.MissingShare}},
			{Name: "tenant", Source: identity.SourceSpec{Claim: "org_id", Provider: "main"}, Missing: policy.Missing{Kind: policy.MissingSkip}},
			{Name: "token", Source: identity.SourceSpec{Bearer: true, Always: true}, Missing: policy.Missing{Kind: policy.MissingIP}},
			{Name: "crumb", Source: identity.SourceSpec{Cookie: "session", Always: true}},
			{Name: "asked", Source: identity.SourceSpec{Query: "k", Always: true}},
			{Name: "seen", Source: identity.SourceSpec{Metadata: "my.filter.name"}},
			{Name: "route", Source: identity.SourceSpec{Context: "route"}},
			{Name: "peer", Source: identity.SourceSpec{Principal: true}},
		},
		Exempt: policy.ExemptSpec{
			Paths: []string{"/healthz"}, Methods: []string{"OPTIONS"},
			IPs: []netip.Prefix{prefix("10.9.0.0/16"), prefix("10.8.0.1/32")},
		},
		Rules: []policy.RuleSpec{
			{
				Name: "anonymous",
				Match: &policy.MatchSpec{
					Path: "/api/anonymous/*", Methods: []string{"GET"}, Hosts: []string{"api.example.com"},
					Headers: []policy.HeaderSpec{{Name: "Upgrade", Value: "websocket"}, {Name: "x-b", Value: "c"}},
					When:    `request.method != "HEAD"`,
				},
				Per: []string{"ip"}, Cost: "3",
				Limits: []bucket.Limit{
					{Tokens: 20, Per: 10 * time.Second, Refill: bucket.Interval},
					{Tokens: 10, Per: time.Minute, Burst: 100, Name: "slow"},
				},
			},
			{
				Name: "sensitive", Match: &policy.MatchSpec{Path: "/api/sensitive/*"}, Per: []string{"ip", "user"},
				Missing: policy.Missing{Kind: policy.MissingStatus, Status: 400},
				Limits:  []bucket.Limit{{Tokens: 10, Per: 10 * time.Second}},
				OnError: &local, Shadow: true,
				Deny: policy.Deny{Status: 503, ContentType: "application/json", Body: `{"blockedUrl":"{path}"}`},
			},
			{
				Name: "rest", Match: &policy.MatchSpec{}, Per: []string{}, Stop: true,
				Unlimited: true, Cost: "request.size / 1024", Debt: true, MaxDebt: 77,
			},
			{
				Name:       "login",
				Descriptor: []policy.EntrySpec{{Key: "generic_key", Value: "login=now"}, {Key: "remote_address", Any: true}, {Key: "empty"}},
				Lease:      &policy.LeaseSpec{Share: 250, For: 250 * time.Millisecond},
				Limits:     []bucket.Limit{{Tokens: 5, Per: time.Minute}},
				Overrides: []policy.OverrideSpec{
					{When: `claims.plan == "gold"`, Limits: []bucket.Limit{{Tokens: 7, Per: time.Second}}},
					{Values: []policy.ValuesSpec{{Name: "user", Values: []string{"alice", ""}}, {Name: "key", Values: []string{"k"}}}, Unlimited: true},
				},
			},
		},
		Headers: policy.Headers{Style: policy.Both, Limit: "X-A", Remaining: "X-B", Reset: "X-C", RetryAfter: "X-D", Policy: "X-E"},
		OnError: policy.Deny503,
	}
}

func TestDecodeEveryField(t *testing.T) {
	t.Parallel()
	got, faults := policyfile.Decode("edge.yaml", []byte(wholePolicy))
	if len(faults) > 0 {
		t.Errorf("Decode(wholePolicy) has faults, want none:\n%v", faults)
	}
	if diff := cmp.Diff(wholeSpec(), got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("Decode(wholePolicy), want less, got more:\n%s", diff)
	}
}

func TestTrustOtherForms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trust string
		want  identity.EdgeSpec
	}{
		{"{}", identity.EdgeSpec{}},
		{"{hops: 2, header: forwarded}", identity.EdgeSpec{Hops: 2, Header: "forwarded"}},
		{"{stamp: x-client-ip}", identity.EdgeSpec{Stamp: "x-client-ip"}},
	} {
		got, faults := policyfile.Decode("", []byte("domain: a\nrules: []\ntrust: "+test.trust))
		if diff := cmp.Diff(test.want, got.Trust); diff != "" || len(faults) > 0 {
			t.Errorf("Decode(trust: %s), want less, got more:\n%s%v", test.trust, diff, faults)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rate   string
		tokens int64
		per    time.Duration
	}{
		{"20/10s", 20, 10 * time.Second},
		{"10/1m", 10, time.Minute},
		{"5/1d", 5, 24 * time.Hour},
		{"100/1w", 100, 7 * 24 * time.Hour},
		{"1/1h30m", 1, 90 * time.Minute},
		{"1/1d12h", 1, 36 * time.Hour},
		{"1/1.5d", 1, 36 * time.Hour},
		{"1/0.1d", 1, 2*time.Hour + 24*time.Minute},
		{"1/2w3d4h5m6s7ms", 1, (17*24+4)*time.Hour + 5*time.Minute + 6*time.Second + 7*time.Millisecond},
		{"0/1s", 0, time.Second},
		{"007/500ms", 7, 500 * time.Millisecond},
		{"9007199254740991/1000000us", 9007199254740991, time.Second},
	} {
		got, faults := policyfile.Decode("", []byte(limited(test.rate)))
		want := []bucket.Limit{{Tokens: test.tokens, Per: test.per}}
		if len(got.Rules) != 1 || !cmp.Equal(got.Rules[0].Limits, want) || len(faults) > 0 {
			t.Errorf("Decode(rate: %s) = %+v, %v, want limits %+v", test.rate, got.Rules, faults, want)
		}
	}
}

func TestBadRates(t *testing.T) {
	t.Parallel()
	for _, rate := range []string{
		"''", "/", "10/", "/10s", "10", "10s", "10/s", "10/10", "10/10S", "10/10q", "10/1M", "10/1h 30m", "10/ 1s", "10 /1s",
		"+10/1s", "-1/1s", "1_000/1s", "0x10/1s", "٣/1s", "10/٣s", "10/1s/2s", "10/1..5s", "10/.5s", "10/5.s",
		"10/0s", "10/0.1ns", "10/-1s", "10/1e3s", "10/01mo", "10/2mo", "10/1y1d", "10/1d1", "10/9999999999999h", "10/106752d", "10/200y",
		"9223372036854775808/1s", "[10, 1s]", "{}", "~", "10.5", "true",
	} {
		_, faults := policyfile.Decode("", []byte(limited(rate)))
		if len(faults) != 1 || faults[0].Path != "rules[0].limits[0].rate" || faults[0].Line != 2 || faults[0].Column != 35 {
			t.Errorf("Decode(rate: %s) = %v, want one fault at 2:35", rate, faults)
		}
	}
}

func TestCalendars(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit string
		want  bucket.Limit
		zone  string
	}{
		{"{rate: 9/1mo, refill: aligned, zone: Europe/Zurich}", bucket.Limit{Tokens: 9, Calendar: bucket.Month, Refill: bucket.Aligned}, "Europe/Zurich"},
		{"{rate: 9/1y, refill: aligned, zone: UTC}", bucket.Limit{Tokens: 9, Calendar: bucket.Year, Refill: bucket.Aligned}, "UTC"},
		{"{rate: 9/1d, refill: aligned, zone: Asia/Kolkata}", bucket.Limit{Tokens: 9, Per: 24 * time.Hour, Refill: bucket.Aligned}, "Asia/Kolkata"},
		{"{rate: 9/1d, refill: sliding}", bucket.Limit{Tokens: 9, Per: 24 * time.Hour, Refill: bucket.Sliding}, ""},
	} {
		spec, faults := policyfile.Decode("", []byte("domain: a\nrules: [{name: a, limits: ["+test.limit+"]}]"))
		if len(faults) > 0 {
			t.Errorf("Decode(%s) = %v, want no faults", test.limit, faults)
			continue
		}
		got, zone := spec.Rules[0].Limits[0], ""
		if got.Zone != nil {
			zone, got.Zone = got.Zone.String(), nil
		}
		if got != test.want || zone != test.zone {
			t.Errorf("Decode(%s) = %+v in %q, want %+v in %q", test.limit, got, zone, test.want, test.zone)
		}
	}
}

func limited(rate string) string {
	return fmt.Sprintf("domain: a\nrules: [{name: a, limits: [{rate: %s}]}]", rate)
}

// A place is marked by § in the text, so that it is known without counting.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, text string }{
		{"domain", "domain: §[a]\nrules: []\n"},
		{"domain", "domain:§\nrules: []\n"},
		{"rulse", "domain: a\n§rulse: []\n"},
		{"trust.hops", "domain: a\nrules: []\ntrust:\n  hops: §two\n"},
		{"trust.proxies[1]", "domain: a\nrules: []\ntrust:\n  proxies:\n  - 10.0.0.0/8\n  - §10.0.0.1/8\n"},
		{"identities.user.hash", "domain: a\nrules: []\nidentities: {user: {header: x-ü, hash: §1}}\n"},
		{"identities.user.believe", "domain: a\nrules: []\nidentities:\n  user:\n    believe: §always, really\n"},
		{"identities.user", "domain: a\nrules: []\nidentities:\n  user:\n    §<<: {}\n"},
		{"exempt.ips[0]", "domain: a\nrules: []\nexempt: {ips: [§'10.0.0']}\n"},
		{"rules[1].limits[1].burst", "domain: a\nrules:\n- {name: a, limits: [{rate: 1/1s}]}\n- name: b\n  limits:\n  - rate: 1/1s\n  - rate: 1/1s\n    burst: §none\n"},
		{"rules[0].limits[0].rate", "domain: a\nrules:\n- name: a\n  limits: [§{}]\n"},
		{"rules[0].match.when", "domain: a\nrules:\n- name: a\n  limits: []\n  match:\n    when: §true\n"},
		{"rules[0].deny.status", "domain: a\nrules:\n- name: a\n  limits: []\n  deny: {body: \"\\\n    x\", status: §'429'}\n"},
		{"rules[0]", "domain: a\nrules: [§x]\n"},
		{"headers.names.reset", "domain: a\nrules: []\nheaders: {names: {reset: §7}}\n"},
		{"", "domain: a\nrules: []\n§---\ndomain: b\n"},
	} {
		before, _, _ := strings.Cut(test.text, "§")
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		_, faults := policyfile.Decode("", []byte(strings.Replace(test.text, "§", "", 1)))
		if len(faults) == 0 || faults[0].Path != test.path || faults[0].Line != line || faults[0].Column != column {
			t.Errorf("Decode(%q) = %v, want %s at %d:%d", test.text, faults, test.path, line, column)
		}
	}
}
