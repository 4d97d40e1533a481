// Package doortest is what the tests of the doors share: a policy from its
// text, a limiter at a moment that lasts, and golden files of requests and
// their answers. It knows no door's messages. It is for tests only.
package doortest

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// Load returns the set of one policy file. A fault ends the test.
func Load(t testing.TB, yaml string) *policy.Set {
	t.Helper()
	files := fstest.MapFS{"policy.yaml": {Data: []byte(yaml)}}
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{"policy.yaml"}, FS: files})
	if set == nil {
		t.Fatalf("Load(%s) = %v, want a policy", yaml, faults)
	}
	return set
}

// A Clock stands until it is moved. It is not safe for concurrent use.
type Clock struct{ Now time.Time }

// NewClock returns a clock that stands at a moment like any other.
func NewClock() *Clock { return &Clock{Now: time.Unix(1_000_000_000, 0)} }

// Memory returns an empty store that goes by c.
func Memory(t testing.TB, c *Clock) *memstore.Store {
	t.Helper()
	store, err := memstore.New(memstore.Options{Now: func() time.Time { return c.Now }})
	if err != nil {
		t.Fatalf("memstore.New() = %v, want no error", err)
	}
	return store
}

// Limiter returns a limiter of o. Without a Store it has one in memory, at a
// clock that stands.
func Limiter(t testing.TB, o limiter.Options) *limiter.Limiter {
	t.Helper()
	if o.Store == nil {
		o.Store = Memory(t, NewClock())
	}
	l, err := limiter.New(o)
	if err != nil {
		t.Fatalf("limiter.New(%+v) = %v, want no error", o, err)
	}
	return l
}
