package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// addRules adds what became of the rules that t went through, for d or for a
// request.
func (r *Report) addRules(t policy.Trace, d *DescriptorPlace) {
	if r.Rules == nil {
		r.Rules = []Rule{}
	}
	for _, rule := range t.Rules {
		r.Rules = append(r.Rules, ruleOf(rule, d))
	}
}

func ruleOf(t policy.RuleTrace, d *DescriptorPlace) Rule {
	r := Rule{
		Name: t.Rule.Name, Descriptor: d, Verdict: t.Verdict.String(), Why: ruleWhy(t),
		Shadow: t.Rule.Shadow, Stop: t.Stop,
	}
	for _, c := range t.Conditions {
		r.Conditions = append(r.Conditions, conditionOf(c))
	}
	for _, v := range t.Values {
		r.Per = append(r.Per, valueOf(v))
	}
	if t.Override >= 0 {
		r.Override = fmt.Sprintf("overrides[%d]", t.Override)
	}
	return r
}

// replace says of the rules that are applied which others of them replace.
func (r *Report) replace(applied []policy.Applied) {
	next := 0
	for i := range r.Rules {
		if r.Rules[i].Verdict != policy.Applies.String() || next == len(applied) {
			continue
		}
		a := &applied[next]
		next++
		if by := slices.IndexFunc(applied, func(b policy.Applied) bool { return a.ReplacedBy(&b) }); by >= 0 {
			r.Rules[i].Verdict = policy.Replaced.String()
			r.Rules[i].Why = applied[by].Rule.Name + " applies too, and replaces it"
		}
	}
}

func conditionOf(c policy.Condition) Condition {
	out := Condition{Field: c.Field, Want: c.Want, Found: cut(c.Found), Holds: c.Holds}
	if c.Err != nil {
		out.Error = cut(c.Err.Error())
	}
	return out
}

func ruleWhy(t policy.RuleTrace) string {
	switch t.Verdict {
	case policy.Applies:
		if len(t.Conditions) == 0 {
			return "for every request" + ending(t.Stop, ", and stops the search")
		}
		return "every condition holds" + ending(t.Stop, ", and it stops the search")
	case policy.Mismatch:
		return mismatch(t.Conditions)
	case policy.Lacks:
		return lacks(t) + ": the rule does not apply"
	case policy.Refuses:
		return lacks(t) + ": " + refusal(t)
	case policy.Stopped:
		return t.By.Name + " stopped the search"
	case policy.Unreached:
		return t.By.Name + " refused the request"
	default:
		return "a rule for the other kind of request"
	}
}

func mismatch(cs []policy.Condition) string {
	if len(cs) == 0 {
		return "it does not match"
	}
	c := cs[len(cs)-1]
	if strings.HasSuffix(c.Field, ".when") {
		return fmt.Sprintf("%s is %s: %s", c.Field, c.Found, shown(c.Want))
	}
	return fmt.Sprintf("%s is %s, want %s", c.Field, shown(cut(c.Found)), shown(c.Want))
}

func refusal(t policy.RuleTrace) string {
	if m := t.Values[len(t.Values)-1].Missing; m.Kind == policy.MissingStatus {
		return consequence(m)
	}
	return consequence(policy.Missing{}) // nothing could take its place
}

// lacks names the value that is missing: the last one.
func lacks(t policy.RuleTrace) string {
	v := t.Values[len(t.Values)-1]
	return v.Name + " is " + absence(v.Why)
}
