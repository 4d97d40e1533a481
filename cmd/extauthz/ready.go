package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/internal/admin"
	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// admin returns what the admin port shows, while ctx has not ended.
func (p parts) admin(ctx context.Context) admin.Options {
	return admin.Options{
		Metrics: p.metrics.Handler(), Explain: explain.Handler(p.explain), Log: p.log,
		Ready: func(asked context.Context) admin.Readiness { return p.ready(asked, ctx.Err() != nil) },
	}
}

// ready says whether requests may be sent here. With a policy in use they may,
// unless it drains, or the store does not answer and that denies all of them.
func (p parts) ready(ctx context.Context, draining bool) admin.Readiness {
	store, answers := p.checkStore(ctx)
	r := admin.Readiness{
		Ready:  !draining && (answers || !denyAll(rules(p.policies.Set()))),
		Checks: []admin.Check{p.checkPolicy(), store},
	}
	if draining {
		r.Checks = append(r.Checks, admin.Check{Name: "drain", Detail: "told to end"})
	}
	return r
}

func (p parts) checkPolicy() admin.Check {
	set := p.policies.Set()
	c := admin.Check{Name: "policy", OK: true, Detail: fmt.Sprintf("%s in %s", counted(len(rules(set)), "rule"), counted(len(set.Policies()), "file"))}
	if err := p.policies.Err(); err != nil {
		c.OK = false
		c.Detail = "the policy that was read last has faults, the last good one is in use: " + strings.ReplaceAll(err.Error(), "\n", " | ")
	}
	return c
}

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

// denyAll says that no rule lets a request pass when the store is away.
func denyAll(rules []*policy.Rule) bool {
	for _, r := range rules {
		if r.OnError != policy.Deny503 {
			return false
		}
	}
	return len(rules) > 0
}
