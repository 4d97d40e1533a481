package policyfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-mesh/sluice/internal/spelling"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// This file is what a file in envoyproxy/ratelimit's format looks like.

// hasDescriptors says that root is a file in that format.
func hasDescriptors(root *yaml.Node) bool { return keyIn(root, "descriptors") != nil }

// keyIn returns the key of that name in root, nil if there is none.
func keyIn(root *yaml.Node, name string) *yaml.Node {
	for i := 0; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			return root.Content[i]
		}
	}
	return nil
}

// Where fields belong.
const (
	atTop     = "beside descriptors, at the top of the file"
	inNode    = "in a descriptor, beside its key"
	inLimit   = "in a descriptor's rate_limit"
	inReplace = "in a rate_limit, or in its replaces"
)

// proper says where each field belongs.
var proper = map[string]string{
	"domain": atTop, "key": inNode, "value": inNode, "rate_limit": inNode, "shadow_mode": inNode, "quota_mode": inNode,
	"detailed_metric": inNode, "value_to_metric": inNode, "share_threshold": inNode, "metadata": inNode,
	"unit": inLimit, "requests_per_unit": inLimit, "unlimited": inLimit, "replaces": inLimit, "name": inReplace,
	"rate": inLimit, "burst": inLimit, "refill": inLimit,
	"descriptors": "at the top of the file, or in a descriptor",
}

// ratelimitFile reads a whole file.
func ratelimitFile(d *decoder, f field) {
	d.spec.Tree = []policy.NodeSpec{}
	if rules := keyIn(f.node, "rules"); rules != nil && !hasDescriptors(f.node) {
		d.keyFault(field{path: "rules", node: rules, key: rules}, "a policy of our own format", "descriptors, as envoyproxy/ratelimit has them", "extauthz serve reads it as it is")
		d.partial = true
		return
	}
	form{
		fields: map[string]reader{
			"domain":      scalar(&d.spec.Domain),
			"descriptors": nodes(&d.spec.Tree),
		},
		required:  []string{"domain"},
		elsewhere: proper,
	}.read(d, f)
}

