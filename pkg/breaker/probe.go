package breaker

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	firstPause = 100 * time.Millisecond // before a look at the store
	lastPause  = 500 * time.Millisecond
	// calm is how long a Breaker is closed before the pauses begin anew: a
	// store that answers looks and fails callers is to cost ever fewer.
	calm = 10 * time.Second
	// lookTime bounds a look at a store that has no deadline of its own.
	lookTime = time.Second
)

// run looks at the store whenever the Breaker is open, and tells.
func (b *Breaker) run(ctx context.Context) {
	var p pace
	for {
		select {
		case <-b.opened:
		case <-ctx.Done():
			return
		}
		if open := b.open.Load(); open != nil {
			b.changed(Change{Open: true, Err: open.Err})
			b.recover(ctx, &p)
		}
	}
}

// recover looks at the store until it answers.
func (b *Breaker) recover(ctx context.Context, p *pace) {
	p.begin()
	for open := b.open.Load(); open != nil; {
		if !sleep(ctx, p.next()) {
			return
		}
		b.look(ctx)
		last := open
		if open = b.open.Load(); open == nil {
			p.closed = time.Now()
			b.changed(Change{Err: last.Err, Lasted: time.Since(last.Since)})
		}
	}
}

// look asks the store for a bucket that is not there. Its name is another each
// time: a Cluster keeps each name on one of its nodes.
func (b *Breaker) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	charges := []bucket.Charge{{Key: "breaker:" + strconv.FormatUint(rand.Uint64(), 36), Limits: b.limits}}
	results := make([]bucket.Result, 1)
	_, _ = b.circuit.Execute(func() (struct{}, error) { // turn is told
		before := b.answers.Load()
		return struct{}{}, b.judge(before, b.store.Take(ctx, charges, results), results)
	})
}

// A pace is how looks follow each other. The pauses grow, and differ between
// processes, which are not to look all at once.
type pace struct {
	pause  time.Duration
	closed time.Time
}

func (p *pace) begin() {
	if p.pause == 0 || time.Since(p.closed) >= calm {
		p.pause = firstPause
	}
}

func (p *pace) next() time.Duration {
	d := p.pause
	p.pause = min(2*d, lastPause)
	return d - rand.N(d/4)
}

// sleep waits for d, and says whether ctx lets it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
