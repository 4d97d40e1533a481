package server

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// PoliciesOptions are what Policies are made of. Paths and Load are required.
type PoliciesOptions struct {
	// Paths are the files and folders that Load reads.
	Paths []string
	// Files returns the files whose content Load goes by. nil means Paths and,
	// of folders among them, what may be policies.
	Files func() []string
	// Load reads the whole set. An error says that it cannot be used, and the
	// set before stays.
	Load func() (*policy.Set, error)
	// Reloaded is called after each Load but the first with what it returned,
	// once the set is in use. It may be nil.
	Reloaded func(*policy.Set, error)
	// Unwatched is called when the operating system does not tell of changes.
	// They are found all the same, up to a poll later. It may be nil.
	Unwatched func(error)
}

// Policies hold the policy set in use. Set may be called by anybody at any
// time.
type Policies struct {
	opts PoliciesOptions
	set  atomic.Pointer[policy.Set]
	seen stamp // of what was read last; only Run and NewPolicies touch it
	mu   sync.Mutex
	err  error
}

// NewPolicies reads the set for the first time. The error is Load's.
func NewPolicies(o PoliciesOptions) (*Policies, error) {
	if o.Reloaded == nil {
		o.Reloaded = func(*policy.Set, error) {}
	}
	if o.Unwatched == nil {
		o.Unwatched = func(error) {}
	}
	if o.Files == nil {
		o.Files = func() []string { return files(o.Paths) }
	}
	p := &Policies{opts: o, seen: stampOfFiles(o.Files())}
	set, err := o.Load()
	if err != nil {
		return nil, err
	}
	p.set.Store(set)
	return p, nil
}

// Set returns the set in use: the last one that had no faults.
func (p *Policies) Set() *policy.Set { return p.set.Load() }

// Err returns what is wrong with the policy that was read last, nil if it is
// the one in use.
func (p *Policies) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Policies) reload() {
	set, err := p.opts.Load()
	if err == nil {
		p.set.Store(set)
	}
	p.keep(err)
	p.opts.Reloaded(set, err)
}

func (p *Policies) keep(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// Run reads the set again whenever its files have changed, and whenever
// anything comes from force, until ctx ends.
func (p *Policies) Run(ctx context.Context, force <-chan os.Signal) {
	w := newWatch(p.opts.Unwatched)
	defer w.close()
	w.follow(p.opts.Paths)
	f := follower{
		stamp: func() stamp { return stampOfFiles(p.opts.Files()) },
		load: func() {
			p.reload()
			w.follow(p.opts.Paths)
		},
		hints: w.hints, force: force, poll: pollTime, quiet: quietTime, patience: patience,
	}
	f.run(ctx, p.seen)
}

// How soon a change holds: at most pollTime + patience + the time of a read,
// which must stay below a second.
const (
	pollTime  = 300 * time.Millisecond
	quietTime = 50 * time.Millisecond
	patience  = 400 * time.Millisecond
)
