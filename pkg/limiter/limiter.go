// Package limiter decides: it takes the rules that apply to a request, charges
// their buckets in a store, and makes of the results, of shadow rules and of a
// store that fails one decision.
//
// It knows nothing of the wire: the doors turn its decisions into answers.
package limiter

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A Store keeps buckets. It is safe for concurrent use.
type Store interface {
	// Take makes the charges of one request and sets results[i] for
	// charges[i]; the two have one length. The charges that are not Shadow
	// are one group: all are made or none. Costs on one key are summed first.
	// After a group that passes, each Shadow charge is made alone if its
	// bucket has room; after one that does not, none is. On an error nothing
	// is known of any charge and results means nothing. Once Take has returned
	// without an error the store holds on to neither slice.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// Options are what a Limiter is made of. Only Store is required.
type Options struct {
	Store Store
	// Local stands in for Store when that fails, for the rules whose on_error
	// is local. With nil, or when it fails itself, those rules allow: there
	// is nothing left to count with, and who wants a denial then writes deny.
	// A store that is full and answers for itself has not failed.
	Local Store
	// Observe is called once for each decision, before it is returned, on the
	// caller's goroutine. It must not change or keep what the Decision points
	// to. nil observes nothing. Limiters are cheap: one for each door tells
	// Observe the door.
	Observe func(context.Context, Decision)
	// Log gets a warning, at most once a minute, about requests of a domain
	// that no policy has. nil logs nothing.
	Log *slog.Logger
	// Now is the clock of Log's minute. nil means time.Now.
	Now func() time.Time
}

// A Limiter makes decisions. It is safe for concurrent use.
type Limiter struct {
	opts    Options
	buffers sync.Pool // of *buffer
	strays  strays
}

// New makes a Limiter. It does not own the stores.
func New(o Options) (*Limiter, error) {
	if o.Store == nil {
		return nil, errors.New("limiter: Options.Store is required")
	}
	if o.Observe == nil {
		o.Observe = func(context.Context, Decision) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{opts: o}
	l.buffers.New = func() any { return new(buffer) }
	return l, nil
}

// Decide charges what m applies, and says what becomes of the request. The
// charges that are not shadow are made together or not at all, except that
// those below zero give their tokens back whatever becomes of the others. The
// Decision keeps m.Applied. Its Reason is Canceled if ctx ended first; then
// there is nobody left to answer, and whether anything was charged is not
// known.
func (l *Limiter) Decide(ctx context.Context, m policy.Match) Decision {
	d := l.decide(ctx, m)
	l.opts.Observe(ctx, d)
	return d
}

func (l *Limiter) decide(ctx context.Context, m policy.Match) Decision {
	switch {
	case m.Exempt:
		return Decision{Allowed: true, Reason: Exempt, Deciding: -1}
	case m.Refusal != nil:
		return Decision{Reason: Refused, Refusal: m.Refusal, Failures: m.Failures, Deciding: -1}
	case len(m.Applied) == 0:
		return Decision{Allowed: true, Reason: NoRule, Failures: m.Failures, Deciding: -1}
	}
	d := Decision{Applied: m.Applied, Failures: m.Failures, Results: make([]bucket.Result, len(m.Applied)), Spare: m.Spare, Deciding: -1}
	d.waive()
	if err := l.charge(ctx, l.opts.Store, &d, anyPlace); err != nil {
		d.fail(err)
		if ctx.Err() != nil {
			d.Reason, d.Err = Canceled, err
			return d
		}
	}
	l.judge(ctx, &d)
	return d
}

func anyPlace(int) bool { return true }

// charge asks s for every result at the places that pick chooses, of rules
// that have limits. Tokens that are given back must not hang on whether others
// can be taken: where a request does both, it asks twice.
func (l *Limiter) charge(ctx context.Context, s Store, d *Decision, pick func(int) bool) error {
	refunds, charges := 0, 0
	for i := range d.Applied {
		switch a := &d.Applied[i]; {
		case a.Unlimited || !pick(i):
		case a.Cost < 0:
			refunds++
		default:
			charges++
		}
	}
	if refunds > 0 {
		if err := l.ask(ctx, s, d, func(i int) bool { return d.Applied[i].Cost < 0 && pick(i) }); err != nil {
			return err
		}
	}
	if charges == 0 {
		return nil
	}
	return l.chargeQuotas(ctx, s, d, func(i int) bool { return d.Applied[i].Cost >= 0 && pick(i) })
}

// judge makes the decision of the results that are there. A bucket that could
// not be read goes by its rule's on_error.
func (l *Limiter) judge(ctx context.Context, d *Decision) {
	d.Err = d.unreadErr()
	if i := d.unread(policy.Deny503); i >= 0 {
		d.Reason, d.Deciding = StoreDown, i
		return
	}
	if d.conclude(); !d.Allowed || d.unread(policy.Local) < 0 || l.opts.Local == nil {
		return
	}
	local := func(i int) bool { return d.lacks(i, policy.Local) }
	if l.charge(ctx, l.opts.Local, d, local) == nil {
		d.Local = true
		d.conclude()
	}
}

// A buffer is what one call of a store needs.
type buffer struct {
	charges []bucket.Charge
	results []bucket.Result
	places  []int // of each charge in the decision
}

// ask makes the charges at the places that pick chooses, in one call of s.
// Rules without limits are passed over.
func (l *Limiter) ask(ctx context.Context, s Store, d *Decision, pick func(int) bool) error {
	b := l.buffers.Get().(*buffer)
	for i := range d.Applied {
		if pick(i) && !d.Applied[i].Unlimited {
			b.charges = append(b.charges, d.Applied[i].Charge)
			if d.Applied[i].Quota {
				b.charges[len(b.charges)-1].Shadow = true // it is charged alone
			}
			b.results = append(b.results, bucket.Result{})
			b.places = append(b.places, i)
		}
	}
	if err := s.Take(ctx, b.charges, b.results); err != nil {
		return err // the store may hold b still, so it goes to the collector
	}
	for j, i := range b.places {
		d.Results[i] = b.results[j]
	}
	b.reset()
	l.buffers.Put(b)
	return nil
}

func (b *buffer) reset() {
	clear(b.charges)
	clear(b.results)
	b.charges, b.results, b.places = b.charges[:0], b.results[:0], b.places[:0]
}
