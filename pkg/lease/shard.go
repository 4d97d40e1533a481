package lease

import (
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A shard is the keys that are watched, of one part of all.
type shard struct {
	mu   sync.Mutex
	keys map[string]*entry
	most int
}

// An entry is a Holder and when it is to be looked after.
type entry struct {
	Holder
	in    *shard // whose lock guards it
	key   string
	timer *time.Timer
}

// decide says what to do with c. Without room for its key it asks the store.
// The time is read under the lock: who waited for that does not spend what has
// ended meanwhile.
func (sh *shard) decide(c *bucket.Charge) (*entry, Choice) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	e := sh.keys[c.Key]
	if e == nil {
		_, lasts := c.Limits.Lease()
		if len(sh.keys) >= sh.most && !sh.evict(now, lasts) {
			return nil, Choice{}
		}
		e = &entry{in: sh, key: c.Key}
		sh.keys[c.Key] = e
	}
	return e, e.Decide(now, c.Limits, c.Cost)
}

// tries is how many keys are looked at for one to forget.
const tries = 4

// evict forgets a key that is not hot, if one is soon found.
func (sh *shard) evict(now time.Time, lasts time.Duration) bool {
	n := 0
	for key, e := range sh.keys {
		if e.Idle(now, lasts) {
			delete(sh.keys, key)
			return true
		}
		if n++; n == tries {
			return false
		}
	}
	return false
}

// wake has f called after d, and not when it was to be called before.
func (e *entry) wake(d time.Duration, f func()) {
	if e.timer == nil {
		e.timer = time.AfterFunc(d, f)
		return
	}
	e.timer.Reset(d)
}

// close forgets all, and has what is held given back.
func (sh *shard) close(giveBack func(key string, ls *bucket.Limits, l bucket.Lease)) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for key, e := range sh.keys {
		if e.timer != nil {
			e.timer.Stop()
		}
		_, ls, _ := e.Held()
		if l := e.End(time.Now()); l.Back > 0 {
			giveBack(key, ls, l)
		}
		delete(sh.keys, key)
	}
}
