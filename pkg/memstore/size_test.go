package memstore_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// racing says that the race detector is on, which is slow and takes memory.
var racing bool

// many is how many keys the tests of size use: a million with
// SLUICE_TEST_LONG.
func many() int {
	switch {
	case os.Getenv("SLUICE_TEST_LONG") != "":
		return 1_000_000
	case racing:
		return 20_000
	default:
		return 100_000
	}
}

// fill charges new keys, from one number to another. Each call is timed if
// there is a list for that.
func fill(tb testing.TB, s *memstore.Store, ls *bucket.Limits, from, to int, times []time.Duration) {
	tb.Helper()
	clock := func() time.Duration { return 0 }
	if times != nil {
		clock = spent
	}
	charges := []bucket.Charge{{Limits: ls, Cost: 1}}
	results := make([]bucket.Result, 1)
	key := []byte("{k3v9x2ab}4:edge3:api2:ip11:")
	prefix := len(key)
	for i := from; i < to; i++ {
		key = fmt.Appendf(key[:prefix], "%09d", i)
		charges[0].Key = string(key)
		begin := clock()
		err := s.Take(tb.Context(), charges, results)
		if times != nil {
			times[i-from] = clock() - begin
		}
		if err != nil || !results[0].Allowed || results[0].Err != nil {
			tb.Fatalf("Take(key %d) = %+v, %v, want allowed", i, results[0], err)
		}
	}
}

// TestLongestCall prints the processor time of the longest of many calls, each
// of which makes a bucket, and of as many more while the garbage collector runs
// without a rest.
func TestLongestCall(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keys := many()
	s, err := memstore.New(memstore.Options{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	ls, times := mustLimits(t, bucket.Limit{Tokens: 1000, Per: time.Hour}), make([]time.Duration, keys)
	fill(t, s, ls, 0, keys, times)
	t.Log("new keys:               ", spread(times))
	defer collect()()
	fill(t, s, ls, 0, keys, times)
	t.Log("known keys, collecting: ", spread(times))
}

// spread is what the slowest calls took.
func spread(times []time.Duration) string {
	sorted := slices.Sorted(slices.Values(times))
	at := func(share float64) time.Duration { return sorted[int(float64(len(sorted)-1)*share)] }
	return fmt.Sprintf("half within %v, 99.9%% within %v, 99.999%% within %v, all within %v", at(0.5), at(0.999), at(0.99999), at(1))
}

// collect runs the garbage collector until it is told to stop.
func collect() (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			default:
				runtime.GC()
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

// TestDay has new keys come all day long, a share of a million an hour, each
// full again within minutes. Memory must not grow.
func TestDay(t *testing.T) {
	t.Parallel()
	perHour := 30_000
	if racing {
		perHour = 3000
	}
	s, c := openAt(t, epoch)
	ls := mustLimits(t, bucket.Limit{Tokens: 6, Per: time.Hour}) // full 10 minutes after a charge
	var first int64
	for minute := range 24 * 60 {
		c.set(epoch.Add(time.Duration(minute) * time.Minute))
		fill(t, s, ls, minute*perHour/60, (minute+1)*perHour/60, nil)
		switch {
		case minute == 60:
			first = s.Bytes()
		case minute > 60 && s.Bytes() > first*11/10:
			t.Fatalf("minute %d: Bytes() = %d, want about the %d of the first hour", minute, s.Bytes(), first)
		}
	}
}

// TestMaxBytes fills a small store with buckets in use: its bound holds, the
// old keys keep what they spent, and grow where they need to.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	c := &clock{}
	c.set(epoch)
	s, err := memstore.New(memstore.Options{MaxBytes: memstore.LeastMaxBytes, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	ls := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Hour, Refill: bucket.Interval})
	key := func(i int) bucket.Charge { return bucket.Charge{Key: fmt.Sprint("key ", i), Limits: ls, Cost: 2} }
	kept := map[int]bool{}
	for i := range 50_000 {
		results, err := take(t, s, key(i))
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = results[0].Allowed
		// The last 16th is for those that are there.
		if got := s.Bytes(); got > memstore.LeastMaxBytes*15/16 {
			t.Fatalf("key %d: Bytes() = %d, want at most %d", i, got, memstore.LeastMaxBytes*15/16)
		}
	}
	inUse := s.Len()
	if inUse < 5000 || int64(50_000-inUse) != s.Refused() {
		t.Fatalf("Len() = %d, Refused() = %d, want some thousand kept and the rest of 50000 refused", inUse, s.Refused())
	}
	for i, kept := range kept {
		want := int64(2)
		if kept {
			want = 0
		}
		look := key(i)
		look.Cost = 0
		if results, err := take(t, s, look); err != nil || results[0].Remaining != want {
			t.Fatalf("Take(look at key %d) = %+v, %v, want %d left: kept is %v", i, results[0], err, want, kept)
		}
		wantTake(t, s, false, key(i))
	}
}
