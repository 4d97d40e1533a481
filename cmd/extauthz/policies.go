package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// loading reads the policy, at the start and whenever it changes, and tells.
type loading struct {
	settings config.Settings
	observers
}

// start reads the policy for the first time; it must have no faults.
func (l loading) start() (*server.Policies, error) {
	policies, err := server.NewPolicies(server.PoliciesOptions{
		Paths: l.settings.Policy, Load: l.load, Reloaded: l.reloaded, Unwatched: l.unwatched,
	})
	if err != nil {
		return nil, fmt.Errorf("the policy cannot be used:\n%w", err)
	}
	l.reloaded(policies.Set(), nil)
	return policies, nil
}

func (l loading) load() (*policy.Set, error) {
	set, faults := policyfile.Load(policyOptions(l.settings))
	for _, f := range faults.Warnings() {
		l.log.Warn("the policy has a doubtful place", "fault", f.String())
	}
	err := faults.Err()
	if err == nil {
		l.use(set) // before a decision is made by them
	}
	return set, err
}

// policyOptions are what settings say of the policy.
func policyOptions(s config.Settings) policyfile.Options {
	return policyfile.Options{Paths: s.Policy, Default: s.Domain, HashKey: s.HashKey, Merge: s.MergeDomains}
}

// reloaded tells what became of reading the policy.
func (l loading) reloaded(set *policy.Set, err error) {
	if err == nil {
		l.metrics.Reloaded(time.Now())
		l.log.Info("policy loaded", "files", len(set.Policies()), "rules", len(rules(set)))
		return
	}
	l.metrics.ReloadFailed()
	var faults policyfile.Faults
	errors.As(err, &faults)
	l.log.Error("the policy has faults, the last good one stays in use", "faults", len(faults))
	for _, f := range faults {
		l.log.Error("policy fault", "fault", f.String())
	}
}
