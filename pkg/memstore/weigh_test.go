//go:build !race

// The race detector takes memory of its own, which would weigh.

package memstore_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// heap is the bytes of all that is alive.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// keyLen is the length of the keys that fill makes.
const keyLen = 28 + 9

// TestBytesPerKey weighs buckets of one greedy limit and prints what each takes.
// The clock stands still. It does not run beside other tests, whose memory would
// weigh. With a million keys:
//
//	SLUICE_TEST_LONG=1 go test -count=1 -v -run 'TestBytesPerKey|TestLongestCall' ./pkg/memstore
func TestBytesPerKey(t *testing.T) {
	keys := many()
	c := &clock{}
	c.set(epoch)
	before := heap()
	s, err := memstore.New(memstore.Options{MaxBytes: 1 << 30, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, mustLimits(t, bucket.Limit{Tokens: 100, Per: time.Minute}), 0, keys, nil)
	used := heap() - before
	each := float64(used)/float64(keys) - keyLen
	t.Logf("%d keys: %.1f bytes a key beside its %d bytes of text", keys, each, keyLen)
	if each > 80 {
		t.Errorf("a key takes %.1f bytes beside its text, want at most 80", each)
	}
	if said := s.Bytes(); used > said*102/100 || said > used*110/100 {
		t.Errorf("Bytes() = %d, want what is in use: %d", said, used)
	}
	if got := s.Len(); got != keys {
		t.Errorf("Len() = %d, want %d", got, keys)
	}
	c.set(epoch.Add(time.Hour))
	if got := s.Len(); got != 0 {
		t.Errorf("Len() an hour later = %d, want 0", got)
	}
	if got := s.Bytes(); got > memstore.LeastMaxBytes {
		t.Errorf("Bytes() = %d once all buckets are full, want no more than an empty store needs", got)
	}
	if left := heap() - before; left > memstore.LeastMaxBytes {
		t.Errorf("%d bytes are in use once all buckets are full, want no more than an empty store needs", left)
	}
	runtime.KeepAlive(s)
}
