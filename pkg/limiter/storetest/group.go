package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func noCharges(t *testing.T, h Harness) {
	if err := h.Store.Take(t.Context(), nil, nil); err != nil {
		t.Errorf("Take(nothing) = %v, want no error", err)
	}
}

// allOrNone drains one of two to five buckets and looks that the others keep
// what they have when it denies.
func allOrNone(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	for n := 2; n <= 5; n++ {
		for short := range n {
			h.SetNow(epoch)
			group := make([]bucket.Charge, n)
			want := make([]bucket.Result, n)
			for i := range group {
				group[i] = bucket.Charge{Key: fmt.Sprintf("all %d %d %d", n, short, i), Limits: ls, Cost: 2}
				want[i] = yes(5, 0)
			}
			drain := group[short]
			drain.Cost = 4
			take(t, h.Store, drain)
			want[short] = no(1, 2*sec, 8*sec)
			wantTake(t, h, group, want)
			wantTake(t, h, group, want)
			h.SetNow(epoch.Add(2 * sec))
			for i := range want {
				want[i] = yes(3, 4*sec)
			}
			want[short] = yes(0, 10*sec)
			wantTake(t, h, group, want)
		}
	}
}

func wantTake(t *testing.T, h Harness, charges []bucket.Charge, want []bucket.Result) {
	t.Helper()
	if diff := cmp.Diff(want, take(t, h.Store, charges...)); diff != "" {
		t.Errorf("Take(%s) (-want +got):\n%s", describe(charges), diff)
	}
}

func groupRefund(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	a, b := charge("a", ls, 5), charge("b", ls, 5)
	back := charge("b", ls, -2)
	look := charge("b", ls, 0)
	play(t, h, []moment{
		{0, []bucket.Charge{a, b}, []bucket.Result{yes(0, 10*sec), yes(0, 10*sec)}},
		{0, []bucket.Charge{back, a}, []bucket.Result{yes(0, 10*sec), no(0, 10*sec, 10*sec)}},
		{0, []bucket.Charge{look}, []bucket.Result{yes(0, 10*sec)}},
		{10 * sec, []bucket.Charge{b}, []bucket.Result{yes(0, 10*sec)}},
		{10 * sec, []bucket.Charge{back, a, look}, []bucket.Result{yes(2, 6*sec), yes(0, 10*sec), yes(2, 6*sec)}},
		{10 * sec, []bucket.Charge{look, a}, []bucket.Result{yes(2, 6*sec), no(0, 10*sec, 10*sec)}},
	})
}

func charge(key string, ls *bucket.Limits, cost int64) bucket.Charge {
	return bucket.Charge{Key: key, Limits: ls, Cost: cost}
}

func shadowed(key string, ls *bucket.Limits, cost int64) bucket.Charge {
	return bucket.Charge{Key: key, Limits: ls, Cost: cost, Shadow: true}
}

func summed(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	two, three, back := charge("a", ls, 2), charge("a", ls, 3), charge("a", ls, -1)
	other := charge("b", ls, 1)
	lack := no(5, bucket.Never, 0)
	play(t, h, []moment{
		{0, []bucket.Charge{three, three}, []bucket.Result{lack, lack}},
		{0, []bucket.Charge{three, other, three}, []bucket.Result{lack, yes(5, 0), lack}},
		{0, []bucket.Charge{three, three, back}, []bucket.Result{yes(0, 10*sec), yes(0, 10*sec), yes(0, 10*sec)}},
		{4 * sec, []bucket.Charge{two, other, two}, []bucket.Result{no(2, 4*sec, 6*sec), yes(5, 0), no(2, 4*sec, 6*sec)}},
		{8 * sec, []bucket.Charge{two, other, two}, []bucket.Result{yes(0, 10*sec), yes(4, 2*sec), yes(0, 10*sec)}},
	})
}

func summedHuge(t *testing.T, h Harness) {
	ls := limits(t, bucket.Limit{Tokens: 1 << 52, Per: time.Millisecond, Burst: 1<<53 - 1})
	full := yes(1<<53-1, 0)
	lack := no(1<<53-1, bucket.Never, 0)
	huge := charge("a", ls, 1<<63-1)
	play(t, h, []moment{
		{0, []bucket.Charge{huge, huge}, []bucket.Result{lack, lack}},
		{0, []bucket.Charge{huge, charge("a", ls, 1)}, []bucket.Result{lack, lack}},
		{0, []bucket.Charge{charge("a", ls, -1<<63), charge("a", ls, -1<<63)}, []bucket.Result{full, full}},
		{0, []bucket.Charge{charge("a", ls, 1<<53-1)}, []bucket.Result{yes(0, 2*ms)}},
	})
}

