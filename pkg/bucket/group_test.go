package bucket_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// kept is a store of buckets.
type kept map[string]*bucket.Bucket

func (k kept) at(key string) *bucket.Bucket {
	if k[key] == nil {
		k[key] = new(bucket.Bucket)
	}
	return k[key]
}

func (k kept) group(now time.Time, charges ...bucket.Charge) ([]bucket.Result, bool) {
	results := make([]bucket.Result, len(charges))
	passed := bucket.Group(charges, results, now, k.at)
	return results, passed
}

// A count is one bucket in a world without time: tokens that are there.
type count struct{ left, burst *big.Int }

// counted makes charges on counts, by the words of the rule, and says for each
// charge whether there was room, and what is left.
func counted(charges []bucket.Charge, counts map[string]*count) (room []bool, left []int64) {
	sums := func(shadow bool) map[string]*big.Int {
		sums := map[string]*big.Int{}
		for _, c := range charges {
			if c.Shadow == shadow {
				if sums[c.Key] == nil {
					sums[c.Key] = new(big.Int)
				}
				sums[c.Key].Add(sums[c.Key], big.NewInt(c.Cost))
			}
		}
		return sums
	}
	has := func(key string, cost *big.Int) bool { return cost.Sign() <= 0 || cost.Cmp(counts[key].left) <= 0 }
	take := func(key string, cost *big.Int) {
		c := counts[key]
		c.left.Sub(c.left, cost)
		if c.left.Cmp(c.burst) > 0 {
			c.left.Set(c.burst)
		}
	}
	group, shadows := sums(false), sums(true)
	passes := true
	fits := map[string]bool{}
	for key, cost := range group {
		fits[key] = has(key, cost)
		passes = passes && fits[key]
	}
	after := map[string]int64{}
	for key, cost := range group {
		if passes {
			take(key, cost)
		}
		after[key] = counts[key].left.Int64()
	}
	shadowFits, shadowAfter := map[string]bool{}, map[string]int64{}
	for key, cost := range shadows {
		shadowFits[key] = has(key, cost)
		if passes && shadowFits[key] {
			take(key, cost)
		}
		shadowAfter[key] = counts[key].left.Int64()
	}
	for _, c := range charges {
		if c.Shadow {
			room, left = append(room, shadowFits[c.Key]), append(left, shadowAfter[c.Key])
			continue
		}
		room, left = append(room, fits[c.Key]), append(left, after[c.Key])
	}
	return room, left
}

// TestGroupCounts drives Group and plain counting with the same random calls
// at one moment.
func TestGroupCounts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		counts, buckets := map[string]*count{}, kept{}
		limits := map[string]*bucket.Limits{}
		for i := range 5 {
			key, burst := fmt.Sprint(i), 1+rnd.Int64N(30)
			counts[key] = &count{big.NewInt(burst), big.NewInt(burst)}
			limits[key] = mustLimits(t, bucket.Limit{Tokens: burst, Per: time.Hour, Refill: bucket.Refill(i % 4)})
		}
		for range 60 {
			charges := make([]bucket.Charge, rnd.IntN(7))
			for i := range charges {
				key := fmt.Sprint(rnd.IntN(5))
				charges[i] = bucket.Charge{Key: key, Limits: limits[key], Cost: randomCost(rnd), Shadow: rnd.IntN(3) == 0}
			}
			results, _ := buckets.group(epoch, charges...)
			room, left := counted(charges, counts)
			for i, r := range results {
				if r.Allowed != room[i] || r.Remaining != left[i] {
					t.Fatalf("seed %d: Group(%+v)[%d] = %+v, want allowed %v, %d left", seed, charges, i, r, room[i], left[i])
				}
			}
		}
	}
}

func randomCost(rnd *rand.Rand) int64 {
	switch rnd.IntN(10) {
	case 0:
		return 0
	case 1:
		return -rnd.Int64N(9)
	case 2:
		return []int64{1<<63 - 1, 1 << 53, 1 << 40}[rnd.IntN(3)]
	default:
		return 1 + rnd.Int64N(5)
	}
}

func TestGroupAlone(t *testing.T) {
	t.Parallel()
	// One charge in a group is Take.
	ls := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec}, bucket.Limit{Tokens: 20, Per: time.Minute, Refill: bucket.Interval})
	rnd := rand.New(rand.NewPCG(4, 4))
	buckets, now, b := kept{}, epoch, bucket.Bucket{}
	for range 2000 {
		now = now.Add(time.Duration(rnd.Int64N(int64(4*sec))).Truncate(us) - 300*ms)
		cost := randomCost(rnd)
		next, want := b.Take(ls, now, cost)
		b = next
		got, _ := buckets.group(now, bucket.Charge{Limits: ls, Cost: cost, Shadow: rnd.IntN(2) == 0})
		if got[0] != want {
			t.Fatalf("Group(one charge of %d) = %+v, want as Take: %+v", cost, got[0], want)
		}
		if diff := cmp.Diff(b, *buckets[""], inside, cmp.Comparer(sameLimits)); diff != "" {
			t.Fatalf("Group(one charge of %d) left another bucket than Take (-want +got):\n%s", cost, diff)
		}
	}
}

