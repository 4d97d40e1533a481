package memstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TestQueue plays random changes on a queue and on a list that is searched.
func TestQueue(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	var q queue
	dues, places := map[ref]int64{}, map[ref]int{}
	placed := func(f ref, i int) { places[f] = i }
	for step := range 20_000 {
		f := ref(rnd.IntN(300))
		due := rnd.Int64N(1000)
		_, known := dues[f]
		switch {
		case !known:
			q.push(f, due, placed)
			dues[f] = due
		case rnd.IntN(2) == 0:
			q.set(places[f], due, placed)
			dues[f] = due
		default:
			q.remove(places[f], placed)
			delete(dues, f)
		}
		for f, due := range dues {
			if i := places[f]; q.refs[i] != f || q.dues[i] != due {
				t.Fatalf("step %d: place %d has %d, due at %d, want %d at %d", step, i, q.refs[i], q.dues[i], f, due)
			}
		}
		for i := range q.dues {
			if q.dues[i] < q.dues[0] {
				t.Fatalf("step %d: %d is on top, want %d", step, q.dues[0], slices.Min(q.dues))
			}
		}
		if len(q.dues) != len(dues) {
			t.Fatalf("step %d: %d are in the queue, want %d", step, len(q.dues), len(dues))
		}
	}
}

// TestTerms wants the number of limits given up with their last record.
func TestTerms(t *testing.T) {
	t.Parallel()
	limits := func(tokens int64) *bucket.Limits {
		ls, err := bucket.NewLimits(bucket.Limit{Tokens: tokens, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return ls
	}
	var held terms
	a, again, b := held.hold(limits(1)), held.hold(limits(1)), held.hold(limits(2))
	if a != again || a == b {
		t.Errorf("hold(1/s), hold(1/s), hold(2/s) = %d, %d, %d, want the same twice and another", a, again, b)
	}
	held.release(a)
	if got := held.hold(limits(1)); got != a {
		t.Errorf("hold(1/s) = %d while it is held, want %d", got, a)
	}
	for range 2 {
		held.release(a)
	}
	if got := held.hold(limits(3)); got != a || len(held.list) != 2 {
		t.Errorf("hold(3/s) = %d among %d, want the number that 1/s gave up: %d among 2", got, len(held.list), a)
	}
}

// TestClasses wants a record of each size in the smallest class that holds it.
func TestClasses(t *testing.T) {
	t.Parallel()
	for bytes := 1; bytes <= largest; bytes++ {
		c := classOf(bytes)
		if c >= classes || sizeOf(c) < bytes || (c > 0 && sizeOf(c-1) >= bytes) {
			t.Fatalf("classOf(%d) = %d of %d bytes, want the smallest that holds it", bytes, c, sizeOf(c))
		}
	}
}
