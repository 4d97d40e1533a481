package telemetry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// scrape returns the series of m whose names begin with prefix, as Prometheus
// would read them.
func scrape(t *testing.T, m *telemetry.Metrics, prefix string) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("GET /metrics = %d %s, want 200", w.Code, w.Body)
	}
	series := map[string]string{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if name, value, ok := cutLast(lines.Text(), " "); ok && strings.HasPrefix(name, prefix) {
			series[name] = value
		}
	}
	return series
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func series(door, domain, rule, decision, reason string) string {
	return fmt.Sprintf("sluice_decisions_total{decision=%q,domain=%q,door=%q,reason=%q,rule=%q}", decision, domain, door, reason, rule)
}

var (
	api   = &policy.Rule{Domain: "edge", Name: "api"}
	trial = &policy.Rule{Domain: "edge", Name: "trial", Shadow: true}
)

func applied(rules ...*policy.Rule) []policy.Applied {
	list := make([]policy.Applied, len(rules))
	for i, r := range rules {
		list[i] = policy.Applied{Rule: r, Charge: bucket.Charge{Key: "k", Cost: 1, Shadow: r.Shadow}}
	}
	return list
}

func allowed(yes ...bool) []bucket.Result {
	list := make([]bucket.Result, len(yes))
	for i := range yes {
		list[i].Allowed = yes[i]
	}
	return list
}

func TestObserverCountsFailures(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	observe := m.Observer(telemetry.Authz)
	for _, fields := range [][]string{{"cost"}, {"match.when", "cost"}, {}} {
		d := limiter.Decision{Allowed: true, Reason: limiter.NoRule, Deciding: -1}
		for _, f := range fields {
			d.Failures = append(d.Failures, policy.Failure{Rule: api, Field: f, Err: errors.New("x")})
		}
		observe(t.Context(), d)
	}
	want := map[string]string{
		`sluice_expression_failures_total{domain="edge",field="cost",rule="api"}`:       "2",
		`sluice_expression_failures_total{domain="edge",field="match.when",rule="api"}`: "1",
	}
	if diff := cmp.Diff(want, scrape(t, m, "sluice_expression_")); diff != "" {
		t.Errorf("Observer of failures (-want +got):\n%s", diff)
	}
}

