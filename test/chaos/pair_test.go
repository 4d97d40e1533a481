package chaos_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// pace is how many requests of a pair begin in a second: so few that hardly any
// finds another under way.
const pace = 400

// A pair is what two servers did that were asked in turn: one whose store may
// be away, and one that has none but its memory. What callers and the machine
// add to a time they add to both.
type pair struct {
	main, bare side
	calls      float64 // of the store
	took       time.Duration
}

// A side is one of the two.
type side struct {
	answers []answer
	cpu     time.Duration // that an answer took its process
}

// compare asks extauthz and the one without a store, while nobody else does.
func (r *trial) compare(t *testing.T) {
	t.Helper()
	r.hush.Lock()
	defer r.hush.Unlock()
	bare := &load{conn: dial(t, r.bare.GRPC)}
	for i := range 10 {
		bare.request(callers, i, time.Now())
	}
	begun, calls := time.Now(), r.metrics(t)[storeCalls]
	cpu, bareCPU := cpuTime(t, r.PID()), cpuTime(t, r.bare.PID())
	n := 2 * *least
	answers := inTurn(n, r.load, bare)
	r.pair.main = side{answers[0], (cpuTime(t, r.PID()) - cpu) / time.Duration(n)}
	r.pair.bare = side{answers[1], (cpuTime(t, r.bare.PID()) - bareCPU) / time.Duration(n)}
	r.pair.calls, r.pair.took = r.metrics(t)[storeCalls]-calls, time.Since(begun)
	r.note(answers[0]...)
}

const storeCalls = `sluice_store_duration_seconds_count{store="redis"}`

func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	d, err := bench.CPUTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// unanswered returns how many calls of the store m counts that were made and
// had no answer.
func unanswered(m map[string]float64) float64 {
	n := 0.0
	for name, value := range m {
		if strings.HasPrefix(name, "sluice_store_errors_total") && strings.Contains(name, `store="redis"`) && name != errorsBy("open") {
			n += value
		}
	}
	return n
}

// inTurn has each of two loads make n requests. They begin at an even pace,
// whether or not those before have their answers.
func inTurn(n int, a, b *load) (answers [2][]answer) {
	answers = [2][]answer{make([]answer, n), make([]answer, n)}
	var wait sync.WaitGroup
	begun := time.Now()
	for i := range 2 * n {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / pace)))
		now := time.Now()
		wait.Go(func() { answers[i%2][i/2] = [2]*load{a, b}[i%2].request(callers, i/2, now) })
	}
	wait.Wait()
	return answers
}

// checkPair looks at what callers got while the breaker was open: they were
// spared all waits, and the store all calls but the looks, of which one follows
// the other after 75, 150 and then 375 ms at least.
func (r *trial) checkPair(t *testing.T) {
	t.Helper()
	for _, a := range r.pair.bare.answers {
		if a.err != nil {
			t.Errorf("%s without a store: %v, want an answer", a.kind, a.err)
		}
	}
	if !r.opens {
		return
	}
	// 20 in a row, and those under way when the fault began and when it opened.
	if most := 20 + 4*callers; r.asked > float64(most) {
		t.Errorf("%v calls had no answer before the breaker opened, want %d at most", r.asked, most)
	}
	if most := 3 + r.pair.took.Seconds()/0.375; r.pair.calls > most {
		t.Errorf("%v calls of the store in %v while the breaker was open, want %.0f at most", r.pair.calls, r.pair.took, most)
	}
	if got, floor := r.pair.main.at(50), r.pair.bare.at(50); got > 5*floor {
		t.Errorf("the median while the breaker is open is %v, and %v without a store, want 5 times that at most", got, floor)
	}
}

// at returns the time that so many hundredths of the answers took at most.
func (s *side) at(hundredths int) time.Duration { return at(times(s.answers), hundredths) }
