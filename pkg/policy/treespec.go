package policy

import (
	"slices"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// NodeSpec is one of the descriptors in a file of envoyproxy/ratelimit's
// format: an entry of what Envoy sends, what may follow it, and what holds
// where it is the last. In faults the first is descriptors[0].
type NodeSpec struct {
	// Key and Value are an entry's; an empty Value is any. A * in either stands
	// for any text, and is compared with key and value joined by an
	// underscore.
	Key, Value string
	// Place is where this stands, for faults in others: mesh.yaml:7. It may be
	// empty.
	Place    string
	Children []NodeSpec
	// Limits are nil, and Unlimited is false, where nothing is charged. The
	// first one's Name is the rule's too, by which others replace it.
	Limits    []bucket.Limit
	Unlimited bool
	Name      string // of an unlimited rule
	// Replaces names other rules that do not hold beside this one.
	Replaces []string
	Shadow   bool
	Quota    bool
	// Share has all values that a * stands for share a bucket.
	Share bool
	// Detailed has metrics show all values of a request, and ValueToMetric
	// that of this entry.
	Detailed      bool
	ValueToMetric bool
	// Metadata is as Leaf has it.
	Metadata map[string]any
}

// charges says that a request that ends here is one of a rule.
func (n *NodeSpec) charges() bool { return n.Limits != nil || n.Unlimited }

// names are those by which n can be replaced.
func (n *NodeSpec) names() []string {
	var names []string
	for _, l := range n.Limits {
		names = append(names, l.Name)
	}
	names = append(names, n.Name)
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// way is n in the name of its rule.
func (n *NodeSpec) way() string {
	return joined(n.Key, n.Value)
}