func TestObserver(t *testing.T) {
	t.Parallel()
	within := limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(api), Results: allowed(true)}
	over := limiter.Decision{Reason: limiter.OverLimit, Applied: applied(api), Results: allowed(false)}
	for _, tt := range []struct {
		name string
		door telemetry.Door
		made []limiter.Decision
		want map[string]string
	}{
		{"nothing", telemetry.Authz, nil, map[string]string{}},
		{"allowed, with a zero beside it", telemetry.Authz, []limiter.Decision{within, within}, map[string]string{
			series("authz", "edge", "api", "allow", "within"): "2", series("authz", "edge", "api", "deny", "over_limit"): "0",
		}},
		{"denied", telemetry.RLS, []limiter.Decision{within, over, over}, map[string]string{
			series("rls", "edge", "api", "allow", "within"): "1", series("rls", "edge", "api", "deny", "over_limit"): "2",
		}},
		{"refused", telemetry.Authz, []limiter.Decision{{Reason: limiter.Refused, Refusal: &policy.Refusal{Rule: api}, Deciding: -1}}, map[string]string{
			series("authz", "edge", "api", "deny", "refused"): "1",
		}},
		{"unlimited", telemetry.Authz, []limiter.Decision{{Allowed: true, Reason: limiter.Unlimited, Applied: applied(api), Results: allowed(true)}}, map[string]string{
			series("authz", "edge", "api", "allow", "unlimited"): "1",
		}},
		{"by no rule", telemetry.Authz, []limiter.Decision{
			{Allowed: true, Reason: limiter.NoRule, Deciding: -1},
			{Allowed: true, Reason: limiter.Exempt, Deciding: -1},
			{Allowed: true, Reason: limiter.UnknownDomain, Deciding: -1},
		}, map[string]string{
			series("authz", "", "", "allow", "no_rule"):        "1",
			series("authz", "", "", "allow", "exempt"):         "1",
			series("authz", "", "", "allow", "unknown_domain"): "1",
		}},
		{"store down", telemetry.Authz, []limiter.Decision{
			{Reason: limiter.StoreDown, Applied: applied(api), Results: []bucket.Result{{Err: errors.New("x")}}},
			{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Applied: applied(api, trial), Results: []bucket.Result{{Err: errors.New("x")}, {Err: errors.New("x")}}},
		}, map[string]string{
			series("authz", "edge", "api", "deny", "store_down"): "1",
			series("authz", "", "", "allow", "store_down"):       "1",
		}},
		{"in shadow, beside the rule that decides", telemetry.Authz, []limiter.Decision{
			{Allowed: true, Reason: limiter.Within, Applied: applied(api, trial), Results: allowed(true, false)},
			{Allowed: true, Reason: limiter.Within, Applied: applied(api, trial), Results: allowed(true, true)},
		}, map[string]string{
			series("authz", "edge", "api", "allow", "within"):             "2",
			series("authz", "edge", "api", "deny", "over_limit"):          "0",
			series("authz", "edge", "trial", "shadow_deny", "over_limit"): "1",
			series("authz", "edge", "trial", "shadow_allow", "within"):    "1",
		}},
		{"a reason that there is not", telemetry.Authz, []limiter.Decision{{Reason: 200}}, map[string]string{}},
	} {
		m := telemetry.New(telemetry.Options{})
		m.Rules([]*policy.Rule{api, trial})
		for _, d := range tt.made {
			m.Observer(tt.door)(t.Context(), d)
		}
		if diff := cmp.Diff(tt.want, scrape(t, m, "sluice_decisions_total")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestLocalDecisions(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.Rules([]*policy.Rule{api})
	m.Observer(telemetry.RLS)(t.Context(), limiter.Decision{Allowed: true, Reason: limiter.Within, Local: true, Applied: applied(api), Results: allowed(true)})
	want := map[string]string{
		`sluice_local_decisions_total{door="authz"}`: "0", `sluice_local_decisions_total{door="rls"}`: "1",
		`sluice_local_decisions_total{door="http"}`: "0",
	}
	if diff := cmp.Diff(want, scrape(t, m, "sluice_local_decisions_total")); diff != "" {
		t.Errorf("a decision made locally (-want +got):\n%s", diff)
	}
}

// A rule's count goes on over a reload; the series of one that is gone end;
// requests that began under the old policy are still counted.
func TestRulesChange(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	observe := m.Observer(telemetry.Authz)
	by := func(r *policy.Rule) limiter.Decision {
		return limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(r), Results: allowed(true)}
	}
	gone, sameNext := &policy.Rule{Domain: "edge", Name: "gone"}, &policy.Rule{Domain: "edge", Name: "api"}
	m.Rules([]*policy.Rule{api, gone})
	observe(t.Context(), by(api))
	observe(t.Context(), by(gone))
	m.Rules([]*policy.Rule{sameNext})
	observe(t.Context(), by(sameNext))
	observe(t.Context(), by(api))  // of the old policy
	observe(t.Context(), by(gone)) // of the old policy, and not in the new
	want := map[string]string{
		series("authz", "edge", "api", "allow", "within"):    "3",
		series("authz", "edge", "api", "deny", "over_limit"): "0",
		series("authz", "", "", "allow", "within"):           "1",
	}
	if diff := cmp.Diff(want, scrape(t, m, "sluice_decisions_total")); diff != "" {
		t.Errorf("after a reload (-want +got):\n%s", diff)
	}
	if got := scrape(t, m, "sluice_policy_rules")["sluice_policy_rules"]; got != "1" {
		t.Errorf("sluice_policy_rules = %s, want 1", got)
	}
}

// However many policies come and go, there are no more series than the last
// one has rules for.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	for i := range 1000 {
		r := &policy.Rule{Domain: "edge", Name: fmt.Sprint("rule", i)}
		m.Rules([]*policy.Rule{r})
		m.Observer(telemetry.Authz)(t.Context(), limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(r), Results: allowed(true)})
	}
	if got := len(scrape(t, m, "sluice_decisions_total")); got != 2 {
		t.Errorf("after 1000 policies of one rule there are %d series, want 2", got)
	}
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.Rules([]*policy.Rule{api})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				m.Observer(telemetry.Authz)(context.Background(), limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(api), Results: allowed(true)})
			}
		})
	}
	for range 50 {
		m.Rules([]*policy.Rule{{Domain: "edge", Name: "api"}})
		scrape(t, m, "sluice_")
	}
	all.Wait()
	if got := scrape(t, m, "sluice_decisions_total")[series("authz", "edge", "api", "allow", "within")]; got != "8000" {
		t.Errorf("8 × 1000 decisions during reloads count %s, want 8000", got)
	}
}

