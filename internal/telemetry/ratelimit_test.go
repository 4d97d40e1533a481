package telemetry_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Limits of one and of more levels are series of one name.
func TestRatelimitNames(t *testing.T) {
	t.Parallel()
	s := &ratelimit.Stats{}
	for _, way := range []string{"a_1", "a_1.b", "a_1.b.c", "a_1.b.d_\xff"} {
		s.Observe(t.Context(), limiter.Decision{
			Applied: []policy.Applied{{Rule: &policy.Rule{Domain: "d"}, Way: way, Charge: bucket.Charge{Cost: 1}, Unlimited: true}},
			Results: []bucket.Result{{Allowed: true}},
		})
	}
	s.Strayed("nobody", 2)
	s.Connections = func() (int64, int64) { return 3, 5 }
	m := telemetry.NewRatelimit(s)
	m.Took(time.Millisecond)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var got []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "ratelimit_") && !strings.Contains(line, "_bucket") && !strings.Contains(line, "_sum") && !strings.HasSuffix(line, " 0\n") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	want := []string{
		`ratelimit_redis_pool_cx_active 3`,
		`ratelimit_redis_pool_cx_local_close 2`,
		`ratelimit_redis_pool_cx_total 5`,
		`ratelimit_service_rate_limit_domain_not_found{domain="nobody"} 2`,
		`ratelimit_service_rate_limit_total_hits{domain="d",key1="a_1"} 1`,
		`ratelimit_service_rate_limit_total_hits{domain="d",key1="a_1",key2="b"} 3`,
		`ratelimit_service_rate_limit_within_limit{domain="d",key1="a_1"} 1`,
		`ratelimit_service_rate_limit_within_limit{domain="d",key1="a_1",key2="b"} 3`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 1`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
