package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter/storetest"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// A shortcut goes the short way where there is one.
type shortcut struct {
	*redisstore.Store
	usual, others int
}

func (s *shortcut) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	usual, err := s.TakeUsual(ctx, charges, results)
	if usual || err != nil {
		s.usual++
		return err
	}
	s.others++
	return s.Store.Take(ctx, charges, results)
}

// TestDifferentialUsual is TestDifferential by the short way, which answers as
// the long one would or does nothing.
func TestDifferentialUsual(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			h := harness(t, alone(kind)(t))
			s := &shortcut{Store: h.Store.(*redisstore.Store)}
			h.Store = s
			storetest.Differential(t, h, 3000, 11)
			if s.usual < 300 || s.others < 300 {
				t.Errorf("%d calls went the short way, %d the long one: want many of both", s.usual, s.others)
			}
		})
	}
}

// TestManyLimits charges buckets each under its own limits, more of them than
// Lua takes numbers at once.
func TestManyLimits(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			store := open(t, redisstore.Options{URL: servers.Start(t, kind, servers.Options{Socket: true}).URL(), Deadline: patience})
			charges := make([]bucket.Charge, 1500)
			for i := range charges {
				ls := limits(t, bucket.Limit{Tokens: int64(i + 1), Per: time.Minute})
				charges[i] = bucket.Charge{Key: fmt.Sprint(i), Limits: ls, Cost: 1}
			}
			results := make([]bucket.Result, len(charges))
			if err := store.Take(t.Context(), charges, results); err != nil {
				t.Fatalf("Take(%d charges) = %v, want no error", len(charges), err)
			}
			for i, r := range results {
				if !r.Allowed || r.Remaining != int64(i) {
					t.Fatalf("result %d = %+v, want allowed with %d left", i, r, i)
				}
			}
		})
	}
}

// TestUsual says what goes the short way.
func TestUsual(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
	store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
	minute := bucket.Limit{Tokens: 9, Per: time.Minute}
	with := func(change func(l *bucket.Limit)) *bucket.Limits {
		l := minute
		change(&l)
		return limits(t, l)
	}
	usual, other := limits(t, minute), with(func(l *bucket.Limit) { l.Burst = 20 })
	server.Do(t, "SET", "sl:text", "hello")
	server.Do(t, "RPUSH", "sl:list", "a")
	for _, c := range []struct {
		name    string
		charges []bucket.Charge
		want    bool
	}{
		{"one", []bucket.Charge{{Key: "a", Limits: usual, Cost: 1}}, true},
		{"the same again", []bucket.Charge{{Key: "a", Limits: usual, Cost: 9}}, true},
		{"two", []bucket.Charge{{Key: "a", Limits: usual, Cost: 1}, {Key: "b", Limits: other, Cost: 2}}, true},
		{"a key twice", []bucket.Charge{{Key: "c", Limits: usual, Cost: 1}, {Key: "c", Limits: usual, Cost: 2}}, true},
		{"interval", []bucket.Charge{{Key: "d", Cost: 1, Limits: with(func(l *bucket.Limit) { l.Refill = bucket.Interval })}}, true},
		{"aligned", []bucket.Charge{{Key: "e", Cost: 1, Limits: with(func(l *bucket.Limit) { l.Refill = bucket.Aligned })}}, true},
		{"sliding", []bucket.Charge{{Key: "f", Cost: 1, Limits: with(func(l *bucket.Limit) { l.Refill = bucket.Sliding })}}, false},
		{"named", []bucket.Charge{{Key: "g", Cost: 1, Limits: with(func(l *bucket.Limit) { l.Name = "n" })}}, false},
		{"two limits", []bucket.Charge{{Key: "h", Cost: 1, Limits: limits(t, minute, minute)}}, false},
		{"a key twice under other limits", []bucket.Charge{{Key: "i", Limits: usual, Cost: 1}, {Key: "i", Limits: other, Cost: 2}}, false},
		{"look", []bucket.Charge{{Key: "a", Limits: usual}}, false},
		{"refund", []bucket.Charge{{Key: "a", Limits: usual, Cost: -1}}, false},
		{"shadow", []bucket.Charge{{Key: "a", Limits: usual, Cost: 1, Shadow: true}}, false},
		{"shadow beside", []bucket.Charge{{Key: "a", Limits: usual, Cost: 1}, {Key: "b", Limits: usual, Cost: 1, Shadow: true}}, false},
		{"no bucket", []bucket.Charge{{Key: "text", Limits: usual, Cost: 1}}, false},
		{"no text", []bucket.Charge{{Key: "list", Limits: usual, Cost: 1}}, false},
		{"no text beside", []bucket.Charge{{Key: "j", Limits: usual, Cost: 1}, {Key: "list", Limits: usual, Cost: 1}}, false},
		{"another mode beside", []bucket.Charge{{Key: "a", Limits: usual, Cost: 1}, {Key: "d", Limits: with(func(l *bucket.Limit) { l.Refill = bucket.Aligned }), Cost: 1}}, false},
	} {
		before := server.Do(t, "DBSIZE")
		got, err := store.TakeUsual(t.Context(), c.charges, make([]bucket.Result, len(c.charges)))
		if got != c.want || err != nil {
			t.Errorf("TakeUsual(%s) = %v, %v, want %v", c.name, got, err, c.want)
		}
		if after := server.Do(t, "DBSIZE"); !got && after != before {
			t.Errorf("TakeUsual(%s) left %s keys of %s, want nothing done", c.name, after, before)
		}
	}
}
