package denycache

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A shard is denials in two generations. Those of the elder are forgotten all
// at once, when the younger takes half of the room or is so old that all of the
// elder are over.
type shard struct {
	most int64 // bytes

	mu             sync.RWMutex
	younger, elder map[string]denial
	bytes          int64 // of the younger
	began          time.Time
}

// A denial is the results of a request, as they were told.
type denial struct {
	results     []bucket.Result
	until, told time.Time
}

// answer sets results, if the request is denied still.
func (s *shard) answer(request []byte, now time.Time, results []bucket.Result) bool {
	s.mu.RLock()
	d, known := s.younger[string(request)]
	if !known {
		d, known = s.elder[string(request)]
	}
	s.mu.RUnlock()
	if !known || !now.Before(d.until) || len(results) != len(d.results) {
		return false
	}
	passed := max(now.Sub(d.told), 0).Truncate(tick) // the store may have decided as late as it was told
	for i, r := range d.results {
		r.Remembered = !r.Allowed
		r.FullIn = max(r.FullIn-passed, 0)
		if r.RetryAfter != bucket.Never {
			r.RetryAfter = max(r.RetryAfter-passed, 0)
		}
		results[i] = r
	}
	return true
}

// put remembers d for as long as that holds, if still says so.
func (s *shard) put(request []byte, d denial, still func() bool) {
	// Two maps, the text and the results: about what they take.
	size := int64(len(request)) + int64(len(d.results))*72 + 160
	if size > s.most/2 {
		return
	}
	d.results = slices.Clone(d.results)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !still() {
		return
	}
	if s.bytes+size > s.most/2 || d.told.Sub(s.began) >= Longest {
		s.turn(d.told)
	}
	if s.younger == nil {
		s.younger = map[string]denial{}
	}
	s.younger[string(request)] = d
	s.bytes += size
}

// turn forgets the elder generation.
func (s *shard) turn(now time.Time) {
	clear(s.elder)
	s.younger, s.elder = s.elder, s.younger
	s.bytes, s.began = 0, now
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.younger)
	clear(s.elder)
	s.bytes = 0
}
