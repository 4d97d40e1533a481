package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// on is a node of an entry as it is written, key=value or a key alone, with a
// limit.
func on(entry string, children ...policy.NodeSpec) policy.NodeSpec {
	n := bare(entry, children...)
	n.Limits = []bucket.Limit{{Tokens: 5, Per: time.Minute, Refill: bucket.Aligned}}
	return n
}

// bare is one without.
func bare(entry string, children ...policy.NodeSpec) policy.NodeSpec {
	key, value, _ := strings.Cut(entry, "=")
	return policy.NodeSpec{Key: key, Value: value, Children: children}
}

// named is n under a name, replacing others.
func named(n policy.NodeSpec, name string, replaces ...string) policy.NodeSpec {
	n.Limits[0].Name, n.Replaces = name, replaces
	return n
}

func shared(n policy.NodeSpec) policy.NodeSpec { n.Share = true; return n }

func tree(t testing.TB, nodes ...policy.NodeSpec) *policy.Policy {
	t.Helper()
	return compile(t, policy.Spec{Domain: "mesh", Tree: nodes})
}

// ways are the names of what applies.
func ways(applied []policy.Applied) []string {
	var names []string
	for _, a := range applied {
		names = append(names, a.Rule.Name)
	}
	return names
}

func TestTreeForDescriptor(t *testing.T) {
	t.Parallel()
	p := tree(t,
		on("a=1", on("b")), on("a=1*"), on("a=*2"), on("a", on("b=9")),
		bare("w=free"), on("w"),
		bare("deep", bare("deeper", on("deepest"))),
		on("x*=1"), on("ke*y"), on("m=*a*b*c"), on("under_score"),
		on("p=a*a"),
	)
	for _, test := range []struct {
		pairs []string
		want  string // "" for none
	}{
		{[]string{"a", "1"}, "a_1"},
		{[]string{"a", "12"}, "a_1*"}, // the first in the file's order, not the closest
		{[]string{"a", "32"}, "a_*2"},
		{[]string{"a", "3"}, "a"},
		{[]string{"a", ""}, "a"},
		{[]string{"a", "1", "b", "8"}, "a_1.b"},
		{[]string{"a", "1", "b", "9"}, "a_1.b"}, // it never goes back to the other branch
		{[]string{"a", "12", "b", "9"}, ""},
		{[]string{"a", "3", "b", "9"}, "a.b_9"},
		{[]string{"a", "3", "b", "8"}, ""},
		{[]string{"a", "3", "b", "9", "c", "1"}, ""},
		{[]string{"w", "free"}, ""}, // listed without a limit, it hides that of the key
		{[]string{"w", "other"}, "w"},
		{[]string{"deep", "1"}, ""},
		{[]string{"deep", "1", "deeper", "2"}, ""},
		{[]string{"deep", "1", "deeper", "2", "deepest", "3"}, "deep.deeper.deepest"},
		{[]string{"xyz", "1"}, "x*_1"},
		{[]string{"x", "1"}, "x*_1"}, // * is no character too
		{[]string{"x", "2"}, ""},
		{[]string{"kessel", "y"}, "ke*y"}, // a * is looked for in key_value
		{[]string{"m", "abc"}, "m_*a*b*c"},
		{[]string{"m", "xaxbxc"}, "m_*a*b*c"},
		{[]string{"m", "acb"}, ""},
		{[]string{"p", "a"}, ""}, // the two ends do not overlap
		{[]string{"p", "aa"}, "p_a*a"},
		{[]string{"under", "score"}, ""}, // an underscore divides nothing
		{[]string{"b", "9", "a", "3"}, ""},
		{[]string{"A", "1"}, ""},
		{nil, ""},
	} {
		var want []string
		if test.want != "" {
			want = []string{test.want}
		}
		d := descriptor(test.pairs...)
		if got := ways(p.ForDescriptor(d)); !cmp.Equal(got, want) {
			t.Errorf("ForDescriptor(%v) = %v, want %v", d, got, want)
		}
		if got := applying(p.TraceDescriptor(d)); !cmp.Equal(got, want) {
			t.Errorf("TraceDescriptor(%v) applies %v, want %v", d, got, want)
		}
	}
}

