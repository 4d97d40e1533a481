package cases_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

// TestRetryAfterIsTrue asks under random limits of every refill until it is
// denied, at ext_authz and at RLS. Who then waits as long as Retry-After says,
// alone, is let through; who waits a second less is not.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 11))
	waits := 0
	for range 300 {
		cost := 1 + rnd.Int64N(3)
		policy := waitPolicy(rnd, cost)
		clock := doortest.NewClock()
		s := newScene(t, &txtar.Archive{Files: []txtar.File{{Name: "policy.yaml", Data: []byte(policy)}}}, clock, doortest.Memory(t, clock))
		for _, words := range [][]string{
			{"203.0.113.7", "GET", "/"},
			{"rls", "edge", "user=u1", fmt.Sprintf("hits=%d", cost)},
		} {
			for range 8 {
				clock.Now = clock.Now.Add(time.Duration(rnd.Int64N(int64(20 * time.Second))))
				waits += s.obey(t, policy, words)
			}
		}
	}
	if waits < 1000 {
		t.Errorf("%d denials were waited out, want 1000 and more", waits)
	}
}

// waitPolicy is a policy of one or two limits, each at least cost wide, for
// each door.
func waitPolicy(rnd *rand.Rand, cost int64) string {
	limit := func() string {
		tokens, burst := cost+rnd.Int64N(9), ""
		refill := []string{"greedy", "interval", "aligned", "sliding"}[rnd.IntN(4)]
		if refill != "sliding" && rnd.IntN(2) == 0 {
			burst = fmt.Sprintf(", burst: %d", cost+rnd.Int64N(20))
		}
		return fmt.Sprintf("{rate: %d/%dms, refill: %s%s}", tokens, 500+rnd.Int64N(90_000), refill, burst)
	}
	limits := limit()
	if rnd.IntN(2) == 0 {
		limits += ", " + limit()
	}
	return fmt.Sprintf("domain: edge\nrules:\n  - {name: http, per: [ip], cost: %d, limits: [%s]}\n  - {name: rls, descriptor: [user], limits: [%s]}\n", cost, limits, limits)
}

// obey asks until it is denied, waits and asks again. It returns how often it
// was denied and waited: 0 or 1.
func (s *scene) obey(t *testing.T, policy string, words []string) int {
	t.Helper()
	for range 100 {
		a := s.answer(t, words)
		if a.allowed {
			continue
		}
		wait, err := strconv.Atoi(a.facts["retry-after:"])
		if err != nil || wait < 1 {
			t.Fatalf("%v of\n%s\nis denied with retry-after %q, want whole seconds from 1 up", words, policy, a.facts["retry-after:"])
		}
		s.clock.Now = s.clock.Now.Add(time.Duration(wait-1) * time.Second)
		if s.answer(t, words).allowed {
			t.Errorf("%v of\n%s\nis allowed after %d s, want denied: retry-after was %d", words, policy, wait-1, wait)
		}
		s.clock.Now = s.clock.Now.Add(time.Second)
		if !s.answer(t, words).allowed {
			t.Errorf("%v of\n%s\nis denied after %d s, want allowed: retry-after was %d", words, policy, wait, wait)
		}
		return 1
	}
	t.Fatalf("%v of\n%s\nwas allowed 100 times, want a denial", words, policy)
	return 0
}

// answer asks once, at the door that the words are for.
func (s *scene) answer(t *testing.T, words []string) answer {
	t.Helper()
	if words[0] == "rls" {
		return s.askRLS(t, words[1:])
	}
	return s.askAuthz(t, words)
}
