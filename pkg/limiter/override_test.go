package limiter_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

func TestOverride(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tokens int64
		per    time.Duration
		want   bucket.Limit
		ok     bool
	}{
		{7, time.Minute, bucket.Limit{Tokens: 7, Burst: 7, Per: time.Minute}, true},
		{0, time.Minute, bucket.Limit{Per: time.Minute}, true},
		{7, 0, bucket.Limit{Tokens: 3, Burst: 3, Per: time.Hour}, false},
		{7, 101 * 365 * 24 * time.Hour, bucket.Limit{Tokens: 3, Burst: 3, Per: time.Hour}, false},
	} {
		m := rules("a", "b")
		for i := range m.Applied {
			m.Applied[i].Limits = applied(t, "a", 3).Limits
		}
		ok := limiter.Override(m.Applied, tc.tokens, tc.per)
		for _, a := range m.Applied {
			if got := a.Limits.At(0); got != tc.want || ok != tc.ok {
				t.Errorf("Override(%d, %v) = %v, limit %+v, want %v, %+v", tc.tokens, tc.per, ok, got, tc.ok, tc.want)
			}
		}
	}
}
