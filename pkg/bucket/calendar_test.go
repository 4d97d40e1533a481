package bucket_test

import (
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func calendarLimit(c bucket.Calendar, zone *time.Location, burst int64) bucket.Limit {
	return bucket.Limit{Tokens: 1, Burst: burst, Calendar: c, Zone: zone, Refill: bucket.Aligned}
}

// TestStarts compares the beginnings of periods with what the zones' clocks
// show, around moments that are close to one.
func TestStarts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(8, 8))
	for _, zone := range append(zones, time.UTC, zone("Pacific/Apia"), zone("America/St_Johns"), zone("Asia/Tehran"), zone("Africa/Cairo")) {
		for _, c := range []bucket.Calendar{bucket.Day, bucket.Week, bucket.Month, bucket.Year} {
			begins := beginnings(zone, c)
			ls := mustLimits(t, calendarLimit(c, zone, 3))
			for range 300 {
				i := 3 + rnd.IntN(len(begins)-6)
				now := begins[i] + []int64{0, 1, -1, rnd.Int64N(86_400_000_000)}[rnd.IntN(4)]
				after := sort.Search(len(begins), func(i int) bool { return begins[i] > now })
				want := begins[after-3 : after+3]
				if diff := cmp.Diff(want, ls.Starts(0, time.UnixMicro(now))); diff != "" {
					t.Fatalf("%v of %v: Starts(%v) (-want +got):\n%s", c, zone, time.UnixMicro(now).In(zone), diff)
				}
			}
		}
	}
}

// TestStartsOfOddDays has days that are left out, begin late or begin twice.
func TestStartsOfOddDays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, zone string
		now        time.Time
		want       [2]time.Time
	}{
		{
			"30 December 2011 was left out", "Pacific/Apia",
			time.Date(2011, time.December, 30, 9, 0, 0, 0, time.UTC), // 29 December there, an hour before
			[2]time.Time{time.Date(2011, time.December, 29, 10, 0, 0, 0, time.UTC), time.Date(2011, time.December, 30, 10, 0, 0, 0, time.UTC)},
		},
		{
			"no midnight: clocks went from 0:00 to 1:00", "America/Sao_Paulo",
			time.Date(2018, time.November, 4, 12, 0, 0, 0, time.UTC),
			[2]time.Time{time.Date(2018, time.November, 4, 3, 0, 0, 0, time.UTC), time.Date(2018, time.November, 5, 2, 0, 0, 0, time.UTC)},
		},
		{
			"midnight twice: clocks went from 1:00 to 0:00", "America/Havana",
			time.Date(2023, time.November, 5, 5, 30, 0, 0, time.UTC), // the second 0:30
			[2]time.Time{time.Date(2023, time.November, 5, 4, 0, 0, 0, time.UTC), time.Date(2023, time.November, 6, 5, 0, 0, 0, time.UTC)},
		},
		{
			"the day before again: clocks went from 0:01 to 23:01", "America/St_Johns",
			time.Date(2010, time.November, 7, 3, 0, 0, 0, time.UTC), // 23:30 again
			[2]time.Time{time.Date(2010, time.November, 7, 2, 30, 0, 0, time.UTC), time.Date(2010, time.November, 8, 3, 30, 0, 0, time.UTC)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			starts := mustLimits(t, calendarLimit(bucket.Day, zone(test.zone), 1)).Starts(0, test.now)
			want := []int64{test.want[0].UnixMicro(), test.want[1].UnixMicro()}
			if diff := cmp.Diff(want, starts); diff != "" {
				t.Errorf("Starts(%v) (-want +got):\n%s", test.now, diff)
			}
		})
	}
}

func TestCalendarFillsIn(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		per      time.Duration
		calendar bucket.Calendar
		wantPer  time.Duration
		want     bucket.Calendar
	}{
		{day, 0, day, bucket.Day},
		{7 * day, 0, 7 * day, bucket.Week},
		{0, bucket.Week, 7 * day, bucket.Week},
		{0, bucket.Month, 30 * day, bucket.Month},
		{365 * day, bucket.Year, 365 * day, bucket.Year},
	} {
		l := bucket.Limit{Tokens: 5, Per: test.per, Calendar: test.calendar, Zone: time.UTC, Refill: bucket.Aligned}
		if got := mustLimits(t, l).At(0); got.Per != test.wantPer || got.Calendar != test.want {
			t.Errorf("NewLimits(%+v).At(0) = %+v, want Per %v and Calendar %v", l, got, test.wantPer, test.want)
		}
	}
}

func TestCalendarString(t *testing.T) {
	t.Parallel()
	for c, want := range map[bucket.Calendar]string{
		0: "none", bucket.Day: "1d", bucket.Week: "1w", bucket.Month: "1mo", bucket.Year: "1y", 9: "calendar(9)",
	} {
		if got := c.String(); got != want {
			t.Errorf("Calendar(%d).String() = %q, want %q", uint8(c), got, want)
		}
	}
}
