package memstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/limiter/storetest"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// A clock stands where it is set.
type clock struct{ at atomic.Pointer[time.Time] }

func (c *clock) set(now time.Time) { c.at.Store(&now) }

func (c *clock) now() time.Time { return *c.at.Load() }

func open(t *testing.T) storetest.Harness {
	t.Helper()
	s, c := openAt(t, time.Unix(0, 0))
	return storetest.Harness{Store: s, SetNow: c.set, Forget: func() { s.Len() }}
}

// openAt opens a store whose clock stands still, at first at now.
func openAt(t *testing.T, now time.Time) (*memstore.Store, *clock) {
	t.Helper()
	c := &clock{}
	c.set(now)
	s, err := memstore.New(memstore.Options{Now: c.now})
	if err != nil {
		t.Fatalf("New() = %v, want no error", err)
	}
	return s, c
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func TestDifferential(t *testing.T) {
	t.Parallel()
	storetest.Differential(t, open(t), 20_000, 7)
}
