package chaos_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// How much fails while a fault lasts.
const (
	none = iota
	some
	all
)

// A fault is what is done to the store, and what must be seen of that.
type fault struct {
	name   string
	server servers.Options
	// byWay has extauthz reach the server by the system's way.
	byWay bool
	// prepare is done before anybody asks; nil does nothing.
	prepare func(t *testing.T, s *system)
	inflict func(t *testing.T, s *system)
	heal    func(t *testing.T, s *system)
	fails   int
	// cause is the one that is counted, or another of these.
	cause []string
	// opens says that the breaker does.
	opens bool
	// forgets says that buckets are gone.
	forgets bool
	// last is the cause that the breaker closes after, where it is another.
	last string
}

var faults = []fault{
	{
		name: "killed, and started empty", inflict: kill, heal: restart,
		fails: all, cause: []string{"refused", "broken"}, opens: true, forgets: true,
	},
	{
		name: "killed, and started with its data", server: onDisk, inflict: kill, heal: restart,
		fails: all, cause: []string{"refused", "broken"}, opens: true,
	},
	{
		name: "killed, and slow to load its data", server: slow, prepare: stuff, inflict: reload, heal: hasten,
		fails: all, cause: []string{"refused", "broken"}, opens: true, forgets: true, last: "loading",
	},
	{
		name:    "stalled (SIGSTOP)",
		inflict: func(t *testing.T, s *system) { s.server.Pause(t) },
		heal:    func(t *testing.T, s *system) { s.server.Resume(t) },
		fails:   all, cause: []string{"timeout"}, opens: true,
	},
	{
		name: "answers later than the deadline", byWay: true,
		inflict: func(_ *testing.T, s *system) { s.way.late.Store(int64(2 * *deadline)) },
		heal:    func(_ *testing.T, s *system) { s.way.late.Store(0) },
		fails:   all, cause: []string{"timeout"}, opens: true,
	},
	{
		name: "connections cut, every second at once", byWay: true,
		inflict: func(_ *testing.T, s *system) { s.way.cuts.Store(true); s.way.cut() },
		heal:    func(_ *testing.T, s *system) { s.way.cuts.Store(false) },
		fails:   some, cause: []string{"broken", "other"},
	},
	{
		name:    "full (maxmemory, noeviction)",
		inflict: func(t *testing.T, s *system) { s.do(t, "CONFIG", "SET", "maxmemory", "1") },
		heal:    func(t *testing.T, s *system) { s.do(t, "CONFIG", "SET", "maxmemory", "0") },
		fails:   all, cause: []string{"full"},
	},
	{
		name:    "read only (REPLICAOF)",
		inflict: follow,
		heal:    func(t *testing.T, s *system) { s.do(t, "REPLICAOF", "NO", "ONE") },
		fails:   all, cause: []string{"readonly"},
	},
	{
		name:    "the right to run scripts taken (ACL)",
		inflict: func(t *testing.T, s *system) { s.do(t, "ACL", "SETUSER", "default", "-@scripting") },
		heal:    func(t *testing.T, s *system) { s.do(t, "ACL", "SETUSER", "default", "+@all") },
		fails:   all, cause: []string{"auth"}, opens: true,
	},
	{name: "SCRIPT FLUSH, 20 times", inflict: often("SCRIPT", "FLUSH"), heal: often("PING"), fails: none},
	{name: "FLUSHALL", inflict: func(t *testing.T, s *system) { s.do(t, "FLUSHALL") }, heal: often("PING"), fails: none, forgets: true},
	{
		name: "CLIENT KILL of all, 20 times", inflict: hangUp, heal: often("PING"),
		fails: some, cause: []string{"broken", "other"},
	},
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := newTrial(t, f)
			r.inflict(t)
			r.recover(t)
			r.checkAnswers(t)
			r.checkProcess(t)
			r.report(t)
		})
	}
}

