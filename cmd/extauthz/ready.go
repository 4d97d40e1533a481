package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/internal/admin"
	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// adminOptions are what the admin port serves, while ctx has not ended.
func (p parts) adminOptions(ctx context.Context) server.HTTPOptions {
	o := admin.Options{
		Metrics: p.metrics.Handler(), Explain: explain.Handler(p.explain), Hosts: p.settings.AdminHosts, Pprof: p.settings.Pprof,
		Ready: func(asked context.Context) admin.Readiness { return p.ready(asked, ctx.Err() != nil) },
	}
	if p.settings.AdminTokenFile != "" {
		o.Token = p.settings.AdminToken
	}
	s := besideOptions(admin.Handler(o), p.metrics, p.log)
	s.MaxHeaderSize, s.TLS, s.Refused = 16<<10, p.tls.admin.config(), p.tls.admin.refused()
	s.IdleTime = 5 * time.Minute // between two scrapes; no proxy asks here
	return s
}

// ready says whether requests may be sent here. With a policy in use they may,
// unless it drains, or the store does not answer and that denies all of them.
func (p parts) ready(ctx context.Context, draining bool) admin.Readiness {
	store, answers := p.checkStore(ctx)
	r := admin.Readiness{
		Ready:  !draining && (answers || !denyAll(rules(p.policies.Set()))),
		Checks: append([]admin.Check{p.checkPolicy(), store}, p.tls.check(time.Now())...),
	}
	if draining {
		r.Checks = append(r.Checks, admin.Check{Name: "drain", Detail: "told to end"})
	}
	return r
}

// healthTime is how often gRPC health is brought up to date. While the breaker
// is closed that costs the store one look.
const healthTime = time.Second

// followHealth keeps what s says of each service as it is, until ctx ends.
func (p parts) followHealth(ctx context.Context, s *server.Server) {
	ticks := time.NewTicker(healthTime)
	defer ticks.Stop()
	for {
		p.setHealth(ctx, s)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// setHealth has each service fail alone: the one whose rules all deny without
// the store.
func (p parts) setHealth(ctx context.Context, s *server.Server) {
	_, answers := p.checkStore(ctx)
	if ctx.Err() != nil {
		return
	}
	all := rules(p.policies.Set())
	s.SetServing(server.Readiness, answers || !denyAll(all))
	for descriptors, name := range map[bool]string{false: server.AuthzName, true: server.RateLimitName} {
		other := func(r *policy.Rule) bool { return r.Descriptor != descriptors }
		s.SetServing(name, answers || !denyAll(slices.DeleteFunc(slices.Clone(all), other)))
	}
}

func (p parts) checkPolicy() admin.Check {
	set := p.policies.Set()
	c := admin.Check{Name: "policy", OK: true, Detail: fmt.Sprintf("%s in %s", counted(len(rules(set)), "rule"), counted(len(set.Policies()), "file"))}
	if err := p.policies.Err(); err != nil {
		c.OK = false
		c.Detail = "the policy that was read last has faults, the last good one is in use: " + oneLine(err)
	}
	return c
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " | ") }

// pingTime bounds a look at the store, so that a probe has its answer before
// its own time is up.
const pingTime = 500 * time.Millisecond

func (p parts) checkStore(ctx context.Context) (c admin.Check, answers bool) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	c = admin.Check{Name: "store", Detail: p.settings.Store}
	err := p.stores.ping(ctx)
	var open *breaker.OpenError
	switch {
	case errors.As(err, &open):
		c.Detail = fmt.Sprintf("%s is away (%s), the breaker is open for %v: on_error decides at once",
			p.settings.Store, limiter.Cause(open.Err), time.Since(open.Since).Round(time.Millisecond))
	case err != nil:
		c.Detail = fmt.Sprintf("%s does not answer (%s), on_error decides", p.settings.Store, limiter.Cause(err))
	}
	c.OK = err == nil
	return c, c.OK
}

// denyAll says that every rule that can deny does when the store is away.
func denyAll(rules []*policy.Rule) bool {
	denying := 0
	for _, r := range rules {
		switch {
		case r.Shadow:
		case r.OnError == policy.Deny503:
			denying++
		default:
			return false
		}
	}
	return denying > 0
}
