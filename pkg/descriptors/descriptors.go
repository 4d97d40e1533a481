// Package descriptors has the entries that name a bucket, and the key that a
// store keeps it under.
//
// A key is unambiguous: every field is written with its length, so that no
// byte of a client's can imitate a separator. It is bounded in length and
// printable, and values that are secret or long are hashed. The package knows
// nothing of rules and limits.
package descriptors

import "strings"

// An Entry is one key and value, as Envoy uses the words. An ext_authz or HTTP
// rule builds its own, one for each name in its per.
type Entry struct {
	Key, Value string
}

// A Descriptor is a list of entries in order.
type Descriptor []Entry

// Split reads an entry as it is written in a rule: key=value, split at the
// first =, or a key alone, which is hasValue false.
func Split(s string) (e Entry, hasValue bool) {
	e.Key, e.Value, hasValue = strings.Cut(s, "=")
	return e, hasValue
}
