package explain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// randomPolicy has rules of every kind for one path.
func randomPolicy(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("domain: edge\nrules:\n")
	for i := range 1 + r.IntN(3) {
		debt := r.IntN(5) == 0
		fmt.Fprintf(&b, "  - name: r%d\n    cost: %d\n    debt: %v\n    limits: [%s]\n", i, r.IntN(4), debt, randomLimits(r, debt))
		if r.IntN(4) == 0 {
			b.WriteString("    shadow: true\n")
		}
	}
	return b.String()
}

// randomLimits are some with names and some of one period.
func randomLimits(r *rand.Rand, debt bool) string {
	refills := []string{"greedy", "interval", "aligned", "sliding"}
	if debt {
		refills = refills[:2]
	}
	var all []string
	for i := range 1 + r.IntN(3) {
		rate, per := 1+r.IntN(20), []string{"7s", "10s", "1m", "1h"}[r.IntN(4)]
		limit := fmt.Sprintf("{rate: %d/%s, refill: %s", rate, per, refills[r.IntN(len(refills))])
		if r.IntN(2) == 0 {
			limit += fmt.Sprintf(", name: l%d", i)
		}
		if !strings.Contains(limit, "sliding") && r.IntN(2) == 0 {
			limit += fmt.Sprintf(", burst: %d", rate+r.IntN(9))
		}
		all = append(all, limit+"}")
	}
	return strings.Join(all, ", ")
}

// A law is one policy, with its store and limiter.
type law struct {
	clock   *doortest.Clock
	set     *policy.Set
	store   *memstore.Store
	limiter *limiter.Limiter
}

func newLaw(t *testing.T, yaml string) *law {
	t.Helper()
	l := &law{clock: doortest.NewClock(), set: doortest.Load(t, yaml)}
	l.store = doortest.Memory(t, l.clock)
	l.limiter = doortest.Limiter(t, limiter.Options{Store: l.store})
	return l
}

func (l *law) explain(t *testing.T) explain.Report {
	t.Helper()
	report, err := explain.Explain(t.Context(), explain.Options{Set: l.set, Store: l.store, Now: func() time.Time { return l.clock.Now }},
		explain.Request{Path: "/api/x"})
	if err != nil {
		t.Fatalf("Explain() = %v, want no error", err)
	}
	return report
}

// decide has the request charged, and returns its answer.
func (l *law) decide(t *testing.T) (limiter.Decision, response.Response) {
	t.Helper()
	d := l.limiter.Decide(t.Context(), l.set.ForRequests("").ForRequest(policy.Request{Attributes: &identity.Attributes{Method: "GET", Path: "/api/x"}}))
	return d, response.For(d, response.Request{Method: "GET", Path: "/api/x"})
}

// What is explained is what then happens, and explaining changes nothing of
// it.
func TestExplainForetells(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		yaml := randomPolicy(r)
		l := newLaw(t, yaml)
		twin := newLaw(t, yaml) // of which nothing is explained
		for step := range 30 {
			pause := time.Duration(r.Int64N(int64(5 * time.Second)))
			l.clock.Now, twin.clock.Now = l.clock.Now.Add(pause), twin.clock.Now.Add(pause)
			report := l.explain(t)
			d, want := l.decide(t)
			if _, alone := twin.decide(t); !cmp.Equal(alone, want) {
				t.Fatalf("seed %d, step %d: the answer is %+v, want %+v as without an explanation, by\n%s", seed, step, want, alone, yaml)
			}
			got := explain.Answer{Status: want.Status, GRPC: want.Code, Headers: []explain.Header{}, Body: want.Body}
			for _, h := range want.Headers {
				got.Headers = append(got.Headers, explain.Header(h))
			}
			if diff := cmp.Diff(got, report.Answer); diff != "" {
				t.Fatalf("seed %d, step %d: Explain() answers, -want +got:\n%s by\n%s", seed, step, diff, yaml)
			}
			checkRoom(t, d, report)
		}
	}
}

// checkRoom wants the buckets of a report to be as those of d.
func checkRoom(t *testing.T, d limiter.Decision, report explain.Report) {
	t.Helper()
	for i, rule := range report.Rules {
		b := rule.Bucket
		if b == nil || b.Room != d.Results[i].Allowed || b.Key != d.Applied[i].Key || b.Cost != d.Applied[i].Cost {
			t.Fatalf("Explain() has the bucket %+v, want %+v and %+v", b, d.Applied[i], d.Results[i])
		}
		need := b.Cost
		if d.Applied[i].Limits.Debt() {
			need = 1
		}
		for _, l := range b.Limits {
			if *l.Left < 0 || *l.Left > l.Burst || b.Room && *l.Left < need {
				t.Fatalf("Explain() has %d of %d left, for a cost of %d and room %v", *l.Left, l.Burst, b.Cost, b.Room)
			}
		}
	}
}
