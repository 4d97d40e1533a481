package limiter_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

var (
	errLost = errors.New("not a bucket")
	errDown = &downError{"timeout"}
)

type downError struct{ cause string }

func (e *downError) Error() string { return "store: " + e.cause }
func (e *downError) Cause() string { return e.cause }

// A script is a store that answers what it was told to.
type script struct {
	results []bucket.Result
	err     error
}

func (s script) Take(_ context.Context, _ []bucket.Charge, results []bucket.Result) error {
	copy(results, s.results)
	return s.err
}

// unasked is a store that must not be asked.
type unasked struct{ t *testing.T }

func (u unasked) Take(context.Context, []bucket.Charge, []bucket.Result) error {
	u.t.Error("Take was called, want no call")
	return nil
}

// A ledger is a store in its plainest form, at one moment that lasts.
type ledger struct {
	mu      sync.Mutex
	now     time.Time
	buckets map[string]*bucket.Bucket
}

func newLedger() *ledger {
	return &ledger{now: time.Unix(1_000_000, 0), buckets: map[string]*bucket.Bucket{}}
}

func (l *ledger) Take(_ context.Context, charges []bucket.Charge, results []bucket.Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket.Group(charges, results, l.now, func(key string) *bucket.Bucket {
		if l.buckets[key] == nil {
			l.buckets[key] = new(bucket.Bucket)
		}
		return l.buckets[key]
	})
	return nil
}

func mustNew(t testing.TB, o limiter.Options) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(o)
	if err != nil {
		t.Fatalf("New() = %v, want no error", err)
	}
	return l
}

// rules makes a match of rules of those names; ~ marks a shadow.
func rules(names ...string) policy.Match {
	var m policy.Match
	for _, name := range names {
		name, shadow := strings.CutPrefix(name, "~")
		m.Applied = append(m.Applied, policy.Applied{
			Rule:   &policy.Rule{Name: name, Shadow: shadow},
			Charge: bucket.Charge{Key: name, Cost: 1, Shadow: shadow},
		})
	}
	return m
}

func onError(os ...policy.OnError) policy.Match {
	var m policy.Match
	for _, o := range os {
		m.Applied = append(m.Applied, policy.Applied{Rule: &policy.Rule{OnError: o}, Charge: bucket.Charge{Cost: 1}})
	}
	return m
}

// applied is a rule of n tokens an hour.
func applied(t testing.TB, name string, n int64) policy.Applied {
	t.Helper()
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: n, Per: time.Hour})
	if err != nil {
		t.Fatalf("NewLimits(%d/1h) = %v, want no error", n, err)
	}
	return policy.Applied{
		Rule:   &policy.Rule{Name: name, Headers: &policy.Headers{}},
		Charge: bucket.Charge{Key: name, Limits: limits, Cost: 1},
	}
}
