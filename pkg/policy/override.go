package policy

import (
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// An override is what holds instead of a rule's limits, under the same key,
// for the requests that it matches.
type override struct {
	when   *expression
	values []wantedValue
	limits *bucket.Limits // nil: none
}

// A wantedValue is a part of a request, or an entry of a descriptor, and which
// values it must have.
type wantedValue struct {
	part     part
	entry    int
	texts    map[string]bool
	networks identity.Networks // with the part ip
}

// limitsFor returns the limits that hold for v, nil for none.
func (r *rule) limitsFor(v *view) *bucket.Limits {
	for i := range r.overrides {
		if r.overrides[i].matches(r, v) {
			return r.overrides[i].limits
		}
	}
	return r.limits
}

// matches says that o is for v. A when that fails is false: nobody gets other
// limits for what makes it fail.
func (o *override) matches(r *rule, v *view) bool {
	for i := range o.values {
		if !o.values[i].isOf(v) {
			return false
		}
	}
	return o.when == nil || o.when.holds(v, r.Rule, false)
}

func (w *wantedValue) isOf(v *view) bool {
	if w.part.from == fromIP {
		return v.id.Client.IsValid() && w.networks.Contains(v.id.Client)
	}
	value, ok := w.part.value(v)
	return ok && w.texts[value.Text]
}

// limitsForEntries returns the limits that hold for d, whose entries are those
// of r.
func (r *rule) limitsForEntries(d descriptors.Descriptor) *bucket.Limits {
	for i := range r.overrides {
		if r.overrides[i].isFor(d) {
			return r.overrides[i].limits
		}
	}
	return r.limits
}

func (o *override) isFor(d descriptors.Descriptor) bool {
	for i := range o.values {
		if w := &o.values[i]; !w.texts[d[w.entry].Value] {
			return false
		}
	}
	return true
}
