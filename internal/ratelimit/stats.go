package ratelimit

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A Kind is one of the numbers that are kept of each limit.
type Kind int

// The kinds.
const (
	TotalHits Kind = iota
	OverLimit
	NearLimit
	WithinLimit
	ShadowMode
	// OverLimitWithLocalCache are those over the limit that are known of
	// without asking the store.
	OverLimitWithLocalCache
	Kinds
)

var kinds = [Kinds]string{"total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode", "over_limit_with_local_cache"}

// String returns the name that metrics have it by.
func (k Kind) String() string { return kinds[k] }

// A Limit is what the numbers are of: a domain, and the way to a limit in it,
// key by key with points between.
type Limit struct{ Domain, Way string }

// Numbers are those of one limit.
type Numbers [Kinds]atomic.Uint64

// maxDomains bounds the unknown domains that are told apart. They are Envoy's
// words, and so may be those of anybody who reaches the port.
const maxDomains = 1000

// Other is what has taken the place of what is beyond a bound.
const Other = "other"

// maxLimits bounds the limits that are told apart, since detailed_metric and
// value_to_metric let clients make them.
const maxLimits = 20_000

// maxWay bounds what is kept of each, in bytes, for the same reason: a header
// may be of 60 KiB.
const maxWay = 1024

// Stats count what envoyproxy/ratelimit counts. They are safe for concurrent
// use; the zero value has near limits from the first request on.
type Stats struct {
	// NearRatio is the part of a limit from which on requests are near it.
	NearRatio float64
	// Shadow says that denials are not enforced, and counts them.
	Shadow bool
	// Took is called for each request with the time that it took. It may be
	// nil.
	Took func(time.Duration)
	// Connections returns how many there are to the store, and how many there
	// ever were. nil is a store that has none.
	Connections func() (open, made int64)

	limits sync.Map // Limit to *Numbers
	count  atomic.Int64
	others Numbers // beyond maxLimits and maxWay

	mu     sync.Mutex        // of what follows
	strays map[string]uint64 // by domain
	closed uint64            // connections

	Requests          atomic.Uint64
	RedisErrors       atomic.Uint64
	ServiceErrors     atomic.Uint64
	GlobalShadow      atomic.Uint64
	ConfigLoadSuccess atomic.Uint64
	ConfigLoadError   atomic.Uint64
}

// Observe counts a decision. It fits limiter.Options.Observe.
func (s *Stats) Observe(_ context.Context, d limiter.Decision) {
	if d.Err != nil {
		s.RedisErrors.Add(1)
	}
	if !d.Allowed && s.Shadow {
		s.GlobalShadow.Add(1)
	}
	for i := range d.Results {
		if d.Results[i].Err == nil && d.Applied[i].Cost > 0 {
			s.observe(&d, i)
		}
	}
}

func (s *Stats) observe(d *limiter.Decision, i int) {
	a, r := &d.Applied[i], &d.Results[i]
	n := s.of(Limit{a.Rule.Domain, a.Way})
	hits := uint64(a.Cost)
	n[TotalHits].Add(hits)
	switch {
	case a.Unlimited:
		n[WithinLimit].Add(hits)
	case r.Allowed:
		n[WithinLimit].Add(hits)
		burst := a.Limits.At(r.Limit).Burst
		beyond := burst - r.Remaining - int64(float64(burst)*s.NearRatio)
		n[NearLimit].Add(uint64(min(max(beyond, 0), a.Cost)))
	default:
		n[OverLimit].Add(hits)
		if r.Remembered {
			n[OverLimitWithLocalCache].Add(hits)
		}
		if a.Shadow {
			n[ShadowMode].Add(hits)
		}
	}
}

func (s *Stats) of(l Limit) *Numbers {
	if n, ok := s.limits.Load(l); ok {
		return n.(*Numbers)
	}
	if s.count.Load() >= maxLimits || len(l.Way) > maxWay {
		return &s.others
	}
	l = Limit{strings.Clone(l.Domain), strings.Clone(l.Way)} // no request's memory is kept
	n, had := s.limits.LoadOrStore(l, new(Numbers))
	if !had {
		s.count.Add(1)
	}
	return n.(*Numbers)
}

// Each calls f for each limit that was asked for. What is beyond those that
// are told apart, or has too long a way, has neither domain nor way.
func (s *Stats) Each(f func(Limit, *Numbers)) {
	s.limits.Range(func(l, n any) bool {
		f(l.(Limit), n.(*Numbers))
		return true
	})
	if s.others[TotalHits].Load() > 0 {
		f(Limit{}, &s.others)
	}
}

// Asked counts a request, however it was answered.
func (s *Stats) Asked(took time.Duration, err error) {
	s.Requests.Add(1)
	if err != nil {
		s.ServiceErrors.Add(1)
	}
	if s.Took != nil {
		s.Took(took)
	}
}

// Strayed counts the descriptors of a request for a domain that there is not.
func (s *Stats) Strayed(domain string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.strays[domain]; !known && len(s.strays) >= maxDomains {
		domain = Other
	}
	if s.strays == nil {
		s.strays = map[string]uint64{}
	}
	s.strays[strings.Clone(domain)] += uint64(n)
}

// Strays are the descriptors by domains that there are not, "other" for those
// beyond a thousand.
func (s *Stats) Strays() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.strays)
}

// Pool returns how many connections there are to the store, how many were
// made, and how many of them closed. It may be called with Connections only.
func (s *Stats) Pool() (open int64, made, closed uint64) {
	open, n := s.Connections()
	s.mu.Lock()
	defer s.mu.Unlock()
	// One that has just been made is not yet open: what was told stays so.
	s.closed = max(s.closed, uint64(n-open))
	return open, uint64(n), s.closed
}

// Gauges are the numbers that go up and down, by the names that they have in
// statsd.
func (s *Stats) Gauges() map[string]int64 {
	if s.Connections == nil {
		return nil
	}
	open, _, _ := s.Pool()
	return map[string]int64{"ratelimit.redis_pool.cx_active": open}
}

// Counters are all numbers by the names that they have in statsd.
func (s *Stats) Counters() map[string]uint64 {
	all := map[string]uint64{
		"ratelimit.service.config_load_success":                  s.ConfigLoadSuccess.Load(),
		"ratelimit.service.config_load_error":                    s.ConfigLoadError.Load(),
		"ratelimit.service.global_shadow_mode":                   s.GlobalShadow.Load(),
		"ratelimit.service.call.should_rate_limit.redis_error":   s.RedisErrors.Load(),
		"ratelimit.service.call.should_rate_limit.service_error": s.ServiceErrors.Load(),
		"ratelimit_server.ShouldRateLimit.total_requests":        s.Requests.Load(),
	}
	for domain, n := range s.Strays() {
		all["ratelimit.service.rate_limit."+plain(domain)+".domain_not_found"] += n
	}
	if s.Connections != nil {
		_, all["ratelimit.redis_pool.cx_total"], all["ratelimit.redis_pool.cx_local_close"] = s.Pool()
	}
	s.Each(func(l Limit, n *Numbers) {
		if l == (Limit{}) {
			l = Limit{Other, Other}
		}
		for k := range Kinds {
			all["ratelimit.service.rate_limit."+plain(l.Domain)+"."+plain(l.Way)+"."+k.String()] += n[k].Load()
		}
	})
	return all
}

// plain is s without what divides the parts of a line of statsd.
func plain(s string) string {
	return strings.NewReplacer(":", "_", "|", "_", "\n", "_", "@", "_", "#", "_").Replace(s)
}
