package policy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// entries reads a descriptor rule as it is written.
func entries(texts ...string) []policy.EntrySpec {
	var list []policy.EntrySpec
	for _, text := range texts {
		e, has := descriptors.Split(text)
		list = append(list, policy.EntrySpec{Key: e.Key, Value: e.Value, Any: !has})
	}
	return list
}

func descriptor(pairs ...string) descriptors.Descriptor {
	var d descriptors.Descriptor
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, descriptors.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func TestForDescriptor(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(
		policy.RuleSpec{Name: "any", Descriptor: entries("a")},
		policy.RuleSpec{Name: "one", Descriptor: entries("a=1")},
		policy.RuleSpec{Name: "empty", Descriptor: entries("a=")},
		policy.RuleSpec{Name: "deep", Descriptor: entries("a=1", "b")},
		policy.RuleSpec{Name: "request"},
		policy.RuleSpec{Name: "deeper", Descriptor: entries("a", "b=2")},
		policy.RuleSpec{Name: "again", Descriptor: entries("a")},
		policy.RuleSpec{Name: "stop", Descriptor: entries("s"), Stop: true},
		policy.RuleSpec{Name: "after", Descriptor: entries("s=1")},
		policy.RuleSpec{Name: "equals", Descriptor: entries("e=x=y")},
	))
	for _, test := range []struct {
		d    descriptors.Descriptor
		want []string
	}{
		{nil, nil},
		{descriptor("a", "0"), []string{"any", "again"}},
		{descriptor("a", "1"), []string{"any", "one", "again"}},
		{descriptor("a", ""), []string{"any", "empty", "again"}},
		{descriptor("a", "1", "b", "2"), []string{"deep", "deeper"}},
		{descriptor("a", "3", "b", "2"), []string{"deeper"}},
		{descriptor("b", "2", "a", "1"), nil},
		{descriptor("a", "1", "b", "2", "c", "3"), nil},
		{descriptor("A", "1"), nil},
		{descriptor("s", "1"), []string{"stop"}},
		{descriptor("e", "x=y"), []string{"equals"}},
	} {
		if diff := cmp.Diff(test.want, names(p.ForDescriptor(test.d))); diff != "" {
			t.Errorf("ForDescriptor(%v) (-want +got):\n%s", test.d, diff)
		}
	}
	if m := ask(p, call{}); len(m.Applied) != 1 {
		t.Errorf("ForRequest(/) applies %v, want the rule for requests alone", names(m.Applied))
	}
}

func TestForDescriptorMasksAddresses(t *testing.T) {
	t.Parallel()
	s := rules(
		policy.RuleSpec{Name: "remote", Descriptor: entries("remote_address")},
		policy.RuleSpec{Name: "masked", Descriptor: entries("masked_remote_address")},
		policy.RuleSpec{Name: "other", Descriptor: entries("address")},
	)
	s.Trust = identity.EdgeSpec{IPv4Prefix: 24}
	p := compile(t, s)
	key := func(d descriptors.Descriptor) string {
		before := slices.Clone(d)
		applied := p.ForDescriptor(d)
		if len(applied) != 1 {
			t.Fatalf("ForDescriptor(%v) applies %v, want one rule", d, names(applied))
		}
		if diff := cmp.Diff(before, d); diff != "" {
			t.Errorf("ForDescriptor changed its descriptor (-before +after):\n%s", diff)
		}
		return applied[0].Key
	}
	for _, test := range []struct {
		name, a, b string
		same       bool
	}{
		{"remote_address", "::ffff:9.9.9.9", "9.9.9.9", true},
		{"remote_address", "9.9.9.1", "9.9.9.2", true},
		{"remote_address", "9.9.8.1", "9.9.9.1", false},
		{"remote_address", "2001:db8::1", "2001:db8::2", true},
		{"remote_address", "2001:db8:0:1::1", "2001:db8::1", false},
		{"remote_address", "fe80::1%eth0", "fe80::1", true},
		{"remote_address", "x", "y", false},
		{"remote_address", "", "x", false},
		{"masked_remote_address", "::ffff:9.9.9.9/128", "9.9.9.9/32", true},
		{"masked_remote_address", "9.9.9.0/24", "9.9.9.7/32", true},
		{"masked_remote_address", "9.9.0.0/16", "9.9.0.7/32", false},
		{"masked_remote_address", "9.9.0.0/16", "9.9.1.0/16", true},
		{"masked_remote_address", "2001:db8::/64", "2001:db8::1/128", true},
		{"masked_remote_address", "2001:db8::/48", "2001:db8::/64", false},
		{"masked_remote_address", "9.9.9.9/99", "9.9.9.8/99", false},
		{"address", "::ffff:9.9.9.9", "9.9.9.9", false},
	} {
		same := key(descriptor(test.name, test.a)) == key(descriptor(test.name, test.b))
		if same != test.same {
			t.Errorf("ForDescriptor(%s) of %q and %q give one key: %v, want %v", test.name, test.a, test.b, same, test.same)
		}
	}
}

func TestForDescriptorMasksTheRulesAddresses(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "r", Descriptor: entries("remote_address=::ffff:9.9.9.9")}))
	if got := p.ForDescriptor(descriptor("remote_address", "9.9.9.9")); len(got) != 1 {
		t.Errorf("ForDescriptor(remote_address=9.9.9.9) applies %v, want the rule for ::ffff:9.9.9.9", names(got))
	}
}

func TestForDescriptorSpreadsKeys(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "r", Descriptor: entries("generic_key=login", "remote_address")}))
	first := p.ForDescriptor(descriptor("generic_key", "login", "remote_address", "192.0.2.1"))[0]
	second := p.ForDescriptor(descriptor("generic_key", "login", "remote_address", "192.0.2.2"))[0]
	if first.Key[:10] == second.Key[:10] {
		t.Errorf("keys %s and %s of two callers have one hash tag, want two", first.Key, second.Key)
	}
}

// B049: a caller over its limit does not spend what all callers share.
func TestDescriptorsOfOneRequestAreCharged(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(
		policy.RuleSpec{Name: "site", Descriptor: entries("site=s"), Limits: hourly(100)},
		policy.RuleSpec{Name: "user", Descriptor: entries("user"), Limits: hourly(10)},
	))
	charge := func(user string, cost int64) policy.Match {
		applied := append(p.ForDescriptor(descriptor("site", "s")), p.ForDescriptor(descriptor("user", user))...)
		for i := range applied {
			applied[i].Cost = cost
		}
		return policy.Match{Applied: applied}
	}
	l := make(ledger)
	var got string
	for _, step := range []struct {
		user string
		cost int64
	}{{"u1", 6}, {"u1", 6}, {"u1", 6}, {"u2", 1}} {
		got += string(l.decide(charge(step.user, step.cost)))
	}
	if got != "ADDA" {
		t.Errorf("answers = %s, want ADDA", got)
	}
	site := charge("u1", 1).Applied[0]
	_, r := l[site.Key].Take(site.Limits, now, 0)
	if want := (bucket.Result{Allowed: true, Remaining: 93, FullIn: r.FullIn}); r != want {
		t.Errorf("site's bucket = %+v, want %+v", r, want)
	}
}
