package chaos_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestGarbage writes what is no bucket of ours under the keys of one caller.
// That caller's requests go by on_error, nobody else's, and only until the
// value expires.
func TestGarbage(t *testing.T) {
	t.Parallel()
	s := startSystem(t, fault{}, "--store-deadline", patience.String())
	l := startLoad(t, s.GRPC)
	keys := []string{s.key(t, "*:shut*:203.0.113.0"), s.key(t, "*:rls-shut3:who1:0*")}
	for _, g := range garbage() {
		began := time.Now()
		for _, key := range keys {
			s.spoil(t, key, g.command)
		}
		eventually(t, "caller 0 is denied over both doors for "+g.name, func() bool {
			return l.statuses(began, 0)[503] > 0 && l.statuses(began, 0)[429] > 0
		})
		for _, key := range keys {
			s.do(t, "PEXPIRE", key, 1)
		}
		expired := time.Now()
		eventually(t, "caller 0 is allowed once there is no more "+g.name, func() bool { return l.statuses(expired, 0)[200] > 10 })
	}
	l.end()
	checkSpoilt(t, s, l)
}

// A garbageOf is a command that writes it, without the key.
type garbageOf struct {
	name    string
	command []any
}

func garbage() []garbageOf {
	random := make([]byte, 29+rand.IntN(100))
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	random[0] = 0 // which no bucket begins with
	return []garbageOf{
		{"list", []any{"RPUSH", "a", "b"}},
		{"hash", []any{"HSET", "a", "b"}},
		{"stream", []any{"XADD", "*", "a", "b"}},
		{"empty text", []any{"SET", ""}},
		{"half a bucket", []any{"SET", "\x80\x06\x0a\x24\x18\x1e"}},
		{"number", []any{"SET", "9007199254740993"}},
		{"megabyte", []any{"SET", strings.Repeat("\x80", 1<<20)}},
		{"random text", []any{"SET", random}},
	}
}

// key returns the only key that matches pattern, once there is one.
func (s *system) key(t *testing.T, pattern string) string {
	t.Helper()
	var keys []string
	eventually(t, "a key like "+pattern, func() bool {
		keys = strings.Fields(s.server.Do(t, "KEYS", pattern))
		return len(keys) > 0
	})
	if len(keys) != 1 {
		t.Fatalf("keys like %s are %q, want one", pattern, keys)
	}
	return keys[0]
}

// spoil has key hold what the command writes, and nothing else.
func (s *system) spoil(t *testing.T, key string, command []any) {
	t.Helper()
	const script = "redis.call('DEL', KEYS[1]) return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"
	s.do(t, append([]any{"EVAL", script, 1, key}, command...)...)
}

// statuses counts what a caller got, since then, where on_error is deny.
func (l *load) statuses(from time.Time, caller int) map[int]int {
	count := map[int]int{}
	for _, a := range l.between(from, time.Now()) {
		if a.caller == caller && a.kind == shut {
			count[a.status]++
		}
	}
	return count
}

// checkSpoilt looks at what everybody got and what was counted.
func checkSpoilt(t *testing.T, s *system, l *load) {
	t.Helper()
	denied := 0.0
	for _, a := range l.between(time.Time{}, time.Now()) {
		switch {
		case a.err != nil:
			t.Errorf("%s of caller %d: %v, want an answer", a.kind, a.caller, a.err)
		case a.kind == shut && a.status != 200 && a.caller == 0:
			denied++
		case a.kind != alone && a.status != 200:
			t.Errorf("%s of caller %d = %d, want 200", a.kind, a.caller, a.status)
		}
	}
	m := s.metrics(t)
	if got := m[errorsBy("foreign")]; got != denied {
		t.Errorf("%v values of others are counted, want %v", got, denied)
	}
	if got := m[`sluice_store_breaker_transitions_total{store="redis",to="open"}`]; got != 0 {
		t.Errorf("the breaker opened %v times, want never", got)
	}
}
