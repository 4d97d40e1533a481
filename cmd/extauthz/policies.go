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
		Paths: l.settings.Policy, Load: l.load, Reloaded: l.reloaded,
		Unwatched: func(err error) {
			l.log.Warn("a folder cannot be watched, so changes in it are looked for", "error", err)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the policy cannot be used:\n%w", err)
	}
	l.reloaded(policies.Set(), nil)
	return policies, nil
}

func (l loading) load() (*policy.Set, error) {
	set, faults := policyfile.Load(policyfile.Options{
		Paths: l.settings.Policy, Default: l.settings.Domain, HashKey: l.settings.HashKey, Merge: l.settings.MergeDomains,
	})
	for _, f := range faults.Warnings() {
		l.log.Warn("the policy has a doubtful place", "fault", f.String())
	}
	err := faults.Err()
	if err == nil {
		l.use(set) // before a decision is made by them
	}
	return set, err
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
