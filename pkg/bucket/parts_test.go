package bucket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func TestPartsRoundTrip(t *testing.T) {
	t.Parallel()
	list := []bucket.Limit{
		{Tokens: 7, Per: sec},
		{Tokens: 5, Per: 3 * sec, Burst: 9, Refill: bucket.Interval},
		{Tokens: 1000, Per: time.Hour, Burst: 1300},
		{Tokens: 3, Per: 7 * sec, Burst: 1_300_000_000},
	}
	ls := mustLimits(t, list...)
	b, _ := bucket.Bucket{}.Take(ls, epoch, 6)
	now := epoch.Add(700*ms + 77*us)
	settled := b.Settle(ls, now)
	rebuilt := bucket.FromParts(ls, now, settled.Parts(ls))
	if diff := cmp.Diff(settled, rebuilt, inside, cmp.Comparer(sameLimits)); diff != "" {
		t.Errorf("FromParts(Parts()) (-want +got):\n%s", diff)
	}
	if parts := (bucket.Bucket{}).Parts(ls); parts != nil {
		t.Errorf("zero Bucket: Parts() = %v, want nil", parts)
	}
}

func TestFromPartsBringsIntoRange(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec}, bucket.Limit{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval})
	for _, test := range []struct{ parts, want []bucket.Part }{
		{nil, nil},
		{[]bucket.Part{{}, {}}, nil},
		{[]bucket.Part{{Spent: 0, Aux: 7}}, nil},
		{[]bucket.Part{{Spent: -1}, {Spent: -1, Aux: -1}}, nil},
		{[]bucket.Part{{Spent: 1, Aux: 1}}, []bucket.Part{{Spent: 1, Aux: 1}, {}}},
		{
			[]bucket.Part{{Spent: 99, Aux: 1 << 60}, {Spent: 99, Aux: 1 << 60}, {Spent: 1}},
			[]bucket.Part{{Spent: 5, Aux: 1_999_999}, {Spent: 5, Aux: 9_999_999}},
		},
		{[]bucket.Part{{Spent: 2, Aux: -5}}, []bucket.Part{{Spent: 2}, {}}},
	} {
		got := bucket.FromParts(ls, epoch, test.parts).Parts(ls)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("FromParts(%v).Parts() (-want +got):\n%s", test.parts, diff)
		}
	}
}
