package ratelimit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// decision is one about a bucket of 10 an hour.
func decision(t *testing.T, cost, left int64, allowed, shadow bool) limiter.Decision {
	t.Helper()
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 10, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Decision{
		Allowed: allowed || shadow,
		Applied: []policy.Applied{{
			Rule: &policy.Rule{Domain: "d:1"}, Way: "a_b|c", Charge: bucket.Charge{Limits: limits, Cost: cost, Shadow: shadow},
		}},
		Results: []bucket.Result{{Allowed: allowed, Remaining: left}},
	}
}

// Above 8 of 10 a request is near the limit.
func TestStats(t *testing.T) {
	t.Parallel()
	remembered := decision(t, 3, 0, false, false)
	remembered.Results[0].Remembered = true
	for name, test := range map[string]struct {
		d    limiter.Decision
		want string // total, over, near, within, shadow, remembered
	}{
		"within":               {decision(t, 1, 9, true, false), "1 0 0 1 0 0"},
		"at the mark":          {decision(t, 8, 2, true, false), "8 0 0 8 0 0"},
		"beyond it":            {decision(t, 1, 1, true, false), "1 0 1 1 0 0"},
		"over it with one leg": {decision(t, 5, 1, true, false), "5 0 1 5 0 0"},
		"over":                 {decision(t, 3, 0, false, false), "3 3 0 0 0 0"},
		"over, remembered":     {remembered, "3 3 0 0 0 3"},
		"over in shadow":       {decision(t, 3, 0, false, true), "3 3 0 0 3 0"},
	} {
		s := &ratelimit.Stats{NearRatio: 0.8}
		s.Observe(t.Context(), test.d)
		got := ""
		counters := s.Counters()
		for k := range ratelimit.Kinds {
			got += " " + itoa(counters["ratelimit.service.rate_limit.d_1.a_b_c."+k.String()])
		}
		if got = strings.TrimSpace(got); got != test.want {
			t.Errorf("Observe(%s) counts %s, want %s", name, got, test.want)
		}
	}
}

func itoa(n uint64) string { return string(rune('0' + n)) }

func TestStatsOfRequests(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	s := &ratelimit.Stats{Shadow: true, Took: func(d time.Duration) { took = append(took, d) }}
	s.Asked(time.Second, nil)
	s.Asked(2*time.Second, errors.New("no domain"))
	looked := decision(t, 0, 10, true, false)
	s.Observe(t.Context(), looked) // a look counts nothing
	s.Observe(t.Context(), limiter.Decision{Allowed: false, Err: errors.New("down")})
	s.Strayed("nobody:s", 2)
	s.Strayed("nobody:s", 1)
	s.Connections = func() (int64, int64) { return 3, 5 }
	if got := s.Gauges()["ratelimit.redis_pool.cx_active"]; got != 3 {
		t.Errorf("Gauges() = %d open connections, want 3", got)
	}
	s.Counters()
	s.Connections = func() (int64, int64) { return 4, 5 } // one was not yet counted as open
	want := map[string]uint64{
		"ratelimit.service.config_load_success": 0, "ratelimit.service.config_load_error": 0, "ratelimit.service.global_shadow_mode": 1,
		"ratelimit.service.call.should_rate_limit.redis_error": 1, "ratelimit.service.call.should_rate_limit.service_error": 1,
		"ratelimit_server.ShouldRateLimit.total_requests": 2, "ratelimit.service.rate_limit.nobody_s.domain_not_found": 3,
		"ratelimit.redis_pool.cx_total": 5, "ratelimit.redis_pool.cx_local_close": 2,
	}
	if diff := cmp.Diff(want, s.Counters()); diff != "" {
		t.Errorf("Counters() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second}, took); diff != "" {
		t.Errorf("Took (-want +got):\n%s", diff)
	}
}

// Clients do not decide how many limits are told apart.
func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	s := &ratelimit.Stats{}
	d := decision(t, 1, 9, true, false)
	for i := range 20_100 {
		d.Applied[0].Way = "k_" + strings.Repeat("x", i%200) + itoa(uint64(i/200))
		s.Observe(t.Context(), d)
	}
	limits, total := 0, uint64(0)
	s.Each(func(_ ratelimit.Limit, n *ratelimit.Numbers) {
		limits++
		total += n[ratelimit.TotalHits].Load()
	})
	for i := range 1100 {
		s.Strayed(fmt.Sprint(i), 1)
	}
	if strays := s.Strays(); len(strays) != 1001 || strays[ratelimit.Other] != 100 {
		t.Errorf("Strays() of 1100 domains = %d of them, %d others, want 1001 and 100", len(strays), strays[ratelimit.Other])
	}
	if limits != 20_001 || total != 20_100 {
		t.Errorf("Each() of 20100 limits = %d of them with %d hits, want 20001 with 20100", limits, total)
	}
}

// Nor do they decide how much memory one of them takes.
func TestStatsKeepNoLongValue(t *testing.T) {
	t.Parallel()
	s := &ratelimit.Stats{}
	d := decision(t, 1, 9, true, false)
	for i := range 10 {
		d.Applied[0].Way = "k_" + itoa(uint64(i)) + strings.Repeat("x", 60_000)
		s.Observe(t.Context(), d)
	}
	kept, total := 0, uint64(0)
	s.Each(func(l ratelimit.Limit, n *ratelimit.Numbers) {
		kept += len(l.Way)
		total += n[ratelimit.TotalHits].Load()
	})
	if kept != 0 || total != 10 {
		t.Errorf("Each() of 10 limits with values of 60 kB = %d bytes and %d hits, want none and 10", kept, total)
	}
}
