// Package explain says what would become of a request, and why: who it comes
// from, which rules apply to it, what is left in their buckets, and the answer
// that its client would get.
//
// It goes through the same identity, policy, limiter and response as a request
// does, with a store that looks and takes nothing. It changes no bucket and
// counts no decision. Whatever a request holds comes out of it harmless for a
// terminal, and values that a policy hides stay hidden.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Options are what an explanation goes by. Store is required.
type Options struct {
	// Set are the policies. nil has none.
	Set *policy.Set
	// Store has the buckets, and Local those for the time when it fails, as
	// limiter.Options has them. They are asked in such a way that nothing is
	// taken.
	Store, Local limiter.Store
	// Now is the clock that waits are told by. nil means time.Now.
	Now func() time.Time
}

// Explain explains r. The error is a RequestError if r cannot be one; there
// are no others, since a store that fails is part of the explanation.
func Explain(ctx context.Context, o Options, r Request) (Report, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	asked, err := r.ask()
	if err != nil {
		return Report{}, err
	}
	e := explanation{opts: o, request: asked}
	if r.Descriptors != nil {
		return e.descriptors(ctx, r)
	}
	return e.attributes(ctx, r)
}

// An explanation is one under way.
type explanation struct {
	opts    Options
	request asked
	report  Report
}

// attributes explains a request as ext_authz and checks over HTTP bring it.
func (e *explanation) attributes(ctx context.Context, r Request) (Report, error) {
	a := e.request.attrs
	e.report.Request = cut(a.Method + " " + policy.NormalPath(a.Path))
	domain := cmp.Or(a.Context["domain"], r.Domain)
	p := e.opts.Set.ForRequests(domain)
	if p == nil {
		return e.unknown(ctx, domain)
	}
	edge := p.Edge.Trace(a)
	t := p.Trace(policy.Request{Attributes: a, Identity: edge.Identity})
	e.report.identify(p, a, edge, t.Identities)
	e.report.Exempt = t.ExemptBy
	e.report.addRules(t, nil)
	return e.conclude(ctx, p, t.Match)
}

// descriptors explains a request as Envoy's rate limit filter brings it.
func (e *explanation) descriptors(ctx context.Context, r Request) (Report, error) {
	e.report.Request = fmt.Sprintf("%d of Envoy's descriptors, at a cost of %d each", len(r.Descriptors), e.request.cost)
	p := e.opts.Set.Domain(r.Domain)
	if p == nil && r.Domain == "" {
		p = e.onlyPolicy()
	}
	if p == nil {
		return e.unknown(ctx, r.Domain)
	}
	var m policy.Match
	ends := make([]int, len(e.request.descriptors))
	for i, d := range e.request.descriptors {
		t := p.TraceDescriptor(d)
		for j := range t.Applied {
			t.Applied[j].Cost = e.request.cost
		}
		m.Applied = append(m.Applied, t.Applied...)
		ends[i] = len(m.Applied)
		e.report.addRules(t, &DescriptorPlace{i, r.Descriptors[i].text()})
	}
	e.report.replace(m.Applied)
	m.Applied = policy.Replace(m.Applied, ends)
	return e.conclude(ctx, p, m)
}

func (e *explanation) onlyPolicy() *policy.Policy {
	if all := e.opts.Set.Policies(); len(all) == 1 {
		return all[0]
	}
	return nil
}

func (e *explanation) unknown(ctx context.Context, domain string) (Report, error) {
	l, err := limiter.New(limiter.Options{Store: e.opts.Store})
	if err != nil {
		return Report{}, fmt.Errorf("explain: %w", err)
	}
	e.report.Domain = domain
	e.report.decide(l.Unknown(ctx, domain), e.request)
	return e.report, nil
}

// conclude looks at the buckets of m and decides by them.
func (e *explanation) conclude(ctx context.Context, p *policy.Policy, m policy.Match) (Report, error) {
	store := &looking{store: e.opts.Store, now: e.opts.Now}
	options := limiter.Options{Store: store}
	var local *looking
	if e.opts.Local != nil {
		local = &looking{store: e.opts.Local, now: e.opts.Now}
		options.Local = local
	}
	l, err := limiter.New(options)
	if err != nil {
		return Report{}, fmt.Errorf("explain: %w", err)
	}
	d := l.Decide(ctx, m)
	e.report.Domain, e.report.File = p.Domain, p.File
	e.report.addBuckets(d, store, local)
	e.report.decide(d, e.request)
	return e.report, nil
}

// A RequestError is a request that cannot be explained.
type RequestError struct{ error }

// Unwrap returns what is wrong with it.
func (e RequestError) Unwrap() error { return e.error }

func requestError(format string, args ...any) error {
	return RequestError{fmt.Errorf(format, args...)}
}
