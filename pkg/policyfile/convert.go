package policyfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Convert writes a file of envoyproxy/ratelimit's format as one of ours. The
// notes are what our format does not say in the same way. Text is "" if a
// fault is more than a warning.
func Convert(name string, data []byte) (text string, notes []string, faults Faults) {
	d := decode(name, data, true)
	if !d.partial {
		_, found := policy.Compile(d.spec, policy.Options{})
		p := part{files: []*decoder{d}}
		p.add(found)
	}
	d.faults.sort()
	if d.faults.Err() != nil {
		return "", nil, d.faults
	}
	c := converter{names: map[string]bool{}}
	c.file(&d.spec)
	return c.b.String(), c.notes, d.faults
}

// A converter writes rules.
type converter struct {
	b     strings.Builder
	notes []string
	names map[string]bool
	rules int
}

func (c *converter) note(way, format string, args ...any) {
	c.notes = append(c.notes, way+": "+fmt.Sprintf(format, args...))
}

func (c *converter) file(s *policy.Spec) {
	fmt.Fprintf(&c.b, "domain: %s\n\nrules:\n", yamlText(s.Domain))
	c.nodes(s.Tree, nil, "")
	if c.rules == 0 {
		c.b.Reset()
		fmt.Fprintf(&c.b, "domain: %s\n\nrules: []\n", yamlText(s.Domain))
	}
}

// nodes writes the rules of nodes, exact values before keys alone: the first
// that applies stops the search.
func (c *converter) nodes(nodes []policy.NodeSpec, before []string, way string) {
	c.branches(nodes, way)
	for _, exact := range []bool{true, false} {
		for i := range nodes {
			n := &nodes[i]
			if (n.Value != "") != exact {
				continue
			}
			c.node(n, before, way)
		}
	}
}

// branches notes where ours goes on in the branch of a key alone.
func (c *converter) branches(nodes []policy.NodeSpec, way string) {
	for i := range nodes {
		for j := range nodes {
			every, one := &nodes[i], &nodes[j]
			if every.Value == "" && len(every.Children) > 0 && one.Key == every.Key && one.Value != "" {
				c.note(strings.TrimPrefix(way+"."+one.Key+"_"+one.Value, "."), "what is not under it is looked for under %s too, where a tree would not", every.Key)
			}
		}
	}
}

func (c *converter) node(n *policy.NodeSpec, before []string, way string) {
	entry := n.Key
	if n.Value != "" {
		entry += "=" + n.Value
	}
	if way != "" {
		way += "."
	}
	way += strings.TrimSuffix(n.Key+"_"+n.Value, "_")
	if strings.Contains(entry, "*") {
		c.note(way, "a * stands for nothing in our rules: it and what is under it are left out")
		return
	}
	if n.Key == "remote_address" {
		c.note(way, "IPv6 addresses of one /64 are one caller in our rules, unless trust says ipv6_prefix: 128")
	}
	entries := append(append([]string{}, before...), entry)
	switch {
	case n.Limits != nil || n.Unlimited:
		c.rule(n, entries, way)
	case len(n.Children) == 0:
		c.write(way, entries, "    unlimited: true\n", n)
	}
	c.nodes(n.Children, entries, way)
}

func (c *converter) rule(n *policy.NodeSpec, entries []string, way string) {
	if n.Unlimited {
		c.write(way, entries, "    unlimited: true\n", n)
		return
	}
	var b strings.Builder
	b.WriteString("    limits:\n")
	for _, l := range n.Limits {
		fmt.Fprintf(&b, "      - {rate: %d/%s", l.Tokens, period(l.Per))
		if l.Burst != 0 {
			fmt.Fprintf(&b, ", burst: %d", l.Burst)
		}
		fmt.Fprintf(&b, ", refill: %v}\n", l.Refill)
	}
	c.write(way, entries, b.String(), n)
}

func (c *converter) write(way string, entries []string, limits string, n *policy.NodeSpec) {
	c.rules++
	quoted := make([]string, len(entries))
	for i, e := range entries {
		quoted[i] = yamlText(e)
	}
	fmt.Fprintf(&c.b, "  - name: %s\n    descriptor: [%s]\n%s    stop: true\n", yamlText(c.name(way)), strings.Join(quoted, ", "), limits)
	if n.Shadow {
		c.b.WriteString("    shadow: true\n")
		c.note(way, "a rule in shadow stops nothing: a rule for the key alone counts beside it")
	}
	for _, f := range []struct {
		set  bool
		text string
	}{
		{n.Quota, "quota_mode: our rules deny each by itself"},
		{n.Replaces != nil, "replaces: our rules all hold side by side"},
		{n.Metadata != nil, "metadata: ours is rule, allowed, remaining, limit and retry_after"},
		{n.Detailed || n.ValueToMetric, "values in metrics: ours have none that a client chooses"},
	} {
		if f.set {
			c.note(way, "%s", f.text)
		}
	}
}

// name is a name for the rule of way that no other has.
func (c *converter) name(way string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.:/", r):
			return r
		default:
			return '-'
		}
	}, way)
	const most = 60
	if len(name) > most {
		name = name[:most]
	}
	for base, i := name, 2; c.names[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	c.names[name] = true
	return name
}

// period is per as a rate has it.
func period(per time.Duration) string {
	for _, u := range []struct {
		unit string
		long time.Duration
	}{{"w", bucket.Week.Nominal()}, {"d", bucket.Day.Nominal()}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if per%u.long == 0 {
			return strconv.FormatInt(int64(per/u.long), 10) + u.unit
		}
	}
	return per.String()
}

// yamlText is s as YAML reads it back.
func yamlText(s string) string {
	if plainText(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// plainText says that s needs no quotes.
func plainText(s string) bool {
	if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=") != "" || strings.ContainsAny(s[:1], "-=.0123456789") {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return false
	}
	return true
}
