// Package sim is a fleet in virtual time: Envoys that ask, replicas that gather
// what they ask into batches, and the nodes of a Redis Cluster that keep the
// buckets, one core each. Events happen one after the other, drawn from a seed,
// so that a run comes out the same to the last bit each time.
//
// The arithmetic of the buckets is not modelled: it is pkg/bucket's. What a
// step costs is not known here either: Costs are measured elsewhere. The rest
// follows the real thing: one batch under way to each node and what comes
// meanwhile gathered (pkg/redisstore), denials remembered until the next token
// (pkg/denycache), tokens of hot keys taken ahead (pkg/lease, whose Holder it
// is), no answer after the deadline of the store.
package sim

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// A Scenario is all that a run depends on.
type Scenario struct {
	Name string `json:"name"`
	Seed uint64 `json:"seed"`
	// Time is how long requests arrive. What is under way then is answered.
	Time time.Duration `json:"time"`
	// WarmUp is left out of utilisations and latencies: all buckets are full
	// at the start.
	WarmUp time.Duration `json:"warm_up"`

	Traffic  Traffic `json:"traffic"`
	Tenants  Tenants `json:"tenants"`
	Replicas int     `json:"replicas"`
	Cores    int     `json:"cores"` // of each replica
	Nodes    int     `json:"nodes"`
	Costs    Costs   `json:"costs"`
	Network  Network `json:"network"`
	// Deadline is the store's.
	Deadline time.Duration `json:"deadline"`
	// DenialCache has replicas remember denials.
	DenialCache bool   `json:"denial_cache"`
	Leases      Leases `json:"leases"`

	Slow  Slow  `json:"slow"`
	Death Death `json:"death"`
}

// Traffic is who asks how often.
type Traffic struct {
	Envoys int     `json:"envoys"`
	Rate   float64 `json:"rate"` // requests a second, of all Envoys
	// Bursty is the share of the Envoys that ask at twice their rate for about
	// Burst, and not at all for as long. The others ask at random, evenly.
	Bursty float64       `json:"bursty"`
	Burst  time.Duration `json:"burst"`
}

// Tenants have a bucket each. The k-th is asked for as often as
// 1/(k+1)^Zipf says.
type Tenants struct {
	Count int     `json:"count"`
	Zipf  float64 `json:"zipf"` // above 1
	// Plan is the limit, in requests a minute, of the fourth tenant, the
	// fourteenth, and so on: some of them ask for far more. The first is below
	// its limit by a fifth, the others by half. 0 is no such plan.
	Plan int64 `json:"plan"`
}

// Costs are what steps cost, in nanoseconds of one core.
type Costs struct {
	Receive float64 `json:"receive_ns"` // a request, by a replica, until it is decided or waits for a node
	Answer  float64 `json:"answer_ns"`  // the rest of it
	Ask     float64 `json:"ask_ns"`     // a request that is asked of a node, by a replica
	Send    float64 `json:"send_ns"`    // a script, by a replica
	Batch   float64 `json:"batch_ns"`   // a batch, by a replica, half of it for sending

	RoundTrip float64 `json:"round_trip_ns"` // a batch, by a node
	Script    float64 `json:"script_ns"`     // each of its scripts: one a slot
	Key       float64 `json:"key_ns"`        // each key, to be read
	Write     float64 `json:"write_ns"`      // each key that is charged
	Charge    float64 `json:"charge_ns"`     // each charge
}

// Network is how long one way takes: Base, and an exponential of mean Jitter;
// for a share Tail of the ways one of mean Long besides.
type Network struct {
	Base   time.Duration `json:"base"`
	Jitter time.Duration `json:"jitter"`
	Tail   float64       `json:"tail"`
	Long   time.Duration `json:"long"`
}

// Slow has a node take Factor times as long for a while. A Factor of 0 is none.
type Slow struct {
	Node   int           `json:"node"`
	From   time.Duration `json:"from"`
	For    time.Duration `json:"for"`
	Factor float64       `json:"factor"`
}

// Death has a replica die, and the Envoys send it nothing more once they have
// noticed. An At of 0 is none.
type Death struct {
	Replica int           `json:"replica"`
	At      time.Duration `json:"at"`
	Noticed time.Duration `json:"noticed"`
}

// check names what is wrong with s.
func (s Scenario) check() error {
	switch {
	case s.Time <= 0 || s.WarmUp < 0 || s.WarmUp >= s.Time:
		return fmt.Errorf("sim: Time is %v and WarmUp %v, want a longer Time above 0", s.Time, s.WarmUp)
	case s.Traffic.Envoys <= 0 || s.Traffic.Rate <= 0:
		return errors.New("sim: Traffic asks for nothing, want Envoys and a Rate")
	case s.Traffic.Bursty > 0 && s.Traffic.Burst <= 0:
		return errors.New("sim: Traffic is Bursty without a Burst")
	case s.Tenants.Count <= 0 || s.Tenants.Zipf <= 1:
		return errors.New("sim: Tenants are none, or their Zipf is not above 1")
	case s.Replicas <= 0 || s.Cores <= 0 || s.Nodes <= 0:
		return errors.New("sim: Replicas, Cores and Nodes must be above 0")
	case s.Deadline <= 0:
		return errors.New("sim: Deadline must be above 0")
	}
	return nil
}

// Run runs s and says what came of it. progress gets a line for each tenth of
// it; nil gets nothing.
func Run(s Scenario, progress io.Writer) (Report, error) {
	if err := s.check(); err != nil {
		return Report{}, err
	}
	if progress == nil {
		progress = io.Discard
	}
	w, err := newWorld(s)
	if err != nil {
		return Report{}, err
	}
	for part := range 10 {
		w.runUntil(int64(s.Time) / 10 * int64(part+1))
		fmt.Fprintf(progress, "%s: %d %% of %v, %d requests\n", s.Name, 10*(part+1), s.Time, w.tally.arrived)
	}
	w.runUntil(never)
	return w.report(), nil
}
