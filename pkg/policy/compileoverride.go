package policy

import (
	"math"
	"net/netip"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// limitsOrNone makes limits ready, of a rule or an override at path. They are
// nil if it is unlimited.
func (c *compiler) limitsOrNone(path string, limits []bucket.Limit, unlimited bool, ready maker) *bucket.Limits {
	if !unlimited {
		return c.limits(path+".limits", limits, ready)
	}
	if limits != nil {
		c.fault(path+".unlimited", "unlimited beside limits", "one of the two", "")
	}
	return nil
}

func (c *compiler) overrides(r *rule, s *RuleSpec, path string) {
	for i := range s.Overrides {
		at := place(path+".overrides", i)
		o := override{limits: c.limitsOrNone(at, s.Overrides[i].Limits, s.Overrides[i].Unlimited, s.makeLimits())}
		c.overrideWhen(&o, s, path, i)
		for _, values := range s.Overrides[i].Values {
			c.overrideValues(&o, s, at, values)
		}
		if s.Overrides[i].When == "" && len(s.Overrides[i].Values) == 0 {
			c.fault(at, "an override for every request", "when or values, which say for which", "or change the rule's own limits")
		}
		r.overrides = append(r.overrides, o)
	}
}

func (c *compiler) overrideWhen(o *override, s *RuleSpec, path string, i int) {
	text := s.Overrides[i].When
	if text == "" {
		return
	}
	field := place("overrides", i) + ".when"
	if s.Descriptor != nil {
		c.fault(path+"."+field, "when beside descriptor", "values: a descriptor has no attributes", "")
		return
	}
	when, always := c.expression(path, field, text, wishTruth)
	o.when = when
	switch always {
	case types.False:
		c.fault(path+"."+field, quote(text)+", which is never true", "an expression that can be, else the override never holds", "")
	case types.True:
		c.warn(path+"."+field, quote(text)+", which is always true", "an expression that need not be", "change the rule's own limits")
		o.when = nil
	}
}

// overrideValues adds one of the names that the override at path is for.
func (c *compiler) overrideValues(o *override, s *RuleSpec, path string, values ValuesSpec) {
	path += ".values." + values.Name
	var w wantedValue
	var ok bool
	if s.Descriptor != nil {
		w.entry, ok = c.entryOf(path, s, values.Name)
	} else {
		w.part, ok = c.part(path, values.Name)
	}
	if !ok {
		return
	}
	if len(values.Values) == 0 {
		c.fault(path, "no values", "at least one, else the override never holds", "")
	}
	if s.Descriptor == nil && w.part.anybodys && c.named[values.Name].name == "" {
		c.warn(path, values.Name+", which any client can write", "an identity that somebody vouches for: who knows a value has these limits", "")
	}
	c.wantedTexts(&w, s, path, values)
	o.values = append(o.values, w)
}

// entryOf returns which entry of s's descriptor has the key name.
func (c *compiler) entryOf(path string, s *RuleSpec, name string) (int, bool) {
	i := slices.IndexFunc(s.Descriptor, func(e EntrySpec) bool { return e.Key == name && e.Any })
	if i < 0 {
		c.fault(path, quote(name), "the key of an entry of this rule's descriptor that may have any value", "")
	}
	return i, i >= 0
}

func (c *compiler) wantedTexts(w *wantedValue, s *RuleSpec, path string, values ValuesSpec) {
	if s.Descriptor == nil && w.part.from == fromIP {
		w.networks = c.wantedNetworks(path, values.Values)
		return
	}
	w.texts = make(map[string]bool, len(values.Values))
	for i, text := range values.Values {
		if s.Descriptor != nil {
			text = c.policy.callerOf(values.Name, text)
		} else if want := c.possible(&w.part, text); want != "" {
			c.fault(place(path, i), quote(text), want+", since others never come", "")
		}
		w.texts[text] = true
	}
}

func (c *compiler) wantedNetworks(path string, texts []string) identity.Networks {
	var networks []netip.Prefix
	for i, text := range texts {
		network := parseNetwork(text)
		if !network.IsValid() {
			c.fault(place(path, i), quote(text), "an address or a network, such as 10.0.0.0/8", "")
			continue
		}
		networks = append(networks, network)
	}
	all, err := identity.NewNetworks(networks)
	c.specErrors(path, err)
	return all
}

// possible returns what a value of p would have to be if text cannot be one.
func (c *compiler) possible(p *part, text string) (want string) {
	switch {
	case text == "":
		return "a value that is not empty"
	case p.from == fromPath && NormalPath(text) != text:
		return "a path in its normal form: " + quote(NormalPath(text))
	case p.from == fromHost && hostOf(text) != text:
		return "a host in lower case, without its port: " + quote(hostOf(text))
	default:
		return ""
	}
}

// cost reads what a rule charges.
func (c *compiler) cost(r *rule, s *RuleSpec, path string) {
	r.cost.fixed = 1
	if s.Cost == "" {
		return
	}
	if n, err := strconv.ParseInt(s.Cost, 10, 64); err == nil {
		r.cost.fixed = c.fixedCost(path+".cost", n)
		return
	}
	by, always := c.expression(path, "cost", s.Cost, wishNumber)
	r.cost.by = by
	if always == nil {
		return
	}
	n, ok := tokens(always)
	if !ok {
		c.fault(path+".cost", quote(s.Cost), wishNumber.says, "")
	}
	r.cost = cost{fixed: n}
}

func (c *compiler) fixedCost(path string, n int64) int64 {
	if n < 0 || n > maxCost {
		c.fault(path, strconv.FormatInt(n, 10), "0 to "+number(maxCost)+": a request never gives tokens back", "")
		return 1
	}
	return n
}

// hopeless warns of limits that can never bear what each request costs.
func (c *compiler) hopeless(r *rule, path string) {
	if r.cost.by != nil || r.cost.fixed <= 1 {
		return
	}
	c.tooSmall(path, path, r.limits, r.cost.fixed)
	for i := range r.overrides {
		c.tooSmall(path, place(path+".overrides", i), r.overrides[i].limits, r.cost.fixed)
	}
}

func (c *compiler) tooSmall(path, at string, limits *bucket.Limits, cost int64) {
	if limits == nil || limits.Debt() {
		return
	}
	least := int64(math.MaxInt64)
	for i := range limits.Len() {
		if limits.At(i).Tokens > 0 {
			least = min(least, limits.At(i).Burst)
		}
	}
	if cost > least {
		c.warn(path+".cost", number(int(cost))+", more than the "+strconv.FormatInt(least, 10)+" of "+at+".limits",
			"at most the burst: no wait is long enough, and every request is denied", "")
	}
}