func TestReloads(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	state := func() string {
		s := scrape(t, m, "sluice_policy")
		return strings.Join([]string{
			s["sluice_policy_last_reload_successful"], s[`sluice_policy_reloads_total{result="success"}`],
			s[`sluice_policy_reloads_total{result="failure"}`], s["sluice_policy_last_reload_success_timestamp_seconds"],
		}, " ")
	}
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "0 0 0 0"},
		{func() { m.Reloaded(time.UnixMilli(1500)) }, "1 1 0 1.5"},
		{m.ReloadFailed, "0 1 1 1.5"},
		{func() { m.Reloaded(time.UnixMilli(2500)) }, "1 2 1 2.5"},
	} {
		if step.do(); state() != step.want {
			t.Errorf("step %d: successful, successes, failures, when = %s, want %s", i, state(), step.want)
		}
	}
}

func TestOthers(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{Version: "v1", Revision: "abc"})
	m.Panicked()
	got := scrape(t, m, "")
	for name, want := range map[string]string{"sluice_panics_total": "1"} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	for _, part := range []string{`sluice_build_info{goversion="go`, "go_goroutines", "process_start_time_seconds"} {
		found := false
		for name := range got {
			found = found || strings.HasPrefix(name, part)
		}
		if !found {
			t.Errorf("no series begins with %s, want one", part)
		}
	}
}

// A decision makes no garbage on its way into the metrics.
func TestObserverAllocates(t *testing.T) {
	m := telemetry.New(telemetry.Options{})
	m.Rules([]*policy.Rule{api, trial})
	observe := m.Observer(telemetry.Authz)
	d := limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(api, trial), Results: allowed(true, true)}
	if got := testing.AllocsPerRun(100, func() { observe(context.Background(), d) }); got != 0 {
		t.Errorf("a decision allocates %v times, want 0", got)
	}
}

func BenchmarkObserver(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint("rules=", n), func(b *testing.B) {
			m := telemetry.New(telemetry.Options{})
			rules := make([]*policy.Rule, n)
			for i := range rules {
				rules[i] = &policy.Rule{Domain: "edge", Name: fmt.Sprint("rule", i)}
			}
			m.Rules(rules)
			observe := m.Observer(telemetry.Authz)
			d := limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(rules[n/2], rules[0]), Results: allowed(true, true)}
			b.ReportAllocs()
			for b.Loop() {
				observe(context.Background(), d)
			}
		})
	}
}

func BenchmarkObserverParallel(b *testing.B) {
	m := telemetry.New(telemetry.Options{})
	m.Rules([]*policy.Rule{api})
	observe := m.Observer(telemetry.Authz)
	d := limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: applied(api), Results: allowed(true)}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			observe(context.Background(), d)
		}
	})
}

func BenchmarkStore(b *testing.B) {
	m := telemetry.New(telemetry.Options{})
	charges, results := make([]bucket.Charge, 1), make([]bucket.Result, 1)
	for name, s := range map[string]limiter.Store{"timed": m.Seconds("redis", fakeStore{}), "errors": m.Errors("memory", fakeStore{})} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Take(context.Background(), charges, results)
			}
		})
	}
}

func Example() {
	m := telemetry.New(telemetry.Options{Version: "v1.0.0"})
	r := &policy.Rule{Domain: "edge", Name: "api"}
	m.Rules([]*policy.Rule{r})
	m.Observer(telemetry.Authz)(context.Background(), limiter.Decision{
		Allowed: true, Reason: limiter.Within, Applied: []policy.Applied{{Rule: r}}, Results: []bucket.Result{{Allowed: true}},
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "sluice_decisions_total{decision=\"allow\"") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// sluice_decisions_total{decision="allow",domain="edge",door="authz",reason="within",rule="api"} 1
}
