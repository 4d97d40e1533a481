package limiter

import (
	"math/bits"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// An Outcome is what one bucket has to say in an answer.
type Outcome struct {
	Rule    *policy.Rule
	Allowed bool
	// Limit is the one of the rule's limits that decided.
	Limit bucket.Limit
	// Remaining is the whole tokens left under it, never below zero.
	Remaining int64
	// Reset is the time until Limit is full if Allowed, the wait if not. It is
	// 0 if Hopeless.
	Reset time.Duration
	// Hopeless says that the bucket denied and that no wait would help.
	Hopeless bool
}

// Outcome returns what the bucket at place i has to say. It must be one that
// Deciding, Tightest or Lacking named, have limits, and its Result must have no
// Err.
func (d *Decision) Outcome(i int) Outcome {
	a, r := &d.Applied[i], &d.Results[i]
	o := Outcome{Rule: a.Rule, Allowed: r.Allowed, Limit: a.Limits.At(r.Limit), Remaining: max(r.Remaining, 0)}
	switch {
	case r.Allowed:
		o.Reset = r.FullIn
	case r.RetryAfter == bucket.Never:
		o.Hopeless = true
	default:
		o.Reset = r.RetryAfter
	}
	return o
}

// Seconds returns Reset in whole seconds, rounded up: who waits so long waits
// long enough. A wait is at least 1.
func (o Outcome) Seconds() int64 {
	s := ceil(o.Reset)
	if !o.Allowed && !o.Hopeless {
		return max(s, 1)
	}
	return s
}

// SecondsAt is Seconds, except that of an aligned limit from which nothing was
// taken it is the time from now until its period ends. Others do not call now.
func (o Outcome) SecondsAt(now func() time.Time) int64 {
	if o.Reset == 0 && o.Limit.Refill == bucket.Aligned && o.Limit.Zone == nil && !o.Hopeless {
		o.Reset = o.Limit.Per - time.Duration(now().UnixNano())%o.Limit.Per
	}
	return o.Seconds()
}

// Milliseconds returns Reset in whole milliseconds, rounded up.
func (o Outcome) Milliseconds() int64 {
	return int64((o.Reset + time.Millisecond - 1) / time.Millisecond)
}

// Window returns the time, in whole seconds rounded up, in which the whole
// burst comes back: burst tokens in so long a time is what the limit bears for
// ever. It is 0 for a rate of 0.
func (o Outcome) Window() int64 {
	l := o.Limit
	if l.Tokens <= 0 {
		return 0
	}
	if l.Burst == l.Tokens {
		return ceil(l.Per)
	}
	hi, lo := bits.Mul64(uint64(l.Burst), uint64(l.Per))
	ns, rest := bits.Div64(hi, lo, uint64(l.Tokens)) // under 100 years: NewLimits has seen to it
	return ceil(time.Duration(ns + min(rest, 1)))
}

// Families says which families of rate-limit headers the rule's file asks for.
func (o Outcome) Families() (xRateLimit, ietf bool) {
	if o.Rule.Headers == nil {
		return true, false
	}
	s := o.Rule.Headers.Style
	return s == policy.XRateLimit || s == policy.Both, s == policy.IETF || s == policy.Both
}

func ceil(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}
