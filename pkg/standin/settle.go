package standin

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// run settles what there is, until ctx ends, and then once more.
func (s *Store) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), goodbye)
			defer cancel()
			s.recall(s.again)
			s.settle(last)
			return
		case <-s.wake:
			s.settleAll(ctx)
		}
	}
}

// settleAll tries again and again until nothing is left or ctx ends.
func (s *Store) settleAll(ctx context.Context) {
	for s.count.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(Pause):
			s.recall(time.Now())
			s.settle(ctx)
		}
	}
}

// some is how many debts are listed at once: callers, who note theirs, wait
// meanwhile.
const some = 1024

// settle tells Main of all that is owed now, or as much as it hears. A look
// that charges nothing comes first, since what Main is told and does not answer
// is not told again.
func (s *Store) settle(ctx context.Context) {
	first := s.keys(1)
	if len(first) == 0 || !s.answers(ctx, first[0]) || !s.settleOne(ctx, first[0]) {
		return
	}
	for left := s.Owed(); left > 0 && s.settleEach(ctx, s.keys(some)); {
		left -= some
	}
}

// keys returns n buckets of which something is owed, or all there are.
func (s *Store) keys(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, min(n, len(s.debts)))
	for key := range s.debts {
		if len(keys) == cap(keys) {
			break
		}
		keys = append(keys, key)
	}
	return keys
}

// answers says whether Main answers a look at the bucket under key.
func (s *Store) answers(ctx context.Context, key string) bool {
	s.mu.Lock()
	look := []bucket.Charge{{Key: key, Limits: s.debts[key].limits}}
	s.mu.Unlock()
	return s.main.Take(ctx, look, make([]bucket.Result, 1)) == nil
}

// settleEach tells Main of the buckets under keys, several at once, and says
// whether it is there.
func (s *Store) settleEach(ctx context.Context, keys []string) bool {
	var next atomic.Int64
	var away atomic.Bool
	var wait sync.WaitGroup
	for range min(workers, len(keys)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(keys)) && !away.Load(); i = next.Add(1) - 1 {
				if !s.settleOne(ctx, keys[i]) {
					away.Store(true)
				}
			}
		})
	}
	wait.Wait()
	return !away.Load()
}

// settleOne tells Main of one bucket, and says whether it is there. What may
// have been heard is never told again.
func (s *Store) settleOne(ctx context.Context, key string) bool {
	s.mu.Lock()
	d := s.debts[key]
	s.mu.Unlock()
	err := s.tell(ctx, key, d)
	cause := causeOf(err)
	if silent[cause] {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause == causeForeign {
		s.putOff(key)
		return true
	}
	if rest := s.debts[key].tokens - d.tokens; rest != 0 {
		s.debts[key] = debt{s.debts[key].limits, rest}
	} else {
		delete(s.debts, key)
	}
	s.recount()
	if err != nil {
		s.forgotten.Add(max(d.tokens, 0))
	}
	return err == nil
}

// putOff keeps what is owed under key apart until it is tried Again. The caller
// holds the lock.
func (s *Store) putOff(key string) {
	if len(s.foreign) == 0 {
		s.again = time.Now().Add(Again)
	}
	s.foreign[key] = s.debts[key]
	delete(s.debts, key)
}

// recall puts what was put off back among the debts, once it is time. Of the two
// the fewer are moved, since callers wait meanwhile.
func (s *Store) recall(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.foreign) == 0 || now.Before(s.again) {
		return
	}
	if len(s.foreign) > len(s.debts) {
		s.foreign, s.debts = s.debts, s.foreign
	}
	maps.Copy(s.debts, s.foreign)
	clear(s.foreign)
}

// tell charges Main with what is owed, as far as it has not come back in the
// meantime: what a bucket lacks here it lacks there.
func (s *Store) tell(ctx context.Context, key string, d debt) error {
	owed := d.tokens
	if owed > 0 {
		owed = min(owed, most(s.local.Bucket(key, d.limits).Parts(d.limits)))
	}
	if owed == 0 {
		return nil
	}
	results := make([]bucket.Result, 1)
	if err := s.main.Take(ctx, []bucket.Charge{{Key: key, Limits: d.limits.Draining(), Cost: owed}}, results); err != nil {
		return err
	}
	if results[0].Err != nil {
		return results[0].Err
	}
	s.settled.Add(max(owed, 0))
	return nil
}

// most returns the most tokens that a limit lacks.
func most(parts []bucket.Part) int64 {
	var spent int64
	for _, p := range parts {
		spent = max(spent, p.Spent)
	}
	return spent
}

// causeOf returns err's word for its cause, or "".
func causeOf(err error) string {
	var e interface{ Cause() string }
	if errors.As(err, &e) {
		return e.Cause()
	}
	return ""
}

// causeForeign is the cause where what is under a key is no bucket. Nothing was
// charged, and can be once that is gone.
const causeForeign = "foreign"

// silent are the causes of errors of a Main that is away and after which nothing
// was charged: a call of one bucket writes once or not at all.
var silent = map[string]bool{
	"open": true, "refused": true, "auth": true, "loading": true, "busy": true, "readonly": true, "clients": true,
	"clusterdown": true, "moved": true, "noscript": true, "tls": true, "closed": true, "full": true, "disk": true, "replicas": true,
}
