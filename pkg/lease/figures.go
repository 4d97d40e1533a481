package lease

import (
	"sync/atomic"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// figures are what a Keeper has done.
type figures struct{ held, leased, spent, back, lapsed atomic.Int64 }

// over counts what became of the lease that l tells of, which the store may
// not have heard.
func (f *figures) over(l *bucket.Lease, unheard bool) {
	if l.Back == 0 {
		return
	}
	back := int64(0)
	if !unheard {
		back = max(l.Returned-l.Spent, 0)
	}
	f.held.Add(-1)
	f.spent.Add(l.Spent)
	f.back.Add(back)
	f.lapsed.Add(l.Back - l.Spent - back)
}

// Figures are what a Keeper has done. They are read one after the other, while
// it goes on.
type Figures struct {
	// Held is how many leases are held now.
	Held int64
	// Leased is how many tokens were leased. Of those of leases that are over,
	// Spent were spent, Back given back, and Lapsed were neither: the store, which
	// did not answer when it was told or was told too late, counts them as spent.
	Leased, Spent, Back, Lapsed int64
}

// Figures returns what k has done so far.
func (k *Keeper) Figures() Figures {
	f := &k.figures
	return Figures{f.held.Load(), f.leased.Load(), f.spent.Load(), f.back.Load(), f.lapsed.Load()}
}