// A trial is one fault, in time.
type trial struct {
	fault
	*system
	*load
	// bare is an extauthz with no store but its memory, and pair what the two
	// were asked side by side while the fault lasted.
	bare       *stack.Extauthz
	pair       pair
	asked      float64 // calls of the store without an answer, until it was not asked
	goroutines float64
	// The fault begins, all fails that will, it is about to end, it has ended,
	// the store is used again, what failed until then is counted, the end.
	begins, down, ends, healed, well, steady, over time.Time
	before                                         map[string]float64 // what was counted when steady
}

// newTrial starts a system that has answered some requests.
func newTrial(t *testing.T, f fault) *trial {
	t.Helper()
	s := startSystem(t, f)
	if f.prepare != nil {
		f.prepare(t, s)
	}
	r := &trial{fault: f, system: s, bare: serve(t, "--policy", policyFile(t), "--store", "memory"), load: startLoad(t, s.GRPC)}
	r.await(t, 100)
	r.goroutines = r.metrics(t)["go_goroutines"]
	return r
}

// inflict does the fault to the store, until it was felt.
func (r *trial) inflict(t *testing.T) {
	t.Helper()
	before := unanswered(r.metrics(t))
	r.begins = time.Now()
	r.fault.inflict(t, r.system)
	if r.opens {
		line := r.says(t, "the store is away")
		if !r.caused(line) {
			t.Errorf("opened by %s, want cause %v", line, r.cause)
		}
	}
	r.down = time.Now()
	r.asked = unanswered(r.metrics(t)) - before
	r.await(t, *least)
	r.compare(t)
	r.ends = time.Now()
}

func (r *trial) caused(line string) bool {
	for _, cause := range r.cause {
		if strings.Contains(line, "cause="+cause+" ") {
			return true
		}
	}
	return false
}

// recover undoes the fault and waits until the store is used.
func (r *trial) recover(t *testing.T) {
	t.Helper()
	r.heal(t, r.system)
	r.healed = time.Now()
	eventually(t, "a rule that denies without the store allows", func() bool {
		for _, a := range r.between(r.healed, time.Now()) {
			if a.kind == shut && a.status == 200 {
				r.well = a.end
				return true
			}
		}
		return false
	})
	r.before = r.metrics(t)
	r.steady = time.Now()
	r.await(t, 100)
	r.end()
	r.over = time.Now()
}

// checkAnswers looks at what callers got.
func (r *trial) checkAnswers(t *testing.T) {
	t.Helper()
	for _, a := range r.between(time.Time{}, r.over) {
		if a.err != nil {
			t.Errorf("%s (rate limit service %v): %v, want an answer", a.kind, a.rls, a.err)
		}
		if a.kind == open && a.status != 200 {
			t.Errorf("%d where on_error is allow (rate limit service %v), want 200", a.status, a.rls)
		}
	}
	r.checkDown(t)
	r.checkAlone(t)
	r.checkAfter(t)
	if slowest, most := at(times(r.between(r.begins, r.over)), 100), max(8**deadline, 2*time.Second); slowest > most {
		t.Errorf("the slowest answer took %v, want %v at most", slowest, most)
	}
	r.checkPair(t)
}

// checkAfter looks at what callers got once the store was used again: nothing
// comes of connections that are stale. That the machine is too busy to answer
// in time is no fault of anybody's.
func (r *trial) checkAfter(t *testing.T) {
	t.Helper()
	denied, late := 0.0, 0.0
	for _, a := range r.between(r.steady, r.over) {
		if a.kind == shut && a.status != 200 {
			denied++
		}
	}
	for name, value := range r.metrics(t) {
		more := value - r.before[name]
		switch {
		case name == errorsBy("timeout"), name == errorsBy("open"):
			late += more
		case strings.HasPrefix(name, "sluice_store_errors_total") && more > 0:
			t.Errorf("%v more errors %s after the store was used again, want none", more, name)
		}
	}
	if denied > late {
		t.Errorf("%v denials after the store was used again, and %v late answers of it, want no other denials", denied, late)
	}
}

