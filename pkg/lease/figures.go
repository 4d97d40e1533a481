package lease

import (
	"sync/atomic"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// figures are what a Store has done.
type figures struct{ held, leased, spent, back, lost atomic.Int64 }

// over counts what became of the lease that l tells of, which the target may
// not have heard.
func (f *figures) over(l *bucket.Lease, unheard bool) {
	if l.Back == 0 {
		return
	}
	f.held.Add(-1)
	f.spent.Add(l.Spent)
	if unheard {
		f.lost.Add(l.Back - l.Spent)
		return
	}
	f.back.Add(l.Back - l.Spent)
}

// Figures are what a Store has done.
type Figures struct {
	// Held is how many leases are held now.
	Held int64
	// Leased is how many tokens were leased. Of those of leases that are over,
	// Spent were spent, Back given back, and Lapsed were neither: the store,
	// which did not answer when it was told, counts them as spent.
	Leased, Spent, Back, Lapsed int64
}

// Figures returns what s has done so far.
func (s *Store) Figures() Figures {
	f := &s.figures
	return Figures{f.held.Load(), f.leased.Load(), f.spent.Load(), f.back.Load(), f.lost.Load()}
}