func TestGroupMovesBack(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec})
	charge := func(key string, cost int64, shadow bool) bucket.Charge {
		return bucket.Charge{Key: key, Limits: ls, Cost: cost, Shadow: shadow}
	}
	buckets := kept{}
	later := epoch.Add(time.Hour)
	buckets.group(later, charge("short", 5, false), charge("room", 1, false), charge("look", 1, false), charge("shadow", 1, false), charge("lack", 5, false))
	_, passed := buckets.group(epoch, charge("short", 1, false), charge("room", 1, false), charge("look", 0, false), charge("shadow", 1, true))
	if passed {
		t.Error("Group(a bucket that lacks) = true, want false")
	}
	buckets.group(epoch, charge("lack", 1, true))
	for key, want := range map[string]time.Time{"short": epoch, "room": epoch, "look": later, "shadow": later, "lack": epoch} {
		if got, _ := buckets[key].At(); !got.Equal(want) {
			t.Errorf("after a denial an hour earlier: %q charged at epoch+%v, want epoch+%v", key, got.Sub(epoch), want.Sub(epoch))
		}
	}
}

// TestGroupOfDifferentLimits charges one key under two Limits: the first
// decides, and each result speaks of its own.
func TestGroupOfDifferentLimits(t *testing.T) {
	t.Parallel()
	five := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec})
	one := mustLimits(t, bucket.Limit{Tokens: 9, Per: time.Hour}, bucket.Limit{Tokens: 1, Per: sec})
	a, b := bucket.Charge{Limits: five, Cost: 2}, bucket.Charge{Limits: one, Cost: 2}
	for _, test := range []struct {
		charges []bucket.Charge
		want    []bucket.Result
		passed  bool
	}{
		{[]bucket.Charge{a, b}, []bucket.Result{yes(1, 8*sec), by(1, yes(1, 0))}, true},
		{[]bucket.Charge{b, a}, []bucket.Result{by(1, no(1, bucket.Never, 0)), yes(5, 0)}, false},
	} {
		got, passed := kept{}.group(epoch, test.charges...)
		if passed != test.passed {
			t.Errorf("Group(%+v) = %v, want %v", test.charges, passed, test.passed)
		}
		for i, r := range got {
			if r != test.want[i] {
				t.Errorf("Group(%+v)[%d] = %+v, want %+v", test.charges, i, r, test.want[i])
			}
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	charges := []bucket.Charge{
		{Key: "a", Cost: 1},
		{Key: "b", Cost: 1<<63 - 1},
		{Key: "a", Cost: 2, Shadow: true},
		{Key: "a", Cost: -5},
		{Key: "b", Cost: 1<<63 - 1},
		{Key: "c", Cost: -1 << 63},
		{Key: "c", Cost: -1 << 63},
		{Key: "a", Cost: 3, Shadow: true},
	}
	want := []bucket.Sum{{-4, 0}, {1 << 53, 1}, {5, 2}, {-4, 0}, {1 << 53, 1}, {-1 << 53, 5}, {-1 << 53, 5}, {5, 2}}
	if diff := cmp.Diff(want, bucket.Sums(nil, charges)); diff != "" {
		t.Errorf("Sums(%+v) (-want +got):\n%s", charges, diff)
	}
	// Among many others, and after what is there.
	for i := range 100 {
		charges, want = append(charges, bucket.Charge{Key: fmt.Sprint(i), Cost: 1}), append(want, bucket.Sum{Cost: 1, First: 8 + i})
	}
	before := []bucket.Sum{{7, 7}}
	if diff := cmp.Diff(append(before, want...), bucket.Sums(before, charges)); diff != "" {
		t.Errorf("Sums(many charges) (-want +got):\n%s", diff)
	}
}

// TestGroupUnreadable has a bucket that cannot be read: the rest goes on.
func TestGroupUnreadable(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec})
	var well bucket.Bucket
	at := func(key string) *bucket.Bucket {
		if key == "well" {
			return &well
		}
		return nil
	}
	charges := []bucket.Charge{
		{Key: "ill", Limits: ls, Cost: 9},
		{Key: "well", Limits: ls, Cost: 2},
		{Key: "ill", Limits: ls, Cost: 9, Shadow: true},
		{Key: "well", Limits: ls, Cost: 1, Shadow: true},
	}
	results := []bucket.Result{{Limit: 1}, {}, {Limit: 1}, {}}
	if !bucket.Group(charges, results, epoch, at) {
		t.Error("Group(one that cannot be read, one that has room) = false, want true")
	}
	if diff := cmp.Diff([]bucket.Result{{}, yes(3, 4*sec), {}, yes(2, 6*sec)}, results); diff != "" {
		t.Errorf("Group(one that cannot be read, one that has room) (-want +got):\n%s", diff)
	}
}

// TestGroupOfMany charges 10,000 buckets at once, some of them twice.
func TestGroupOfMany(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Hour})
	charges := make([]bucket.Charge, 10_000)
	for i := range charges {
		charges[i] = bucket.Charge{Key: fmt.Sprint(i % 9000), Limits: ls, Cost: 1}
	}
	buckets := kept{}
	results, passed := buckets.group(epoch, charges...)
	if !passed {
		t.Error("Group(10000 charges) = false, want true")
	}
	for i, r := range results {
		want := int64(1)
		if i%9000 < 1000 {
			want = 0
		}
		if !r.Allowed || r.Remaining != want {
			t.Fatalf("Group(10000 charges)[%d] = %+v, want allowed, %d left", i, r, want)
		}
	}
	if _, passed := buckets.group(epoch, charges...); passed {
		t.Error("Group(the same again) = true, want false: the first 1000 are empty")
	}
}
