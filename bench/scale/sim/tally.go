package sim

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A cause is why a request had no answer of the store.
type cause int

const (
	tooLate cause = iota
	noRoom
	diedOnIt
	causes
)

// slotTime is the width of a Slot.
const slotTime = 100 * time.Millisecond

// A tally counts what comes of requests.
type tally struct {
	s          Scenario
	tenants    *tenants
	keys       []keyTally
	ideal      []bucket.Bucket // that are asked the moment a request is sent, and are always there
	arrived    int64
	answered   int64
	admitted   int64
	failed     [causes]int64
	remembered int64
	leased     int64
	lost       int64
	latency    *hdrhistogram.Histogram
	slots      []*slot
}

// A keyTally is of one tenant.
type keyTally struct {
	arrived, admitted, ideal int64
	window                   window
	broken                   int64 // windows with more than there may be
}

// A slot is what ended within a slotTime.
type slot struct {
	latency *hdrhistogram.Histogram
	failed  int64
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 2)
}

func newTally(s Scenario, t *tenants) *tally {
	y := &tally{s: s, tenants: t, keys: make([]keyTally, len(t.limits)), ideal: make([]bucket.Bucket, len(t.limits)), latency: newHistogram()}
	for k, ls := range t.limits {
		l := ls.At(0)
		y.keys[k].window = window{burst: l.Burst, tokens: l.Tokens, per: l.Per.Microseconds()}
	}
	for range s.Time / slotTime {
		y.slots = append(y.slots, &slot{latency: newHistogram()})
	}
	return y
}

// arrive notes that a request is sent, and what an ideal bucket makes of it.
func (y *tally) arrive(key int32, micros int64) {
	y.arrived++
	k := &y.keys[key]
	k.arrived++
	b, result := y.ideal[key].Take(y.tenants.limits[key], epoch.Add(time.Duration(micros)*time.Microsecond), 1)
	y.ideal[key] = b
	if result.Allowed {
		k.ideal++
	}
}

// spend notes that a token has left a bucket, whoever it was for.
func (y *tally) spend(key int32, micros int64) {
	k := &y.keys[key]
	if !k.window.spend(micros) {
		k.broken++
	}
}

// finish notes that the answer of a request is with its Envoy at that moment.
func (y *tally) finish(r *request, at int64) {
	y.answered++
	if r.allowed {
		y.admitted++
		y.keys[r.key].admitted++
	}
	y.took(r, at)
}

// fail notes the same of one that the store had no answer for.
func (y *tally) fail(r *request, why cause, at int64) {
	y.failed[why]++
	if s := y.took(r, at); s != nil {
		s.failed++
	}
}

// took notes how long r took, and returns the slot in which it ended.
func (y *tally) took(r *request, at int64) *slot {
	if !y.s.counts(at) {
		return nil
	}
	micros := max((at-r.began)/1000, 1)
	_ = y.latency.RecordValue(micros) // a minute is longer than any
	place := int(at / int64(slotTime))
	if place >= len(y.slots) {
		return nil
	}
	s := y.slots[place]
	_ = s.latency.RecordValue(micros)
	return s
}
