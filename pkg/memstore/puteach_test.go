package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TestPutEach wants of many at once what comes of one after the other: of keys
// new and known, of buckets larger and smaller than before, and of full ones.
func TestPutEach(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	one := bucketLimits(t, bucket.Limit{Tokens: 100, Per: time.Hour})
	two := bucketLimits(t, bucket.Limit{Tokens: 100, Per: time.Hour}, bucket.Limit{Tokens: 1000, Per: 24 * time.Hour})
	many, single, now := still(t), still(t), time.Unix(1000, 0)
	for round := range 200 {
		var keys []string
		var buckets []bucket.Bucket
		for _, key := range rnd.Perm(50)[:rnd.IntN(50)] {
			keys = append(keys, fmt.Sprint(key))
			ls := []*bucket.Limits{one, one, one, two}[rnd.IntN(4)]
			b, _ := bucket.Bucket{}.Take(ls, now, rnd.Int64N(10)) // none is a full one
			buckets = append(buckets, b)
		}
		many.PutEach(keys, buckets)
		for i, key := range keys {
			single.Put(key, buckets[i])
		}
		for key := range 50 {
			got, want := many.Bucket(fmt.Sprint(key), two).Parts(two), single.Bucket(fmt.Sprint(key), two).Parts(two)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("round %d: after PutEach(%q), Bucket(%d) = %v, want %v", round, keys, key, got, want)
			}
		}
		if got, want := many.Len(), single.Len(); got != want {
			t.Fatalf("round %d: Len() = %d, want %d", round, got, want)
		}
	}
}

// Two keys may have one hash.
func TestReplaceHeedsTheKey(t *testing.T) {
	t.Parallel()
	ls := bucketLimits(t, bucket.Limit{Tokens: 100, Per: time.Hour})
	s := still(t)
	spent, _ := bucket.Bucket{}.Take(ls, s.now(), 1)
	more, _ := spent.Take(ls, s.now(), 1)
	s.Put("a", spent)
	n, hash := s.shardOf("a")
	places := []place{{shard: &s.shards[n], hash: hash}}
	replace(places, []string{"b"}, []bucket.Bucket{more}, s.now())
	if got := s.Bucket("a", ls).Parts(ls)[0].Spent; places[0].done || got != 1 {
		t.Errorf("replace(b), with the hash of a: replaced %v, and a has %d spent, want false and 1", places[0].done, got)
	}
}

// What is told makes room for itself as it becomes full, and takes no more than
// half of the memory before.
func TestPutEachIsBounded(t *testing.T) {
	t.Parallel()
	ls := bucketLimits(t, bucket.Limit{Tokens: 1, Per: time.Second})
	now := time.Unix(1000, 0)
	s, err := New(Options{MaxBytes: LeastMaxBytes, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, pause := range []time.Duration{0, time.Second} {
		for i := range 50_000 {
			now = now.Add(pause)
			spent, _ := bucket.Bucket{}.Take(ls, now, 1)
			s.PutEach([]string{fmt.Sprint(pause, i)}, []bucket.Bucket{spent})
		}
		_, last := s.Bucket(fmt.Sprint(pause, 49_999), ls).Take(ls, now, 0)
		if kept := last.Remaining == 0; s.Bytes() > LeastMaxBytes/2 || kept != (pause > 0) {
			t.Errorf("with a pause of %v, PutEach used %d bytes and kept the last key: %v, want at most %d and %v", pause, s.Bytes(), kept, LeastMaxBytes/2, pause > 0)
		}
	}
}

func bucketLimits(t *testing.T, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatal(err)
	}
	return ls
}

// still returns a store whose clock stands still.
func still(t *testing.T) *Store {
	t.Helper()
	s, err := New(Options{Now: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
