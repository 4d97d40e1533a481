package explain

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A looking is a store that answers as another would, and takes nothing from
// it. It is for one decision.
type looking struct {
	store limiter.Store
	now   func() time.Time
	// balances are what it saw, by key.
	balances map[string][]balance
}

// A balance is how one limit of a bucket stands.
type balance struct {
	spent int64
	full  time.Duration
}

// Take answers as the store would: where there is room or may be debt, by what
// becomes of copies of the buckets, else by what the store says of the wait.
func (l *looking) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if err := limiter.Look(ctx, l.store, charges, results); err != nil {
		return err
	}
	now := l.now()
	copies, err := l.copies(ctx, charges, results, now)
	if err != nil || copies == nil {
		return err
	}
	said := slices.Clone(results)
	bucket.Group(charges, results, now, func(key string) *bucket.Bucket { return copies[key] })
	passed := pass(charges, said)
	for i := range charges {
		if said[i].Err != nil || !passed && !charges[i].Limits.Debt() {
			results[i] = said[i]
		}
	}
	return nil
}

// copies returns copies of the buckets that the store can read, nil if not all
// of them can be had.
func (l *looking) copies(ctx context.Context, charges []bucket.Charge, said []bucket.Result, now time.Time) (map[string]*bucket.Bucket, error) {
	copies := make(map[string]*bucket.Bucket, len(charges))
	for i := range charges {
		if said[i].Err != nil {
			continue
		}
		b, err := l.copy(ctx, &charges[i], now)
		if err != nil || b == nil {
			return nil, err
		}
		copies[charges[i].Key] = b
	}
	return copies, nil
}

// pass says that every bucket that is not shadow has room.
func pass(charges []bucket.Charge, results []bucket.Result) bool {
	for i := range charges {
		if !charges[i].Shadow && results[i].Err == nil && !results[i].Allowed {
			return false
		}
	}
	return true
}

// copy returns a bucket like that of c. It is nil if not all of it can be had.
func (l *looking) copy(ctx context.Context, c *bucket.Charge, now time.Time) (*bucket.Bucket, error) {
	stands, ok := l.balances[c.Key]
	if !ok {
		var err error
		if stands, err = l.balance(ctx, c); err != nil {
			return nil, err
		}
		if l.balances == nil {
			l.balances = make(map[string][]balance)
		}
		l.balances[c.Key] = stands
	}
	if stands == nil {
		return nil, nil
	}
	parts := make([]bucket.Part, len(stands))
	for i, s := range stands {
		parts[i] = s.part(c.Limits.Terms(i), now)
	}
	b := bucket.FromParts(c.Limits, now, parts)
	return &b, nil
}

// balance asks the store how each limit of c stands, nil if it does not say.
func (l *looking) balance(ctx context.Context, c *bucket.Charge) ([]balance, error) {
	asks := make([]bucket.Charge, c.Limits.Len())
	for i := range asks {
		limits := spotlight(c.Limits, i)
		if limits == nil {
			return nil, nil
		}
		asks[i] = bucket.Charge{Key: c.Key, Limits: limits}
	}
	answers := make([]bucket.Result, len(asks))
	if err := limiter.Look(ctx, l.store, asks, answers); err != nil {
		return nil, err
	}
	stands := make([]balance, len(asks))
	for i, r := range answers {
		if r.Err != nil || r.Limit != i {
			return nil, nil
		}
		stands[i] = balance{c.Limits.Terms(i).Most - r.Remaining, r.FullIn}
	}
	return stands, nil
}

// spotlight returns limits under which a look at a bucket of ls tells of limit
// i. A store tells of the limit with the least left, so those before it are made
// so wide that there is always more left under them; they stay, so that limit i
// finds its state at its place. It is nil if these cannot be counted.
func spotlight(ls *bucket.Limits, i int) *bucket.Limits {
	list := make([]bucket.Limit, i+1)
	for j := range list {
		list[j] = ls.At(j)
		list[j].Burst = ls.Terms(j).Most
		if j == i {
			break
		}
		list[j].Burst += ls.Terms(i).Most + 1
		if list[j].Refill == bucket.Sliding {
			list[j].Tokens = list[j].Burst
		}
	}
	limits, err := bucket.NewLimits(list...)
	if err != nil {
		return nil
	}
	return limits
}

// part returns what a limit in the terms t lacks that stands like s. How far the
// next tokens are on their way follows from when it is full. Of a sliding limit
// only the last charge is known, and all is taken for it.
func (s balance) part(t bucket.Terms, now time.Time) bucket.Part {
	p := bucket.Part{Spent: s.spent}
	full, per := s.full.Microseconds(), t.PerMS*1000
	if p.Spent <= 0 || t.Tokens == 0 {
		return bucket.Part{}
	}
	switch t.Refill {
	case bucket.Greedy:
		ticks := (full + t.Tick - 1) / t.Tick // until it is full: the first of them runs
		fraction, phase := max(p.Spent*t.Unit-ticks*t.Step, 0), ticks*t.Tick-full
		p.Aux = fraction*t.Tick + phase
	case bucket.Interval:
		periods := (p.Spent + t.Tokens - 1) / t.Tokens // until then
		p.Aux = periods*per - full
	case bucket.Sliding:
		p.Log = []bucket.Entry{{At: now.UnixMicro() + full - per, Tokens: p.Spent}}
	}
	return p
}