// nodes reads a list of descriptors, which may be empty.
func nodes(into *[]policy.NodeSpec) reader {
	return func(d *decoder, f field) {
		if isNull(f.node) {
			return
		}
		list(into, node)(d, f)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func node(n *policy.NodeSpec) reader {
	return func(d *decoder, f field) {
		n.Place = fmt.Sprintf("%s:%d", d.file, f.node.Line)
		form{
			fields: map[string]reader{
				"key":             scalar(&n.Key),
				"value":           scalar(&n.Value),
				"descriptors":     nodes(&n.Children),
				"rate_limit":      rateLimit(n),
				"shadow_mode":     flag(&n.Shadow),
				"quota_mode":      flag(&n.Quota),
				"detailed_metric": flag(&n.Detailed),
				"value_to_metric": flag(&n.ValueToMetric),
				"share_threshold": flag(&n.Share),
				"metadata":        metadata(&n.Metadata),
			},
			required:  []string{"key"},
			elsewhere: proper,
		}.read(d, f)
	}
}

// rateLimit reads one limit, or a list of them.
func rateLimit(n *policy.NodeSpec) reader {
	return func(d *decoder, f field) {
		switch {
		case isNull(f.node):
		case f.node.Kind == yaml.SequenceNode:
			for _, c := range d.items(f) {
				oneLimit(n, true)(d, c)
			}
			if len(f.node.Content) == 0 {
				d.fault(f, "no limits", "at least one", "")
			}
		default:
			oneLimit(n, false)(d, f)
		}
	}
}

// A limitFields is a rate_limit as it is written.
type limitFields struct {
	per       time.Duration // of its unit
	requests  int64
	unlimited bool
	name      string
	replaces  []string
	rate      rate
	burst     int64
	refill    bucket.Refill
}

// oneLimit reads a limit and adds it to n's.
func oneLimit(n *policy.NodeSpec, one bool) reader {
	return func(d *decoder, f field) {
		l := limitFields{refill: bucket.Aligned, rate: rate{tokens: 1, per: time.Second}}
		form{
			fields: map[string]reader{
				"unit":              parsed(&l.per, wantUnit, parseUnit),
				"requests_per_unit": requests(&l.requests),
				"unlimited":         flag(&l.unlimited),
				"name":              scalar(&l.name),
				"replaces":          list(&l.replaces, replaced),
				"rate":              parsed(&l.rate, wantRate, parseRate),
				"burst":             count(&l.burst),
				"refill":            refill(&l.refill),
			},
			elsewhere: proper,
		}.read(d, f)
		n.Replaces = append(n.Replaces, l.replaces...)
		if l.unlimited {
			d.boundless(f, one)
			n.Unlimited, n.Name = true, l.name
			return
		}
		d.onePeriod(f)
		n.Limits = append(n.Limits, l.limit(has(f, "rate")))
	}
}

// has says that the mapping f has a field.
func has(f field, name string) bool {
	for i := 0; f.node.Kind == yaml.MappingNode && i < len(f.node.Content); i += 2 {
		if f.node.Content[i].Value == name {
			return true
		}
	}
	return false
}

// at returns the field called name of the mapping f.
func (d *decoder) at(f field, name string) field {
	for i := 0; i+1 < len(f.node.Content); i += 2 {
		if key := f.node.Content[i]; key.Value == name {
			c := d.child(join(f.path, name), f.node.Content[i+1])
			c.name, c.key = name, key
			return c
		}
	}
	return f
}

// boundless faults what cannot stand beside unlimited.
func (d *decoder) boundless(f field, one bool) {
	if one {
		d.keyFault(d.at(f, "unlimited"), "unlimited in a list of limits", "it alone in a rate_limit", "")
	}
	for _, name := range []string{"unit", "rate", "burst", "refill"} {
		if has(f, name) {
			d.keyFault(d.at(f, name), name+" beside unlimited", "one of the two", "")
		}
	}
	if has(f, "requests_per_unit") {
		d.warnKey(d.at(f, "requests_per_unit"), "requests_per_unit beside unlimited", "one of the two", "it means nothing here")
	}
}

// onePeriod faults a limit that has no period, or two.
func (d *decoder) onePeriod(f field) {
	if f.node.Kind != yaml.MappingNode {
		return // and that is known
	}
	switch {
	case has(f, "rate"):
		for _, name := range []string{"unit", "requests_per_unit"} {
			if has(f, name) {
				d.keyFault(d.at(f, name), name+" beside rate", "one of the two", "")
			}
		}
	case !has(f, "unit"):
		d.fault(field{path: join(f.path, "unit"), node: f.node}, "nothing", wantUnit+", or unlimited: true", "")
	}
}

// limit is l as a bucket counts it.
func (l *limitFields) limit(hasRate bool) bucket.Limit {
	b := bucket.Limit{Name: l.name, Tokens: l.requests, Per: l.per, Burst: l.burst, Refill: l.refill}
	if hasRate {
		b.Tokens, b.Per = l.rate.tokens, l.rate.per
		if l.rate.calendar != 0 {
			b.Per = l.rate.calendar.Nominal()
		}
	}
	if b.Per == 0 {
		b.Per = time.Second // its fault is known
	}
	return b
}

// periods are the units, each of a length that is always the same.
var periods = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": bucket.Day.Nominal(),
	"week": bucket.Week.Nominal(), "month": bucket.Month.Nominal(), "year": bucket.Year.Nominal(),
}

const wantUnit = "a unit: second, minute, hour, day, week, month or year"

func parseUnit(s string) (time.Duration, *mismatch) {
	word := strings.ToLower(s)
	if per := periods[word]; per != 0 {
		return per, nil
	}
	do := ""
	if meant := spelling.Nearest(word, slices.Sorted(maps.Keys(periods))); meant != "" {
		do = fmt.Sprintf("did you mean %q?", meant)
	}
	return 0, &mismatch{wantUnit, do}
}

func replaced(name *string) reader {
	return form{fields: map[string]reader{"name": scalar(name)}, elsewhere: proper}.read
}

// number is a whole number as requests_per_unit has it.
var number = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// requests reads how many requests there may be in a unit: a number of 32
// bits.
func requests(into *int64) reader {
	return func(d *decoder, f field) {
		n, err := strconv.ParseUint(f.node.Value, 10, 32)
		if f.node.Kind != yaml.ScalarNode || f.node.ShortTag() != "!!int" || !number.MatchString(f.node.Value) || err != nil {
			d.fault(f, describe(f.node), "a whole number from 0 to 4294967295, in digits", "")
			return
		}
		*into = int64(n)
	}
}

// scalar reads text, for which a whole number or a truth value without quotes
// will do, or nothing for none.
func scalar(into *string) reader {
	return func(d *decoder, f field) {
		n := f.node
		switch tag := n.ShortTag(); {
		case n.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!int" && tag != "!!bool" && tag != "!!null":
			_, _ = d.text(f, "text")
		case tag != "!!null":
			*into = n.Value
		}
	}
}

// metadata reads a mapping of anything that JSON has.
func metadata(into *map[string]any) reader {
	return func(d *decoder, f field) {
		if d.is(f, yaml.MappingNode) {
			*into = d.mapping(f)
		}
	}
}

func (d *decoder) mapping(f field) map[string]any {
	m := map[string]any{}
	for _, c := range d.entries(f) {
		m[c.name] = d.anything(c)
	}
	return m
}

func (d *decoder) anything(f field) any {
	switch f.node.Kind {
	case yaml.MappingNode:
		return d.mapping(f)
	case yaml.SequenceNode:
		items := []any{}
		for _, c := range d.items(f) {
			items = append(items, d.anything(c))
		}
		return items
	}
	var v any
	if err := f.node.Decode(&v); err != nil {
		d.fault(f, describe(f.node), "text, a number, true or false", "")
	}
	switch v := v.(type) {
	case string, bool, nil, int, float64:
		return v
	default:
		return f.node.Value
	}
}

// warnKey leaves a warning at the key of f.
func (d *decoder) warnKey(f field, found, want, do string) {
	d.add(Fault{Line: f.key.Line, Column: f.key.Column, Path: f.path, Found: found, Want: want, Do: do, Warning: true})
}
