package xds

import (
	"fmt"
	"slices"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// policies compiles resources: of each domain all, or none. faults say which
// cannot be used, and why.
func (c *Client) policies(resources []*anypb.Any) (policies []*policy.Policy, faults []string) {
	specs, bad, faults := c.specs(resources)
	for _, spec := range specs {
		if bad[spec.Domain] {
			continue
		}
		p, found := policy.Compile(spec, policy.Options{})
		for _, f := range found {
			if !f.Warning {
				faults = append(faults, faultText(f))
			}
		}
		if p != nil {
			policies = append(policies, p)
		}
	}
	return policies, faults
}

// specs reads resources, those of one domain as one where they are merged. bad
// are domains of which something cannot be read. Where it cannot be known of
// which, and resources are merged, there are no specs.
func (c *Client) specs(resources []*anypb.Any) (specs []policy.Spec, bad map[string]bool, faults []string) {
	bad = map[string]bool{}
	lost := false
	for i, r := range resources {
		config := new(ratelimitv3.RateLimitConfig)
		if err := r.UnmarshalTo(config); err != nil {
			faults = append(faults, fmt.Sprintf("resources[%d]: %v", i, err))
			lost = c.opts.Merge
			continue
		}
		spec, err := specOf(config)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", spec.File, err))
			bad[spec.Domain] = true
			continue
		}
		spec.OnError = c.opts.OnError
		at := slices.IndexFunc(specs, func(s policy.Spec) bool { return s.Domain == spec.Domain })
		switch {
		case at < 0:
			specs = append(specs, spec)
		case c.opts.Merge:
			specs[at].Tree = append(specs[at].Tree, spec.Tree...)
		default:
			faults = append(faults, fmt.Sprintf("%s: domain: found %q, which is %s's as well, want one resource a domain", spec.File, spec.Domain, specs[at].File))
		}
	}
	if lost {
		specs = nil
	}
	return specs, bad, faults
}

func faultText(f policy.Fault) string {
	return fmt.Sprintf("%s: %s: found %s, want %s", f.File, f.Path, f.Found, f.Want)
}

func specOf(c *ratelimitv3.RateLimitConfig) (policy.Spec, error) {
	name := c.GetName()
	if name == "" {
		name = c.GetDomain()
	}
	tree, err := nodesOf(c.GetDescriptors())
	return policy.Spec{File: "xds:" + name, Domain: c.GetDomain(), Tree: tree}, err
}

// nodesOf is never nil without an error.
func nodesOf(ds []*ratelimitv3.RateLimitDescriptor) ([]policy.NodeSpec, error) {
	nodes := make([]policy.NodeSpec, len(ds))
	for i, d := range ds {
		n := policy.NodeSpec{Key: d.GetKey(), Value: d.GetValue(), Shadow: d.GetShadowMode(), Detailed: d.GetDetailedMetric()}
		var err error
		if n.Children, err = nodesOf(d.GetDescriptors()); err == nil {
			err = more(&n, d)
		}
		if err != nil {
			return nil, fmt.Errorf("descriptors[%d]: %w", i, err)
		}
		if l := d.GetRateLimit(); l != nil {
			limitOf(&n, l)
		}
		nodes[i] = n
	}
	return nodes, nil
}

func limitOf(n *policy.NodeSpec, l *ratelimitv3.RateLimitPolicy) {
	for _, r := range l.GetReplaces() {
		n.Replaces = append(n.Replaces, r.GetName())
	}
	if l.GetUnlimited() {
		n.Unlimited, n.Name = true, l.GetName()
		return
	}
	n.Limits = []bucket.Limit{{
		Name: l.GetName(), Tokens: int64(l.GetRequestsPerUnit()), Per: periods[int32(l.GetUnit())], Refill: bucket.Aligned,
	}}
}

// periods are the units by their numbers, also those that the generated code
// does not know. An unknown one has no period, which is refused.
var periods = map[int32]time.Duration{
	1: time.Second, 2: time.Minute, 3: time.Hour,
	4: bucket.Day.Nominal(), 5: bucket.Month.Nominal(), 6: bucket.Year.Nominal(), 7: bucket.Week.Nominal(),
}

// The numbers of quota_mode and of metadata, which the generated code does not
// know.
const (
	quotaField    = 7
	metadataField = 8
)

// more reads into n what the generated code does not know of d.
func more(n *policy.NodeSpec, d *ratelimitv3.RateLimitDescriptor) error {
	var text []byte
	for b := d.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, kind, size := protowire.ConsumeTag(b)
		value := b[size:] // the message was read, so that all of it is well-formed
		length := protowire.ConsumeFieldValue(number, kind, value)
		switch {
		case number == quotaField && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(value)
			n.Quota = v != 0
		case number == metadataField && kind == protowire.BytesType:
			v, _ := protowire.ConsumeBytes(value)
			text = append(text, v...) // messages that follow each other are one
		}
		b = value[length:]
	}
	if text == nil {
		return nil
	}
	metadata := new(structpb.Struct)
	if err := proto.Unmarshal(text, metadata); err != nil {
		return fmt.Errorf("read metadata: %w", err)
	}
	n.Metadata = metadata.AsMap()
	return nil
}
