package limiter_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result   bucket.Result
		seconds  int64
		hopeless bool
	}{
		"full":                      {bucket.Result{Allowed: true}, 0, false},
		"a microsecond to full":     {bucket.Result{Allowed: true, FullIn: time.Microsecond}, 1, false},
		"a second to full":          {bucket.Result{Allowed: true, FullIn: time.Second}, 1, false},
		"the wait, not the fill":    {bucket.Result{RetryAfter: 1001 * time.Millisecond, FullIn: time.Hour}, 2, false},
		"B076 a short wait is a 1":  {bucket.Result{RetryAfter: 100 * time.Millisecond}, 1, false},
		"no wait at all is a 1 too": {bucket.Result{}, 1, false},
		"no wait helps":             {bucket.Result{RetryAfter: bucket.Never, FullIn: time.Hour}, 0, true},
		"a hundred years":           {bucket.Result{RetryAfter: 100 * 365 * 24 * time.Hour}, 3_153_600_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := limiter.Decision{Applied: []policy.Applied{applied(t, "a", 5)}, Results: []bucket.Result{tc.result}}
			o := d.Outcome(0)
			if o.Seconds() != tc.seconds || o.Hopeless != tc.hopeless {
				t.Errorf("Outcome(%+v) = %d s, hopeless %v, want %d, %v", tc.result, o.Seconds(), o.Hopeless, tc.seconds, tc.hopeless)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit bucket.Limit
		want  int64
	}{
		{bucket.Limit{Tokens: 5, Burst: 5, Per: 10 * time.Second}, 10},
		{bucket.Limit{Tokens: 5, Burst: 5, Per: 100 * time.Millisecond}, 1},
		{bucket.Limit{Tokens: 10, Burst: 100, Per: time.Minute}, 600},
		{bucket.Limit{Tokens: 3, Burst: 1, Per: time.Minute}, 20},
		{bucket.Limit{Tokens: 7, Burst: 3, Per: time.Minute}, 26}, // 25.7…
		{bucket.Limit{Tokens: 1 << 40, Burst: 1 << 41, Per: 365 * 24 * time.Hour}, 2 * 365 * 24 * 3600},
		{bucket.Limit{Per: time.Minute}, 0},
	} {
		if got := (limiter.Outcome{Limit: tc.limit}).Window(); got != tc.want {
			t.Errorf("Window(%+v) = %d, want %d", tc.limit, got, tc.want)
		}
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	for style, want := range map[policy.Style][2]bool{
		policy.XRateLimit: {true, false}, policy.IETF: {false, true}, policy.Both: {true, true}, policy.None: {},
	} {
		o := limiter.Outcome{Rule: &policy.Rule{Headers: &policy.Headers{Style: style}}}
		if x, ietf := o.Families(); x != want[0] || ietf != want[1] {
			t.Errorf("Families(%v) = %v, %v, want %v", style, x, ietf, want)
		}
	}
	if x, ietf := (limiter.Outcome{Rule: &policy.Rule{}}).Families(); !x || ietf {
		t.Errorf("Families(no headers) = %v, %v, want true, false", x, ietf)
	}
}
