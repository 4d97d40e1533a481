package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TestPack packs what random charges leave, and wants it back.
func TestPack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		p := randomTape(rand.New(rand.NewPCG(seed, 9)), 1000)
		ls := mustCompile(t, p.plan())
		var (
			b    bucket.Bucket
			last bucket.Result
			now  = epoch
			held []bucket.Lease
		)
		for len(p) > 0 {
			l := ls.At(p.next(ls.Len()))
			now = now.Add(p.wait(l, last))
			charge := bucket.Charge{Limits: ls, Cost: p.cost(l)}
			if p.next(3) == 0 {
				charge.Lease = p.lease(&held, now)
			}
			b, last = b.Charge(&charge, now)
			if !b.Full() {
				wantPacked(t, b)
			}
		}
	}
}

func wantPacked(t *testing.T, b bucket.Bucket) {
	t.Helper()
	packed := b.Pack([]byte("before"))[6:]
	if len(packed) != b.PackedLen() {
		t.Fatalf("%+v: PackedLen() = %d, want %d as Pack appends", b, b.PackedLen(), len(packed))
	}
	if _, full := b.At(); bucket.PackedFullAt(b.Limits(), packed) != full.UnixMicro() {
		t.Fatalf("PackedFullAt(%x) = %d, want %d", packed, bucket.PackedFullAt(b.Limits(), packed), full.UnixMicro())
	}
	got := bucket.Unpack(b.Limits(), append(packed, "after"...))
	if diff := cmp.Diff(b, got, inside, cmp.Comparer(sameLimits)); diff != "" {
		t.Fatalf("Unpack(Pack()) (-want +got):\n%s", diff)
	}
}

// TestPackedLen weighs usual limits.
func TestPackedLen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limits []bucket.Limit
		want   int
	}{
		{[]bucket.Limit{{Tokens: 100, Per: time.Minute}}, 8 + 2 + 1 + 3},
		{[]bucket.Limit{{Tokens: 1000, Per: time.Hour, Refill: bucket.Interval}}, 8 + 3 + 2 + 4},
		{[]bucket.Limit{{Tokens: 1000, Per: time.Hour, Refill: bucket.Aligned}}, 8 + 3 + 2},
		{[]bucket.Limit{{Tokens: 100, Per: time.Minute, Refill: bucket.Sliding}}, 8 + 2 + 1 + 3 + 1 + (4 + 1)},
		{[]bucket.Limit{{Tokens: 100, Per: time.Minute}, {Tokens: 9, Per: time.Second}}, 8 + 2 + 4 + (1 + 3)},
	} {
		b, _ := bucket.Bucket{}.Take(mustLimits(t, test.limits...), epoch, 1)
		if got := b.PackedLen(); got != test.want {
			t.Errorf("PackedLen of %+v = %d, want %d", test.limits, got, test.want)
		}
	}
}