func shadow(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	play(t, h, []moment{
		{
			0,
			[]bucket.Charge{shadowed("s", ls, 4), charge("a", ls, 1)},
			[]bucket.Result{yes(1, 8*sec), yes(4, 2*sec)},
		},
		// One that lacks stops neither the group nor the other.
		{
			0,
			[]bucket.Charge{shadowed("s", ls, 4), charge("a", ls, 1), shadowed("r", ls, 1)},
			[]bucket.Result{no(1, 6*sec, 8*sec), yes(3, 4*sec), yes(4, 2*sec)},
		},
		{
			0,
			[]bucket.Charge{shadowed("s", ls, 1)},
			[]bucket.Result{yes(0, 10*sec)},
		},
		{
			0,
			[]bucket.Charge{shadowed("s", ls, -2)},
			[]bucket.Result{yes(2, 6*sec)},
		},
	})
}

func shadowShares(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	play(t, h, []moment{
		{
			0,
			[]bucket.Charge{shadowed("a", ls, 3), charge("a", ls, 3)},
			[]bucket.Result{no(2, 2*sec, 6*sec), yes(2, 6*sec)},
		},
		{
			0,
			[]bucket.Charge{shadowed("a", ls, 1), charge("a", ls, 1)},
			[]bucket.Result{yes(0, 10*sec), yes(1, 8*sec)},
		},
	})
}

func shadowDenied(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	play(t, h, []moment{
		{
			0,
			[]bucket.Charge{charge("a", ls, 6), shadowed("s", ls, 5), shadowed("r", ls, 6)},
			[]bucket.Result{no(5, bucket.Never, 0), yes(5, 0), no(5, bucket.Never, 0)},
		},
		{
			0,
			[]bucket.Charge{charge("a", ls, 5), shadowed("s", ls, 5)},
			[]bucket.Result{yes(0, 10*sec), yes(0, 10*sec)},
		},
		{
			0,
			[]bucket.Charge{charge("a", ls, 1), shadowed("s", ls, -5)},
			[]bucket.Result{no(0, 2*sec, 10*sec), yes(0, 10*sec)},
		},
	})
}

func shadowSummed(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	three := shadowed("s", ls, 3)
	play(t, h, []moment{
		{0, []bucket.Charge{three, three}, []bucket.Result{no(5, bucket.Never, 0), no(5, bucket.Never, 0)}},
		{0, []bucket.Charge{three, shadowed("s", ls, 2)}, []bucket.Result{yes(0, 10*sec), yes(0, 10*sec)}},
	})
}

// keysApart charges keys that are easily taken for one another.
func keysApart(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	long := strings.Repeat("k", 10_000)
	keys := []string{
		"", "\x00", "\x00\x00", " ", "a", "a\x00", "a ", "A", "a\nb", "a\r\nb", "{a}", "{}", "{", "a:b", "a:b:", "*", "?",
		"\xff\xfe", "ä", "a\u0308", "0", "-1", "nil", "'; return 1 --", long, long + "k", long[1:],
	}
	for i, key := range keys {
		wantTake(t, h, []bucket.Charge{charge(key, ls, int64(i%5)+1)}, []bucket.Result{yes(4-int64(i%5), time.Duration(i%5+1)*2*sec)})
	}
	for i, key := range keys {
		wantTake(t, h, []bucket.Charge{charge(key, ls, 0)}, []bucket.Result{yes(4-int64(i%5), time.Duration(i%5+1)*2*sec)})
	}
}

func appendCharge(text []byte, c bucket.Charge) []byte {
	text = append(text, ' ')
	text = strconv.AppendQuote(text, c.Key[:min(len(c.Key), 40)])
	text = append(text, ' ')
	text = strconv.AppendInt(text, c.Cost, 10)
	if c.Shadow {
		text = append(text, " shadow"...)
	}
	return text
}
