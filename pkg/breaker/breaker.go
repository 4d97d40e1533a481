// Package breaker stands in front of a store that may be away. Once calls fail
// for want of the store, later ones are answered at once with an *OpenError, so
// that what a request gets then is decided without the wait, and the store is
// asked in the background until it answers.
//
// It opens after 20 calls in a row that the store left without an answer. A
// call breaks the row if it is answered, whatever the answer; and one that
// fails is counted only if no other was answered since it began, so that the
// slow failures of some calls do not add up between the quick answers of
// others. It opens too when 9 in 10 calls fail, 100 at least and for half a
// second: of those of the last second, or since they began to fail if that was
// later. A part of the store that is away, as a Cluster's node can be, thus
// leaves the others in use.
//
// An answer is also that the store takes no writes or is full: who is over a
// limit is still denied then. A call that its caller gave up says nothing, nor
// does one whose time was over before it began.
//
// What a failure means for a request is for others to say; the package knows
// errors by their Cause alone.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	row = 20 // failures with no answer between them

	window   = time.Second
	parts    = 10  // of the window, which ends part by part
	failures = 100 // in the window, at least
	share    = 9   // so many fail for each that is answered
)

// A Store is what may be away.
type Store interface {
	// Take makes charges; an error is the store's, or the caller went away.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// Options say what a Breaker stands before. Only Store is required.
type Options struct {
	// Store is asked by callers, and by the Breaker while it is open: those
	// looks at buckets of names that nothing else has charge and write nothing.
	Store Store
	// Silence is for a store of several servers. It does not open by a row of
	// failures until no call was answered for so long: many calls that fail at
	// once, by one server, are no row. 0 is for one server.
	Silence time.Duration
	// Changed is told in order when the Breaker opens and closes, soon after,
	// by one goroutine that waits for it. nil tells nobody.
	Changed func(Change)
}

// A Change is that a Breaker opened or closed.
type Change struct {
	Open bool
	// Err is the last failure before that.
	Err error
	// Lasted is how long the Breaker was open that closed.
	Lasted time.Duration
}

// A Breaker is a Store before another. It is safe for concurrent use.
type Breaker struct {
	store   Store
	silence time.Duration
	changed func(Change)
	limits  *bucket.Limits // of looks: any will do
	circuit *gobreaker.CircuitBreaker[struct{}]
	open    atomic.Pointer[OpenError]
	opens   atomic.Uint64 // how often it did
	// calm says that no failure was counted for a window. Then answers need not
	// be, and the circuit, which has a lock, is not asked.
	calm atomic.Bool

	// The circuit's lock guards these.
	failure           error     // that was counted last
	failedAt, trouble time.Time // when, and when the first was, with no long pause since

	answers atomic.Uint64
	failed  atomic.Int64 // in a row
	began   time.Time
	last    atomic.Int64 // answer, counted from began; kept with silence alone

	opened chan struct{}
	stop   context.CancelFunc
	wait   sync.WaitGroup
}

// New returns a closed Breaker. It does not own the store. Close it after use,
// before the store.
func New(o Options) (*Breaker, error) {
	if o.Store == nil {
		return nil, errors.New("breaker: Options.Store is required")
	}
	if o.Changed == nil {
		o.Changed = func(Change) {}
	}
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 1, Per: time.Second})
	if err != nil {
		return nil, fmt.Errorf("breaker: make a limit: %w", err)
	}
	b := &Breaker{
		store: o.Store, silence: o.Silence, changed: o.Changed, limits: limits, began: time.Now(), opened: make(chan struct{}, 1),
	}
	b.circuit = b.newCircuit()
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.wait.Go(func() { b.run(ctx) })
	return b, nil
}

