package limiter

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	strayInterval = time.Minute
	strayName     = 64 // bytes of a domain that are logged
)

// Unknown decides on a request of a domain that no policy has, "" for a
// request that names none: it is allowed, observed like any decision, and
// logged at most once a minute, whatever the number of such domains.
func (l *Limiter) Unknown(ctx context.Context, domain string) Decision {
	d := Decision{Allowed: true, Reason: UnknownDomain, Deciding: -1}
	l.opts.Observe(ctx, d)
	if n := l.strays.due(l.opts.Now()); n > 0 {
		l.opts.Log.LogAttrs(ctx, slog.LevelWarn, "no policy for this domain, requests are allowed",
			slog.String("domain", domain[:min(len(domain), strayName)]), slog.Int64("requests", n))
	}
	return d
}

// strays counts the requests that no policy is for, between two log lines.
type strays struct {
	requests atomic.Int64
	next     atomic.Int64 // ns since the epoch: not to be logged before
}

// due counts one request, and returns how many there were since the last time
// that it was due, or 0 if it is not.
func (s *strays) due(now time.Time) int64 {
	s.requests.Add(1)
	next, at := s.next.Load(), now.UnixNano()
	if at < next || !s.next.CompareAndSwap(next, at+int64(strayInterval)) {
		return 0
	}
	return s.requests.Swap(0)
}
