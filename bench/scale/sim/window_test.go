package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// lawful is the law, window by window.
func lawful(w window, at []int64) bool {
	for i := range at {
		for j := i; j < len(at); j++ {
			if (int64(j-i+1)-w.burst)*w.per > w.tokens*(at[j]-at[i]) {
				return false
			}
		}
	}
	return true
}

// TestWindow wants of random tokens what the law says of them, and that both
// answers come up.
func TestWindow(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	var counts [2]int
	for range 20_000 {
		w := window{burst: 1 + chance.Int64N(4), tokens: 1 + chance.Int64N(5), per: 1 + chance.Int64N(20)}
		at := make([]int64, 1+chance.IntN(12))
		for i := range at {
			if i > 0 {
				at[i] = at[i-1]
			}
			at[i] += chance.Int64N(1 + 2*w.per/w.tokens)
		}
		want, got := lawful(w, at), true
		streamed := w
		for _, a := range at {
			got = streamed.spend(a) && got
		}
		if got != want {
			t.Fatalf("spend(%v) under %+v = %v, want %v", at, w, got, want)
		}
		if want {
			counts[1]++
		} else {
			counts[0]++
		}
	}
	if counts[0] < 2000 || counts[1] < 2000 {
		t.Errorf("%d of the tokens were lawful and %d not, want enough of both", counts[1], counts[0])
	}
}

// TestWindowCatches wants a bucket that is wrong to be found out: one that is
// full a token too early, and one whose clock is fast by a thousandth.
func TestWindowCatches(t *testing.T) {
	t.Parallel()
	limit := bucket.Limit{Tokens: 1000, Per: time.Second}
	right, wide := limits(t, limit), limits(t, bucket.Limit{Tokens: 1000, Per: time.Second, Burst: 1001})
	for name, c := range map[string]struct {
		ls     *bucket.Limits
		speed  float64
		broken bool
	}{
		"right":      {right, 1, false},
		"a burst":    {wide, 1, true},
		"a clock":    {right, 1.001, true},
		"a slow one": {right, 0.999, false},
	} {
		w := window{burst: 1000, tokens: 1000, per: time.Second.Microseconds()}
		var b bucket.Bucket
		broken := false
		for at := int64(0); at < 5_000_000; at += 137 {
			next, result := b.Take(c.ls, time.UnixMicro(int64(float64(at)*c.speed)), 1)
			b = next
			if result.Allowed && !w.spend(at) {
				broken = true
			}
		}
		if broken != c.broken {
			t.Errorf("%s: the law is broken: %v, want %v", name, broken, c.broken)
		}
	}
}

func limits(t *testing.T, l bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(l)
	if err != nil {
		t.Fatal(err)
	}
	return ls
}

// TestEvents wants them in their order, and those of one moment as they were
// planned.
func TestEvents(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(3, 4))
	var es events
	for i := range int32(5000) {
		es.plan(chance.Int64N(500), nil, i, 0)
		if i%3 == 0 {
			es.next(never)
		}
	}
	last := event{at: -1}
	for {
		e, ok := es.next(never)
		if !ok {
			break
		}
		// What was planned after others were taken may be for a moment before.
		if !last.before(&e) {
			t.Fatalf("next = %d at %d after %d at %d", e.seq, e.at, last.seq, last.at)
		}
		last = e
	}
	if last.at < 400 {
		t.Errorf("the last event is at %d, want the last of 500", last.at)
	}
}