func (b *Breaker) newCircuit() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: window, BucketPeriod: window / parts,
		// Only a probe is to find it half-open, and probes are further apart.
		MaxRequests: 1, Timeout: firstPause / 2,
		ReadyToTrip:   b.trips,
		IsExcluded:    func(err error) bool { return err == errGaveUp },
		IsSuccessful:  b.succeeded,
		OnStateChange: func(_ string, _, to gobreaker.State) { b.turn(to) },
	})
}

// Close ends the looks at the store and waits for the one under way. A Breaker
// that is open stays so.
func (b *Breaker) Close() error {
	b.stop()
	b.wait.Wait()
	return nil
}

// Open returns what callers get, nil while the Breaker is closed.
func (b *Breaker) Open() *OpenError { return b.open.Load() }

// Take asks the store, unless the Breaker is open: then no charge was made, and
// the error is an *OpenError.
func (b *Breaker) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if open := b.open.Load(); open != nil {
		return open
	}
	if ctx.Err() != nil {
		return b.store.Take(ctx, charges, results) // whose error says nothing of the store
	}
	if b.calm.Load() {
		return b.takeCalmly(ctx, charges, results)
	}
	var err error
	asked := false
	_, refusal := b.circuit.Execute(func() (struct{}, error) {
		asked = true
		before := b.answers.Load()
		err = b.store.Take(ctx, charges, results)
		return struct{}{}, b.judge(before, err, results)
	})
	if !asked { // it opened since
		return &OpenError{Since: time.Now(), Err: refusal}
	}
	return err
}

// takeCalmly tells the circuit of failures alone, and of none that began before
// it last opened.
func (b *Breaker) takeCalmly(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	before, opens := b.answers.Load(), b.opens.Load()
	err := b.store.Take(ctx, charges, results)
	failure := b.judge(before, err, results)
	if failure == nil || failure == errGaveUp || b.opens.Load() != opens {
		return err
	}
	_, _ = b.circuit.Execute(func() (struct{}, error) { return struct{}{}, failure }) // turn is told
	return err
}

// judge notes a call that began after that many answers, and returns what the
// circuit shall count.
func (b *Breaker) judge(before uint64, err error, results []bucket.Result) error {
	if err == nil {
		err = common(results)
	}
	switch cause := causeOf(err); {
	case cause == canceled:
		return errGaveUp
	case err == nil || answered[cause]:
		b.answer()
		return nil
	case b.answers.Load() == before:
		b.failed.Add(1)
	}
	return err
}

func (b *Breaker) answer() {
	b.answers.Add(1)
	if b.failed.Load() != 0 {
		b.failed.Store(0)
	}
	if b.silence > 0 {
		b.last.Store(int64(time.Since(b.began)))
	}
}

// succeeded says whether err, as judge returned it, is an answer.
func (b *Breaker) succeeded(err error) bool {
	now := time.Now()
	calm := now.Sub(b.failedAt) > window
	b.calm.Store(calm && err == nil)
	if err == nil {
		return true
	}
	if calm {
		b.trouble = now
	}
	b.failure, b.failedAt = err, now
	return false
}

// trips says whether the failure that was counted last opens the circuit.
func (b *Breaker) trips(c gobreaker.Counts) bool {
	if c.TotalFailures >= failures && c.TotalFailures >= share*c.TotalSuccesses && b.failedAt.Sub(b.trouble) >= window/2 {
		return true
	}
	return b.failed.Load() >= row && (b.silence == 0 || time.Since(b.began)-time.Duration(b.last.Load()) >= b.silence)
}

// turn follows the circuit, which holds its lock.
func (b *Breaker) turn(to gobreaker.State) {
	switch to {
	case gobreaker.StateClosed:
		b.open.Store(nil)
	case gobreaker.StateOpen:
		since := time.Now()
		if old := b.open.Load(); old != nil { // a probe failed
			since = old.Since
		}
		b.opens.Add(1)
		b.open.Store(&OpenError{Since: since, Err: b.failure})
		select {
		case b.opened <- struct{}{}:
		default:
		}
	}
}
