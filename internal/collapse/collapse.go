// Package collapse notices while requests come that many callers have become
// one: a peer that brings addresses which nobody believes, as a proxy does that
// trust does not name, or one bucket that takes nearly all of a rule's traffic.
//
// It holds no address, header or key, only hashes of them in tables of a fixed
// size, and it says no more than names that the policy's author wrote. It
// changes no decision.
package collapse

import (
	"context"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// The reasons, as labels.
const (
	Untrusted = "untrusted_proxy" // a peer brings many forwarded addresses
	OneKey    = "one_key"         // a bucket takes nearly all of a rule's traffic
)

// Options are what a Watch is made of. All may be zero.
type Options struct {
	// Log gets at most a warning a minute, and of one rule and reason at most
	// one an hour. nil logs nothing.
	Log *slog.Logger
	// Count is called for each finding: at most once a minute for a rule and
	// a reason. The rule is "" with Untrusted. It may be nil.
	Count func(domain, rule, reason string)
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// A Watch looks at requests and decisions. It is safe for concurrent use.
type Watch struct {
	opts    Options
	seed    maphash.Seed
	sampler sampler
	peers   peers
	rules   atomic.Pointer[map[*policy.Rule]*traffic]

	mu    sync.Mutex
	next  time.Time // no line is logged before
	quiet map[finding]time.Time
}

// New makes a Watch. It looks at no rule before Use.
func New(o Options) *Watch {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Count == nil {
		o.Count = func(string, string, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Watch{opts: o, seed: maphash.MakeSeed(), quiet: map[finding]time.Time{}}
	w.rules.Store(&map[*policy.Rule]*traffic{})
	return w
}

// Use makes the rules of set, which comes into use, the ones that are looked
// at. Those that tell no callers apart are not.
func (w *Watch) Use(set *policy.Set) {
	rules := make(map[*policy.Rule]*traffic)
	for _, p := range set.Policies() {
		for rule, by := range p.Callers() {
			rules[rule] = &traffic{by: by}
		}
	}
	w.rules.Store(&rules)
}

// A peerOf is a peer as the trust of one domain sees it.
type peerOf struct {
	domain string
	peer   netip.Addr
}

// Identified looks at a request for p, and at what p made of who it comes from.
// It keeps nothing of them.
func (w *Watch) Identified(p *policy.Policy, a *identity.Attributes, id identity.Identity) {
	entry := p.Edge.Unread(a, id)
	if entry == "" || !w.sampler.takes() {
		return
	}
	now := w.now()
	if w.peers.bring(maphash.Comparable(w.seed, peerOf{p.Domain, id.Client}), maphash.String(w.seed, entry[:min(len(entry), longest)]), now) {
		w.found(finding{p.Domain, "", Untrusted}, now, "one peer brings many forwarded addresses that nobody vouches for, and they all are one caller",
			slog.String("cure", "if the direct peer is a proxy of yours that sets the header, name its address in trust.proxies; extauthz explain shows it"))
	}
}

// Decided looks at the buckets that a decision was about. It keeps nothing of
// them.
func (w *Watch) Decided(applied []policy.Applied) {
	if len(applied) == 0 || !w.sampler.takes() {
		return
	}
	now, rules := w.now(), *w.rules.Load()
	for i := range applied {
		a := &applied[i]
		t := rules[a.Rule]
		if t == nil || a.Unlimited {
			continue
		}
		if t.count(maphash.String(w.seed, a.Key), now) {
			w.found(finding{a.Rule.Domain, a.Rule.Name, OneKey}, now, "one bucket takes nearly all of a rule's traffic",
				slog.String("per", t.by), slog.String("cure", cure(t.by)))
		}
	}
}

// cure is what to do where all callers have one value of by.
func cure(by string) string {
	if by == "ip" {
		return "if callers come through a proxy, say so in trust: proxies, hops or stamp"
	}
	return "if there are more callers than one, see that each has its own value, and what missing says of those without"
}

// longest is how much of an entry is looked at: more than an address has.
const longest = 64

// now reads the clock, for a request that is looked at.
func (w *Watch) now() time.Time {
	now := w.opts.Now()
	w.sampler.renew(now)
	return now
}

// A finding is one thing that was noticed.
type finding struct{ domain, rule, reason string }

const (
	lineEvery = time.Minute
	sameEvery = time.Hour
)

// found counts f, and logs it if it is time.
func (w *Watch) found(f finding, now time.Time, message string, facts ...slog.Attr) {
	w.opts.Count(f.domain, f.rule, f.reason)
	if !w.due(f, now) {
		return
	}
	facts = append([]slog.Attr{slog.String("domain", f.domain), slog.String("rule", f.rule)}, facts...)
	w.opts.Log.LogAttrs(context.Background(), slog.LevelWarn, message, facts...)
}

func (w *Watch) due(f finding, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.next) || now.Before(w.quiet[f]) {
		return false
	}
	for old, until := range w.quiet {
		if !now.Before(until) {
			delete(w.quiet, old) // rules that are gone would stay for ever
		}
	}
	w.next, w.quiet[f] = now.Add(lineEvery), now.Add(sameEvery)
	return true
}

// A sampler takes the first requests of each minute, and of the rest some by
// chance: by turns it could see one side of traffic that alternates.
type sampler struct {
	n     atomic.Uint32
	until atomic.Int64 // ns
}

const (
	takesAll = 1024
	takesOne = 16 // in so many
)

func (s *sampler) takes() bool {
	if s.n.Load() < takesAll {
		s.n.Add(1)
		return true
	}
	return rand.Uint32()%takesOne == 0
}

func (s *sampler) renew(now time.Time) {
	until := s.until.Load()
	if now.UnixNano() >= until && s.until.CompareAndSwap(until, now.Add(time.Minute).UnixNano()) {
		s.n.Store(0)
	}
}
