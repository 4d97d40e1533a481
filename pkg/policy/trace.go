package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// A Trace is a Match with the reasons: why each rule is in it or not.
type Trace struct {
	Match
	// Path and Host are the request's as rules see them. They are empty for a
	// descriptor.
	Path, Host string
	// ExemptBy is the field that exempts the request, such as exempt.paths[0],
	// "" if none does.
	ExemptBy string
	// Identities are those of the file, in its order.
	Identities []Value
	// Rules are those of the file, in its order; none if it is exempt.
	Rules []RuleTrace
}

// A RuleTrace is what became of one rule.
type RuleTrace struct {
	Rule    *Rule
	Verdict Verdict
	// By is the rule that ended the search, with Stopped and Unreached.
	By *Rule
	// Conditions are what the rule wants, in the order in which it is looked
	// at. Only the last can be one that does not hold: then the rest was not
	// looked at.
	Conditions []Condition
	// Values are what the rule's bucket is for, up to one that is missing.
	Values []Value
	// Override is the place of the override that holds, -1 for none.
	Override int
	// Stop says that no rule after this one was looked at.
	Stop bool
}

// Verdict says what became of a rule.
type Verdict uint8

// The verdicts on a rule.
const (
	Mismatch  Verdict = iota // a condition does not hold
	Applies                  // it charges its bucket, or is without limits
	Lacks                    // the request lacks a value, so that the rule does not apply
	Refuses                  // the request lacks a value, and is refused for it
	Stopped                  // a rule before it stopped the search
	Unreached                // a rule before it refused the request
	OtherDoor                // it is for descriptors and this is a request, or the other way round
	Replaced                 // another rule that applies takes its place
)

var verdicts = [...]string{
	Mismatch: "mismatch", Applies: "applies", Lacks: "lacks", Refuses: "refuses",
	Stopped: "stopped", Unreached: "unreached", OtherDoor: "other_door", Replaced: "replaced",
}