// checkDown looks at the rules that deny without the store, while it is away.
func (r *trial) checkDown(t *testing.T) {
	t.Helper()
	denied := 0
	for _, a := range r.between(r.begins, r.over) {
		deny := 503
		if a.rls {
			deny = 429
		}
		switch {
		case a.kind == shut && a.status == deny:
			denied++
		case a.kind == shut && a.status != 200:
			t.Errorf("%d where on_error is deny (rate limit service %v), want 200 or %d", a.status, a.rls, deny)
		}
	}
	late := r.before[errorsBy("timeout")] // the machine may be, with no fault
	if denied == 0 && r.fails != none || denied > 0 && r.fails == none && late == 0 {
		t.Errorf("%d denials for want of the store, and %v late answers of it, want denials: %v", denied, late, r.fails != none)
	}
	if r.fails != all {
		return
	}
	for _, a := range r.between(r.down, r.ends) {
		if a.kind == shut && a.status == 200 {
			t.Errorf("200 where on_error is deny (rate limit service %v) while the store is away", a.rls)
		}
	}
}

// checkAlone looks at the rules that go on alone: each caller has its limit
// once of the store, once of this replica, and once more of a store that has
// forgotten.
func (r *trial) checkAlone(t *testing.T) {
	t.Helper()
	most := 2 * small
	if r.forgets {
		most += small
	}
	type bucket struct {
		caller int
		rls    bool
	}
	allowed := map[bucket]int{}
	for _, a := range r.between(time.Time{}, r.over) {
		if a.kind == alone && a.status == 200 {
			allowed[bucket{a.caller, a.rls}]++
		}
	}
	for b, n := range allowed {
		if n > most || n < small {
			t.Errorf("%d requests of caller %d (rate limit service %v) allowed where on_error is local, want %d to %d", n, b.caller, b.rls, small, most)
		}
	}
}

// checkProcess looks at extauthz itself.
func (r *trial) checkProcess(t *testing.T) {
	t.Helper()
	m := r.metrics(t)
	counted, others := 0.0, 0.0
	for _, cause := range r.cause {
		counted += m[errorsBy(cause)]
	}
	for name, value := range m {
		if strings.HasPrefix(name, "sluice_store_errors_total") && name != errorsBy("timeout") && name != errorsBy("open") {
			others += value
		}
	}
	if r.fails != none && counted == 0 || r.fails == none && others > 0 {
		t.Errorf("%v errors of causes %v, %v of others, want them counted", counted, r.cause, others)
	}
	if m["sluice_panics_total"] != 0 {
		t.Errorf("%v panics, want none", m["sluice_panics_total"])
	}
	r.checkBreaker(t, m[`sluice_store_breaker_transitions_total{store="redis",to="open"}`])
	eventually(t, fmt.Sprintf("as many goroutines as the %v before, or 5 more", r.goroutines), func() bool {
		return r.metrics(t)["go_goroutines"] <= r.goroutines+5
	})
}

func (r *trial) checkBreaker(t *testing.T, opened float64) {
	t.Helper()
	if r.opens {
		got := r.says(t, "the store answers again")
		if r.last != "" && patient() && !strings.Contains(got, "cause="+r.last) {
			t.Errorf("closed by %s, want after %s", got, r.last)
		}
	}
	if (opened > 0) != r.opens && r.fails != some && patient() {
		t.Errorf("the breaker opened %v times, want any: %v", opened, r.opens)
	}
	eventually(t, "the breaker is closed", func() bool { return r.metrics(t)[`sluice_store_breaker_open{store="redis"}`] == 0 })
}

// patient says that the store is given so much time that the machine cannot be
// taken for it.
func patient() bool { return *deadline >= 250*time.Millisecond }
