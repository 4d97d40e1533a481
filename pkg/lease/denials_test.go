package lease_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// TestDenialRemembered has a replica hold all that is left, while denials are
// remembered before another's leases, before its own, or behind those of another:
// what is given back shows within a second.
func TestDenialRemembered(t *testing.T) {
	t.Parallel()
	for name, asking := range map[string]func(t *testing.T, holder *lease.Keeper, d *distant) (lease.Store, *denycache.Cache){
		"before another's": func(t *testing.T, _ *lease.Keeper, d *distant) (lease.Store, *denycache.Cache) {
			c := remembering(t, keeper(t, d))
			return c, c
		},
		"before its own": func(t *testing.T, holder *lease.Keeper, _ *distant) (lease.Store, *denycache.Cache) {
			c := remembering(t, holder)
			return c, c
		},
		"behind another's": func(t *testing.T, _ *lease.Keeper, d *distant) (lease.Store, *denycache.Cache) {
			c := remembering(t, d)
			return keeper(t, c), c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				holder, d := open(t)
				ls := leasing(t)
				take(t, d.Store, ls, 1000-8-100)
				for range 7 {
					take(t, holder, ls, 1)
				}
				s, cache := asking(t, holder, d)
				var wait sync.WaitGroup
				wait.Go(func() { take(t, holder, ls, 1) }) // and 100 ahead
				time.Sleep(d.there)
				synctest.Wait()
				begun, passed := time.Now(), false
				for !passed && time.Since(begun) < stops+denycache.Longest+d.there+d.back {
					passed = take(t, s, ls, 1).Allowed
					time.Sleep(time.Millisecond)
				}
				wait.Wait()
				if !passed || time.Since(begun) < stops/2 || cache.Remembered() == 0 {
					t.Errorf("allowed: %v after %v with %d denials remembered, want it once the lease is given back, and a second later at most", passed, time.Since(begun), cache.Remembered())
				}
			})
		})
	}
}

func keeper(t *testing.T, s lease.Store) *lease.Keeper {
	t.Helper()
	k, err := lease.New(lease.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func remembering(t *testing.T, s denycache.Store) *denycache.Cache {
	t.Helper()
	c, err := denycache.New(denycache.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
