package redisstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestLeaseValues leases at the edges of what the narrow form of a value holds,
// and charges again a little later.
func TestLeaseValues(t *testing.T) {
	t.Parallel()
	epoch, late := time.UnixMicro(1_700_000_000_123_456), time.UnixMicro(1<<52)
	many := bucket.Limit{Tokens: 1 << 25, Per: time.Hour}
	for name, c := range map[string]struct {
		now   time.Time
		want  int64
		limit bucket.Limit
		size  int64
	}{
		"usual":         {epoch, 10, bucket.Limit{Tokens: 100, Per: time.Minute}, 28 + 1 + 8 + 1},
		"named":         {epoch, 10, bucket.Limit{Name: "n", Tokens: 100, Per: time.Minute}, 32 + 1 + 8 + 1},
		"at 2^52":       {late, 10, bucket.Limit{Tokens: 100, Per: time.Minute}, 44 + 1 + 14 + 1},
		"2^24-1 tokens": {epoch, 1<<24 - 1, many, 28 + 1 + 8 + 1},
		"2^24 tokens":   {epoch, 1 << 24, many, 44 + 1 + 14 + 1},
		"in ticks":      {epoch, 10, bucket.Limit{Tokens: 1_000_003, Per: 24 * time.Hour}, 28 + 1 + 8 + 1},
		"100 years":     {epoch, 10, bucket.Limit{Tokens: 11, Per: 36500 * 24 * time.Hour}, 44 + 1 + 14 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range servers.Kinds() {
				server := servers.Start(t, kind, servers.Options{Socket: true})
				var now clock
				store := openAt(t, server.URL(), &now)
				var model bucket.Bucket
				for i, at := range []time.Time{c.now, c.now.Add(1500 * time.Microsecond), c.now.Add(time.Hour)} {
					now.Store(at.UnixMicro())
					charge := bucket.Charge{Key: "k", Limits: limits(t, c.limit), Cost: 1, Lease: &bucket.Lease{Want: c.want, For: time.Hour}}
					same := charge
					same.Lease = &bucket.Lease{Want: c.want, For: time.Hour}
					var want bucket.Result
					model, want = model.Charge(&same, at)
					if diff := cmp.Diff(want, take(t, store, charge)[0]) + cmp.Diff(same.Lease, charge.Lease); diff != "" {
						t.Errorf("%s: charge %d (-bucket +store):\n%s", kind.Name, i+1, diff)
					}
					if size := client(t, server).StrLen(t.Context(), "sl:k").Val(); i == 0 && size != c.size {
						t.Errorf("%s: the value takes %d bytes, want %d", kind.Name, size, c.size)
					}
				}
				audit(t, client(t, server), "sl:", time.Minute)
			}
		})
	}
}

// TestUndoBesideLeases gives back a charge of a bucket of which tokens are
// leased: those stay so.
func TestUndoBesideLeases(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
		ls := limits(t, bucket.Limit{Tokens: 100, Per: time.Hour})
		ours := bucket.Charge{Key: "k", Limits: ls, Cost: 20}
		take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: 1, Lease: &bucket.Lease{Want: 30, For: time.Hour}})
		for i, meanwhile := range []func(){
			func() {},
			func() { take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: 1}) },
			func() {
				take(t, store, bucket.Charge{Key: "k", Limits: ls, Cost: 1, Lease: &bucket.Lease{Want: 5, For: time.Minute}})
			},
		} {
			if err := store.TakeAndUndo(t.Context(), []bucket.Charge{ours}, meanwhile); err != nil {
				t.Fatalf("TakeAndUndo() = %v, want no error", err)
			}
			want := []int64{69, 68, 62}[i]
			if got := take(t, store, bucket.Charge{Key: "k", Limits: ls})[0].Remaining; got != want {
				t.Errorf("%s: %d are left after charge %d has been given back, want %d", kind.Name, got, i, want)
			}
		}
	}
}

// TestLeasesInOneRun makes the charges of several requests at once, some with a
// lease.
func TestLeasesInOneRun(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
	store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	server.Do(t, "SET", "sl:text", "hello")
	ls := limits(t, bucket.Limit{Tokens: 100, Per: time.Hour})
	l := make([]bucket.Lease, 4)
	for i := range l {
		l[i] = bucket.Lease{Want: int64(10 + i), For: time.Second}
	}
	groups := [][]bucket.Charge{
		{{Key: "a", Limits: ls, Cost: 1, Lease: &l[0]}},
		{{Key: "a", Limits: ls, Cost: 1}, {Key: "b", Limits: ls, Cost: 1}},
		{{Key: "text", Limits: ls, Cost: 1, Lease: &l[1]}},
		{{Key: "b", Limits: ls, Cost: 1, Lease: &l[2]}},
		{{Key: "a", Limits: ls, Cost: 1, Lease: &l[3]}},
	}
	results := make([][]bucket.Result, len(groups))
	for i := range groups {
		results[i] = make([]bucket.Result, len(groups[i]))
	}
	if err := store.TakeEach(t.Context(), groups, results); err != nil {
		t.Fatalf("TakeEach() = %v, want no error", err)
	}
	got := []int64{l[0].Granted, l[1].Granted, l[2].Granted, l[3].Granted, results[1][0].Remaining, results[3][0].Remaining, results[4][0].Remaining}
	if diff := cmp.Diff([]int64{10, 0, 12, 13, 88, 86, 74}, got); diff != "" || causeOf(results[2][0].Err) != "foreign" {
		t.Errorf("leased, and left (-want +got):\n%s%v for a foreign value", diff, results[2][0].Err)
	}
}