func applying(tr policy.Trace) []string {
	var names []string
	for _, r := range tr.Rules {
		if r.Verdict == policy.Applies {
			names = append(names, r.Rule.Name)
		}
	}
	return names
}

// Entries are in a key whatever the tree says of them, and in no order or
// division but their own.
func TestTreeKeys(t *testing.T) {
	t.Parallel()
	one := tree(t, on("a", on("b=x"), on("b")), on("b=x", on("a")), on("s=*", on("a")), shared(on("g=v-*", shared(on("h=*")), on("i"))), on("g"))
	key := func(p *policy.Policy, pairs ...string) string {
		t.Helper()
		applied := p.ForDescriptor(descriptor(pairs...))
		if len(applied) != 1 {
			t.Fatalf("ForDescriptor(%v) = %v, want one", pairs, applied)
		}
		return applied[0].Key
	}
	seen := map[string][]string{}
	for _, pairs := range [][]string{
		{"a", "1"},
		{"a", "2"},
		{"a", ""},
		{"a", "1", "b", "x"},
		{"a", "1", "b", "y"},
		{"b", "x", "a", "1"},
		{"a", "1_b", "b", "x"},
		{"s", "1", "a", "2"},
		{"s", "2", "a", "1"},
		{"g", "w"},
		{"g", "v-1"},
		{"g", "v-1", "h", "1"},
		{"g", "v-1", "i", "1"},
		{"g", "v-1", "i", "2"},
	} {
		k := key(one, pairs...)
		if other := seen[k]; other != nil {
			t.Errorf("%v and %v have one key, want two", pairs, other)
		}
		seen[k] = pairs
	}
	if a, b := key(one, "g", "v-1", "h", "1"), key(one, "g", "v-22", "h", "3"); a != b {
		t.Errorf("keys under a shared * are %s and %s, want one", a, b)
	}
	other := tree(t, on("a=1"), on("a=2*"))
	for _, pairs := range [][]string{{"a", "1"}, {"a", "2"}} {
		if a, b := key(one, pairs...), key(other, pairs...); a != b {
			t.Errorf("the key of %v is %s with one rule and %s with another, want it to stay", pairs, a, b)
		}
	}
}