// String returns the word for v in an explanation.
func (v Verdict) String() string {
	if int(v) >= len(verdicts) {
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
	return verdicts[v]
}

// A Condition is one thing that a rule wants of a request.
type Condition struct {
	Field string // of the rule: match.path
	Want  string
	// Found is what the request has. It never repeats a header.
	Found string
	Holds bool
	// Err says why an expression had no value. Then it holds.
	Err error
}

// A Value is one name in a per, or one identity, and what the request has for
// it.
type Value struct {
	Name string
	// Text is empty if the value is missing or Hidden.
	Text   string
	Hidden bool
	Why    identity.Absence
	// Missing is what becomes of a request without the value.
	Missing Missing
}

// words are what an explanation needs of a policy and a decision does not.
type words struct {
	identities []part
	exempt     []string
	rules      []ruleWords
}

type ruleWords struct {
	path    string
	entries []EntrySpec
}

// words returns what explanations say of c's policy.
func (c *compiler) words() words {
	w := words{exempt: slices.Clone(c.spec.Exempt.Paths)}
	for _, id := range c.spec.Identities {
		p := c.named[id.Name]
		p.missing = firstSet(p.missing, defaultMissing)
		w.identities = append(w.identities, p)
	}
	for i := range c.spec.Rules {
		s := &c.spec.Rules[i]
		entries := slices.Clone(s.Descriptor)
		for j, e := range entries {
			entries[j].Value = c.policy.callerOf(e.Key, e.Value)
		}
		w.rules = append(w.rules, ruleWords{s.path(), entries})
	}
	return w
}

// Trace finds the rules as ForRequest does, and says why. It takes longer than
// a decision should. Text in it may share memory with r.
func (p *Policy) Trace(r Request) Trace {
	v := p.view(r)
	t := Trace{Match: p.ForRequest(r), Path: v.path, Host: v.host}
	for i := range p.words.identities {
		t.Identities = append(t.Identities, p.words.identities[i].trace(&v))
	}
	if t.Exempt {
		t.ExemptBy = p.exemptBy(&v)
		return t
	}
	paths := p.paths.find(v.path, nil)
	var s search
	for i := range p.rules {
		_, found := slices.BinarySearch(paths, int32(i))
		t.Rules = append(t.Rules, s.next(&p.rules[i], p.words.rules[i].entries != nil, func(r *RuleTrace) {
			p.traceMatch(r, &v, i, found)
		}))
	}
	return t
}

// A search goes through the rules until one ends it.
type search struct {
	by  *Rule
	how Verdict
}

// next returns what became of r: it is for another door, or was not looked at,
// or else look says it.
func (s *search) next(r *rule, other bool, look func(*RuleTrace)) RuleTrace {
	t := RuleTrace{Rule: r.Rule, Override: -1}
	switch {
	case other:
		t.Verdict = OtherDoor
		return t
	case s.by != nil:
		t.Verdict, t.By = s.how, s.by
		return t
	}
	look(&t)
	switch {
	case t.Verdict == Refuses:
		s.by, s.how = r.Rule, Unreached
	case t.Verdict == Applies && r.stop && t.sure():
		s.by, s.how, t.Stop = r.Rule, Stopped, true
	}
	return t
}

// sure says that the rule's conditions hold, and none for want of a value.
func (t *RuleTrace) sure() bool {
	return !slices.ContainsFunc(t.Conditions, func(c Condition) bool { return c.Err != nil })
}

func (p *Policy) exemptBy(v *view) string {
	if i := slices.Index(p.exempt.methods, v.attrs.Method); i >= 0 {
		return place("exempt.methods", i)
	}
	if v.id.Client.IsValid() && p.exempt.clients.Contains(v.id.Client) {
		return "exempt.ips"
	}
	if found := p.exempt.paths.find(v.path, nil); len(found) > 0 {
		return place("exempt.paths", int(found[0]))
	}
	return ""
}

// traceMatch says what becomes of rule i, whose path the request has if found.
func (p *Policy) traceMatch(t *RuleTrace, v *view, i int, found bool) {
	r := &p.rules[i]
	if path := p.words.rules[i].path; path != "" {
		t.Conditions = []Condition{{Field: "match.path", Want: path, Found: v.path, Holds: found}}
	}
	if !found || !r.conditions(t, v) {
		return
	}
	lacks := r.traceValues(t, v)
	switch {
	case r.refusal(lacks) != 0:
		t.Verdict = Refuses
	case lacks != nil:
		t.Verdict = Lacks
	default:
		t.Verdict = Applies
		t.Override = slices.IndexFunc(r.overrides, func(o override) bool { return o.matches(r, v) })
	}
}

// conditions looks at what r wants besides the path, up to the first that does
// not hold, and says whether all do.
func (r *rule) conditions(t *RuleTrace, v *view) bool {
	add := func(c Condition) bool {
		t.Conditions = append(t.Conditions, c)
		return c.Holds
	}
	m := &r.match
	if len(m.methods) > 0 && !add(Condition{"match.methods", strings.Join(m.methods, ", "), v.attrs.Method, slices.Contains(m.methods, v.attrs.Method), nil}) {
		return false
	}
	if names := m.hosts.list(); names != "" && !add(Condition{"match.hosts", names, v.host, m.hosts.contain(v.host), nil}) {
		return false
	}
	for _, h := range m.headers {
		if !add(h.condition(v)) {
			return false
		}
	}
	return r.when == nil || add(r.when.condition(v, r.Rule))
}

func (h *hosts) list() string {
	all := slices.Clone(h.names)
	for _, s := range h.suffixes {
		all = append(all, "*"+s)
	}
	return strings.Join(all, ", ")
}

func (h HeaderSpec) condition(v *view) Condition {
	value, sent := v.attrs.Headers[h.Name]
	c := Condition{Field: "match.headers." + h.Name, Want: h.Value, Found: h.Value, Holds: hasMember(value, h.Value)}
	switch {
	case c.Holds:
	case sent:
		c.Found = "another value"
	default:
		c.Found = "no such header"
	}
	return c
}

func (e *expression) condition(v *view, r *Rule) Condition {
	before := len(v.failures)
	c := Condition{Field: e.field, Want: e.text, Holds: e.holds(v, r, true)}
	c.Found = fmt.Sprint(c.Holds)
	if len(v.failures) > before {
		c.Found, c.Err = "no value", v.failures[before].Err
	}
	return c
}

// traceValues looks at what r's bucket is for, up to the part that is missing,
// which it returns.
func (r *rule) traceValues(t *RuleTrace, v *view) *part {
	for i := range r.per {
		p := &r.per[i]
		value := p.trace(v)
		t.Values = append(t.Values, value)
		if value.Why == identity.Present {
			continue
		}
		if _, ok := p.instead(v); !ok {
			return p
		}
	}
	return nil
}

// trace returns what v has for p.
func (p *part) trace(v *view) Value {
	t := Value{Name: p.name, Hidden: p.hide, Missing: p.missing}
	value, ok := p.value(v)
	switch {
	case ok && !p.hide:
		t.Text = value.Text
	case ok:
	case p.from == fromSource:
		_, t.Why = p.source.Explain(v.attrs, v.id)
	default:
		t.Why = identity.Absent
	}
	return t
}

// TraceDescriptor finds the rules as ForDescriptor does, and says why.
func (p *Policy) TraceDescriptor(d descriptors.Descriptor) Trace {
	t := Trace{Match: Match{Applied: p.ForDescriptor(d)}}
	if p.tree != nil {
		t.Rules = p.tree.trace(d)
		return t
	}
	d = p.withCallers(d)
	var s search
	for i := range p.rules {
		entries := p.words.rules[i].entries
		t.Rules = append(t.Rules, s.next(&p.rules[i], entries == nil, func(r *RuleTrace) {
			p.rules[i].traceEntries(r, d, entries)
		}))
	}
	return t
}

// traceEntries says what becomes of r, which wants entries, with d.
func (r *rule) traceEntries(t *RuleTrace, d descriptors.Descriptor, entries []EntrySpec) {
	if len(d) != len(entries) {
		t.Conditions = []Condition{{Field: "descriptor", Want: counted(len(entries)), Found: counted(len(d))}}
		return
	}
	for i, e := range entries {
		c := Condition{
			Field: place("descriptor", i), Want: e.String(), Found: d[i].Key + "=" + d[i].Value,
			Holds: e.Key == d[i].Key && (e.Any || e.Value == d[i].Value),
		}
		t.Conditions = append(t.Conditions, c)
		if !c.Holds {
			return
		}
	}
	t.Verdict = Applies
	for _, i := range r.order {
		t.Values = append(t.Values, Value{Name: d[i].Key, Text: d[i].Value})
	}
	t.Override = slices.IndexFunc(r.overrides, func(o override) bool { return o.isFor(d) })
}

// String returns e as a policy file has it.
func (e EntrySpec) String() string {
	if e.Any {
		return e.Key
	}
	return e.Key + "=" + e.Value
}

// Callers says by what rules tell their callers apart: the first name in a
// per, or the first key of a descriptor, that may have another value for each.
// Rules whose buckets all callers share are not in it. The map is the caller's.
func (p *Policy) Callers() map[*Rule]string {
	by := make(map[*Rule]string)
	for i := range p.rules {
		if name := p.rules[i].caller(p.words.rules[i].entries); name != "" {
			by[p.rules[i].Rule] = name
		}
	}
	if p.tree != nil {
		p.tree.callers(by)
	}
	return by
}

func (r *rule) caller(entries []EntrySpec) string {
	for i := range r.per {
		switch r.per[i].from {
		case fromSource, fromIP:
			return r.per[i].name
		}
	}
	for _, e := range entries {
		if e.Any {
			return e.Key
		}
	}
	return ""
}

func counted(entries int) string {
	if entries == 1 {
		return "1 entry"
	}
	return number(entries) + " entries"
}
