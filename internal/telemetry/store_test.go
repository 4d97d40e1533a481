package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// A failing fails as the fake store's error says.
type failing string

func (f failing) Error() string { return "store: " + string(f) }
func (f failing) Cause() string { return string(f) }

type fakeStore struct {
	err, resultErr error
}

func (f fakeStore) Take(_ context.Context, _ []bucket.Charge, results []bucket.Result) error {
	for i := range results {
		results[i].Err = f.resultErr
	}
	return f.err
}

func TestStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		store fakeStore
		cause string
	}{
		{fakeStore{}, ""},
		{fakeStore{err: failing("timeout")}, "timeout"},
		{fakeStore{err: fmt.Errorf("wrapped: %w", failing("refused"))}, "refused"},
		{fakeStore{err: errors.New("what a client wrote")}, "other"},
		{fakeStore{resultErr: failing("foreign")}, "foreign"},
	} {
		m := telemetry.New(telemetry.Options{})
		err := m.Errors("redis", m.Seconds("redis", tt.store)).Take(t.Context(), make([]bucket.Charge, 1), make([]bucket.Result, 1))
		if !errors.Is(err, tt.store.err) {
			t.Errorf("Take = %v, want %v", err, tt.store.err)
		}
		want := map[string]string{}
		if tt.cause != "" {
			want[fmt.Sprintf("sluice_store_errors_total{cause=%q,store=\"redis\"}", tt.cause)] = "1"
		}
		if diff := cmp.Diff(want, scrape(t, m, "sluice_store_errors_total")); diff != "" {
			t.Errorf("errors of %+v (-want +got):\n%s", tt.store, diff)
		}
		if got := scrape(t, m, "sluice_store_duration_seconds_count"); len(got) != 1 || got[`sluice_store_duration_seconds_count{store="redis"}`] != "1" {
			t.Errorf("calls of %+v = %v, want 1", tt.store, got)
		}
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	turn := m.Breaker("redis")
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "0 0 0"},
		{func() { turn(true) }, "1 1 0"},
		{func() { turn(false) }, "0 1 1"},
		{func() { turn(true) }, "1 2 1"},
	} {
		step.do()
		s := scrape(t, m, "sluice_store_breaker")
		got := strings.Join([]string{
			s[`sluice_store_breaker_open{store="redis"}`], s[`sluice_store_breaker_transitions_total{store="redis",to="open"}`],
			s[`sluice_store_breaker_transitions_total{store="redis",to="closed"}`],
		}, " ")
		if got != step.want {
			t.Errorf("step %d: open, opened, closed = %s, want %s", i, got, step.want)
		}
	}
}

// A remembering has denied so often without a store.
type remembering int64

func (r remembering) Remembered() int64 { return int64(r) }

type leasing lease.Figures

func (l leasing) Figures() lease.Figures { return lease.Figures(l) }

func TestLeases(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.Leases("redis", leasing{Held: 2, Leased: 100, Spent: 60, Back: 30, Lapsed: 10})
	want := map[string]string{
		`sluice_leases_held{store="redis"}`:                "2",
		`sluice_leases_leased_tokens_total{store="redis"}`: "100",
		`sluice_leases_spent_tokens_total{store="redis"}`:  "60",
		`sluice_leases_back_tokens_total{store="redis"}`:   "30",
		`sluice_leases_lapsed_tokens_total{store="redis"}`: "10",
	}
	if diff := cmp.Diff(want, scrape(t, m, "sluice_leases")); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func TestDenials(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.Denials("redis", remembering(7))
	want := map[string]string{`sluice_store_remembered_denials_total{store="redis"}`: "7"}
	if diff := cmp.Diff(want, scrape(t, m, "sluice_store_remembered_denials_total")); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}