func TestTreeWay(t *testing.T) {
	t.Parallel()
	detailed, value := on("d=x*", on("e")), bare("v", on("w"), shared(on("s=a*")))
	detailed.Detailed, detailed.Children[0].Detailed = true, true
	value.ValueToMetric = true
	value.Children[1].ValueToMetric = true
	p := tree(t, detailed, value, on("plain", on("other=1")))
	for _, test := range []struct {
		pairs []string
		want  string
	}{
		{[]string{"d", "x1"}, "d_x1"},
		{[]string{"d", "x1", "e", "2"}, "d_x1.e_2"},
		{[]string{"v", "1", "w", "2"}, "v_1.w"},
		{[]string{"v", "1", "s", "ab"}, "v_1.s_a*"},
		{[]string{"plain", "1", "other", "1"}, "plain.other_1"},
	} {
		if got := p.ForDescriptor(descriptor(test.pairs...))[0].Way; got != test.want {
			t.Errorf("ForDescriptor(%v).Way = %q, want %q", test.pairs, got, test.want)
		}
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	unlimited := policy.NodeSpec{Key: "u", Unlimited: true, Name: "u", Replaces: []string{"x"}}
	p := tree(t, named(on("x"), "x"), named(on("y"), "y", "x"), named(on("z"), "z", "y"), on("n"), unlimited)
	for _, test := range []struct{ keys, want string }{
		{"x", "x"}, {"x n", "x n"}, {"x y", "y"}, {"y x", "y"}, {"x y z", "z"}, // y goes, and x with it
		{"x z", "x z"}, {"x u n", "u n"}, {"x x y", "y"}, {"u", "u"},
	} {
		var all []policy.Applied
		var ends []int
		for key := range strings.FieldsSeq(test.keys) {
			all = append(all, p.ForDescriptor(descriptor(key, "1"))...)
			ends = append(ends, len(all))
		}
		all = policy.Replace(all, ends)
		if got := strings.Join(ways(all), " "); got != test.want || ends[len(ends)-1] != len(all) {
			t.Errorf("Replace(%s) = %s, ends %v, want %s", test.keys, got, ends, test.want)
		}
	}
}

func TestForBrought(t *testing.T) {
	t.Parallel()
	quiet := on("s")
	quiet.Shadow, quiet.Quota = true, true
	p := tree(t, named(on("a"), "a", "b"), quiet, policy.NodeSpec{Key: "u", Unlimited: true})
	for _, key := range []string{"a", "s", "u", "none"} {
		d := descriptor(key, "1")
		got := p.ForBrought(d, 7, time.Hour)
		want := []policy.Applied{{Charge: bucket.Charge{Cost: 1}, Brought: true}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(policy.Applied{}, "Rule", "Way", "Key", "Limits")); diff != "" {
			t.Errorf("ForBrought(%v) (-want +got):\n%s", d, diff)
		}
		if l := got[0].Limits.At(0); l.Tokens != 7 || l.Per != time.Hour || l.Refill != bucket.Aligned {
			t.Errorf("ForBrought(%v) = limit %+v, want 7 an aligned hour", d, l)
		}
	}
	a := descriptor("a", "1")
	own := p.ForDescriptor(a)[0].Key
	if got := p.ForBrought(a, 7, time.Minute)[0].Key; got != own {
		t.Errorf("ForBrought(minute) = key %s, want the rule's, whose period it is: %s", got, own)
	}
	if got := p.ForBrought(a, 7, time.Hour)[0].Key; got == own {
		t.Errorf("ForBrought(hour) = key %s, want one of its own", got)
	}
	if got := p.ForBrought(a, 7, 0); got[0].Brought || got[0].Key != own {
		t.Errorf("ForBrought(no period) = %+v, want ForDescriptor", got)
	}
	rules := compile(t, rules(
		policy.RuleSpec{Name: "shadow", Descriptor: entries("a"), Shadow: true}, policy.RuleSpec{Name: "unlimited", Descriptor: entries("a"), Unlimited: true},
		policy.RuleSpec{Name: "debt", Descriptor: entries("a"), Debt: true, MaxDebt: 3, Limits: []bucket.Limit{{Tokens: 1, Per: time.Second, Refill: bucket.Interval}}},
	))
	owing, err := bucket.NewDebtLimits(3, bucket.Limit{Tokens: 7, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range rules.ForBrought(a, 7, time.Hour) {
		l, name := got.Limits.At(0), got.Rule.Name
		if got.Shadow != (name == "shadow") || got.Unlimited || l.Tokens != 7 || l.Refill != bucket.Greedy || got.Limits.Same(owing) != (name == "debt") {
			t.Errorf("ForBrought of %s = %+v, limit %+v, want 7 a greedy hour, and else what the rule says", name, got, l)
		}
	}
	if got := rules.ForBrought(descriptor("b", "1"), 7, time.Hour); got != nil {
		t.Errorf("ForBrought without a rule = %v, want none", got)
	}
}

// Where debt beyond a limit could not be counted, the limit holds without.
func TestForBroughtHuge(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{
		Name: "r", Descriptor: entries("a"), Debt: true, Limits: []bucket.Limit{{Tokens: 1, Per: time.Second}},
	}))
	for _, test := range []struct {
		tokens int64
		per    time.Duration
		debt   bool
	}{{7, time.Hour, true}, {1 << 24, 365 * 24 * time.Hour, false}} {
		got := p.ForBrought(descriptor("a", "1"), test.tokens, test.per)
		if l := got[0].Limits; l.At(0).Tokens != test.tokens || l.At(0).Per != test.per || l.Debt() != test.debt {
			t.Errorf("ForBrought(%d per %v) = %+v, debt %v, want that, debt %v", test.tokens, test.per, l.At(0), l.Debt(), test.debt)
		}
	}
}

// However many stars, a text is gone through but once for each.
func BenchmarkTreeStars(b *testing.B) {
	p := tree(b, on("a="+strings.Repeat("*a", 30)+"*b"))
	d := descriptor("a", strings.Repeat("a", 10_000))
	for b.Loop() {
		p.ForDescriptor(d)
	}
}
