// Package bench asks a server that speaks ext_authz or Envoy's rate limit
// protocol, as fast as it answers or at a fixed rate, and says how many answers
// there were, of which kind, and how long they took.
//
// It knows nothing of what answers: ours is measured as any other is.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"
)

// Options say how a Client asks. The zero value asks one request at a time for
// ten seconds, always for key 0.
type Options struct {
	// Callers is how many requests are under way at a time, at most; 0 means 1.
	Callers int
	// Rate is how many requests begin in a second. They begin when they are
	// due, whether or not those before have their answers, as long as a caller
	// is free; a latency counts from when a request was due. 0 is a closed
	// loop: each caller asks again as soon as it has its answer.
	Rate float64
	// WarmUp is how long it asks before it begins to count.
	WarmUp time.Duration
	// Duration is how long it counts; 0 means ten seconds, or as long as
	// Requests take. With a Rate, what was due by then is asked all the same,
	// however late.
	Duration time.Duration
	// Requests ends it after so many; 0 means no bound but Duration.
	Requests int64
	// Timeout is how long one request waits for its answer; 0 means a second.
	Timeout time.Duration
	// Keys is how many keys there are, 0 to Keys-1; 0 means 1.
	Keys uint64
	// Zipf, above 1, is the exponent by which key 0 is asked for the most, key
	// 1 less, and so on. 0 asks for all keys equally often.
	Zipf float64
	// Seed makes the keys those of another run with the same one.
	Seed uint64
	// PIDs are processes whose CPU time is told.
	PIDs []int
	// Progress gets a line each second, over the one before; nil gets nothing.
	Progress io.Writer
}

// Check names what is wrong with o.
func (o Options) Check() error {
	switch {
	case o.Callers < 0:
		return fmt.Errorf("found %d callers, want 1 or more", o.Callers)
	case o.Rate < 0:
		return fmt.Errorf("found a rate of %g, want more than 0, or 0 for a closed loop", o.Rate)
	case o.Zipf != 0 && o.Zipf <= 1:
		return fmt.Errorf("found the Zipf exponent %g, want more than 1, or 0 for all keys equally", o.Zipf)
	case o.WarmUp < 0 || o.Duration < 0 || o.Timeout < 0:
		return fmt.Errorf("found a warm-up of %v, a duration of %v and a timeout of %v, want none below 0", o.WarmUp, o.Duration, o.Timeout)
	case o.Requests < 0:
		return fmt.Errorf("found %d requests, want 1 or more, or 0 for no bound", o.Requests)
	}
	return nil
}

// filled returns o with its defaults.
func (o Options) filled() Options {
	o.Callers, o.Keys, o.Timeout = cmp.Or(o.Callers, 1), cmp.Or(o.Keys, 1), cmp.Or(o.Timeout, time.Second)
	if o.Duration == 0 && o.Requests == 0 {
		o.Duration = 10 * time.Second
	}
	return o
}

// Run asks through c until the time or the requests of o are over, or ctx
// ends. The error says that o cannot be used, that a process of PIDs could not
// be looked at, or that nobody listens where the server is to be; a request
// that fails otherwise is counted in the Report.
func Run(ctx context.Context, c *Client, o Options) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	o = o.filled()
	if o.WarmUp > 0 {
		warm := o
		warm.Duration, warm.Requests, warm.Progress = o.WarmUp, 0, nil
		if _, err := newLoop(c, warm).run(ctx); err != nil {
			return Report{}, err
		}
	}
	before, err := timesOf(o.PIDs)
	if err != nil {
		return Report{}, err
	}
	l := newLoop(c, o)
	took, err := l.run(ctx)
	if err != nil {
		return Report{}, err
	}
	after, err := timesOf(o.PIDs)
	if err != nil {
		return Report{}, err
	}
	return l.report(took, after.since(before)), nil
}
