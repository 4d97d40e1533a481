package redisstore_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// daily is a limit of days in Kiritimati, 14 hours ahead.
func daily(t *testing.T) (*bucket.Limits, *time.Location) {
	t.Helper()
	zone, err := time.LoadLocation("Pacific/Kiritimati")
	if err != nil {
		t.Fatalf("LoadLocation(Pacific/Kiritimati) = %v, want no error", err)
	}
	return limits(t, bucket.Limit{Tokens: 9, Calendar: bucket.Day, Zone: zone, Refill: bucket.Aligned}), zone
}

// TestCalendarOfTheServer charges from a process that lives in another year:
// the running day is the server's.
func TestCalendarOfTheServer(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		ls, zone := daily(t)
		tomorrow := func() time.Time {
			year, month, day := time.Now().In(zone).Date()
			return time.Date(year, month, day+1, 0, 0, 0, 0, zone)
		}
		before, begun := tomorrow(), time.Now()
		var left []int64
		var full time.Duration
		synctest.Test(t, func(t *testing.T) {
			store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
			for range 2 { // the second time it knows
				got := take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: 2}, bucket.Charge{Key: "other", Limits: ls, Cost: 1})
				left, full = append(left, got[0].Remaining, got[1].Remaining), got[0].FullIn
			}
		})
		if tomorrow() != before {
			t.Skip("a day has begun meanwhile")
		}
		if diff := cmp.Diff([]int64{7, 8, 5, 7}, left); diff != "" {
			t.Errorf("%s: two charges from the year 2000 left (-want +got):\n%s", kind.Name, diff)
		}
		if most, least := before.Sub(begun), time.Until(before); full > most || full < least {
			t.Errorf("%s: full in %v, want from %v to %v, when tomorrow begins there", kind.Name, full, least, most)
		}
	}
}

// TestCalendarEndsTwice has the period end each time that it is asked for.
func TestCalendarEndsTwice(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
	var days atomic.Int64
	store := open(t, redisstore.Options{
		URL: server.URL(), Deadline: patience,
		Now: func() time.Time { return time.Unix(1_700_000_000, 0).AddDate(0, 0, int(days.Add(1))) },
	})
	ls, _ := daily(t)
	err := store.Take(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: 1}}, make([]bucket.Result, 1))
	if causeOf(err) != "calendar" {
		t.Errorf("Take(a limit of days, another day at each look) = %v, want cause calendar", err)
	}
	if n := client(t, server).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("DBSIZE = %d, want 0: nothing was charged", n)
	}
}

// TestCalendarEnds has a day end between the question and the answer.
func TestCalendarEnds(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
	ls, zone := daily(t)
	midnight := time.Date(2026, time.May, 1, 0, 0, 0, 0, zone)
	var looks atomic.Int64
	store := open(t, redisstore.Options{
		URL: server.URL(), Deadline: patience,
		Now: func() time.Time { return midnight.Add(time.Duration(min(looks.Add(1), 2)-2) * time.Microsecond) },
	})
	want := bucket.Result{Allowed: true, Remaining: 8, FullIn: 24 * time.Hour}
	if diff := cmp.Diff(want, take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: 1})[0]); diff != "" {
		t.Errorf("Take(at midnight, asked a microsecond before) (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, take(t, store, bucket.Charge{Key: "k", Limits: ls})[0]); diff != "" {
		t.Errorf("Take(a look after it) (-want +got):\n%s", diff)
	}
}

// TestUndoModes gives a charge back after others were made: it is as if it had
// never been, where each mode lets that be known.
func TestUndoModes(t *testing.T) {
	t.Parallel()
	ls, _ := daily(t)
	for name, ls := range map[string]*bucket.Limits{
		"aligned":  limits(t, bucket.Limit{Tokens: 9, Per: time.Minute, Refill: bucket.Aligned}),
		"calendar": ls,
		"sliding":  limits(t, bucket.Limit{Tokens: 9, Per: time.Minute, Refill: bucket.Sliding}),
		"both":     limits(t, bucket.Limit{Tokens: 9, Per: time.Minute, Refill: bucket.Sliding}, bucket.Limit{Tokens: 12, Per: time.Hour, Refill: bucket.Aligned}),
	} {
		for _, test := range []struct {
			name          string
			before, after []int64 // what others take
			ours          int64
			pause         time.Duration
		}{
			{"nobody else", nil, nil, 3, time.Second},
			{"others before", []int64{2, 1}, nil, 3, time.Second},
			{"others after", nil, []int64{2, 1}, 3, time.Second},
			{"others on either side", []int64{1}, []int64{2, 1}, 4, 2 * time.Second},
			{"long after", []int64{1}, []int64{2}, 4, 70 * time.Second},
		} {
			t.Run(name+", "+test.name, func(t *testing.T) {
				t.Parallel()
				server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
				var now clock
				now.Store(1_700_000_000_123_456)
				store := openAt(t, server.URL(), &now)
				var model bucket.Bucket
				others := func(costs []int64) {
					for _, cost := range costs {
						take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: cost})
						model, _ = model.Take(ls, now.time(), cost)
						now.Add(test.pause.Microseconds())
					}
				}
				others(test.before)
				err := store.TakeAndUndo(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: test.ours}}, func() {
					now.Add(test.pause.Microseconds())
					others(test.after)
				})
				if err != nil {
					t.Fatalf("TakeAndUndo() = %v, want no error", err)
				}
				_, want := model.Take(ls, now.time(), 0)
				if diff := cmp.Diff(want, take(t, store, bucket.Charge{Key: "k", Limits: ls})[0]); diff != "" {
					t.Errorf("a look after it was given back (-never charged +given back):\n%s", diff)
				}
				audit(t, client(t, server), "sl:", time.Minute)
			})
		}
	}
}
