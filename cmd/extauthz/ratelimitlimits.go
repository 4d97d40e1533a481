package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// limits are where the limits come from.
type limits struct {
	// set is nil until there was a configuration.
	set func() *policy.Set
	// run follows what changes until the context ends.
	run func(ctx context.Context, hangups <-chan os.Signal)
}

func newLimits(s ratelimit.Settings, stats *ratelimit.Stats, seen observers) (limits, error) {
	r := &reading{said: s, stats: stats, observers: seen}
	if s.XDS {
		return r.overXDS()
	}
	files, err := server.NewPolicies(server.PoliciesOptions{
		Paths: []string{s.Folder()}, Files: func() []string { return policyfile.Files(r.options()) }, Load: r.load,
		Unwatched: seen.unwatched,
	})
	if err != nil {
		return limits{}, fmt.Errorf("read %s: %w", s.Folder(), err)
	}
	return limits{set: files.Set, run: files.Run}, nil
}

// A reading reads the files, and tells what is wrong with them.
type reading struct {
	said  ratelimit.Settings
	stats *ratelimit.Stats
	observers
	before *policy.Set
}

func (r *reading) options() policyfile.Options {
	return policyfile.Options{
		Paths: []string{r.said.Folder()}, Merge: r.said.MergeDomains,
		Ratelimit: &policyfile.Ratelimit{SkipDotfiles: r.said.IgnoreDotfiles, OnError: r.said.OnError},
	}
}

// load reads all files. A file with faults leaves its domain as it was. There
// is no set until there was one domain without.
func (r *reading) load() (*policy.Set, error) {
	set, faults := policyfile.LoadKeeping(r.options(), r.before)
	for _, f := range faults {
		if f.File == r.said.Folder() {
			f.Do = r.said.FolderHint()
		}
		if f.Warning {
			r.log.Warn("the configuration has a doubtful place", "fault", f.String())
		} else {
			r.log.Error("a file of the configuration is not used, its domain stays as it was", "fault", f.String())
		}
	}
	return r.took(set, faults.Err() == nil), nil
}

// took makes set the one that is looked at, and returns it; nil as long as there
// never was a domain without faults. whole says that nothing is wrong with what
// set was read from.
func (r *reading) took(set *policy.Set, whole bool) *policy.Set {
	if whole {
		r.stats.ConfigLoadSuccess.Add(1)
		r.metrics.Reloaded(time.Now())
	} else {
		r.stats.ConfigLoadError.Add(1)
		r.metrics.ReloadFailed()
		if r.before == nil && len(set.Policies()) == 0 {
			return nil
		}
	}
	r.before = set
	r.use(set)
	r.log.Info("configuration loaded", "domains", len(set.Policies()), "limits", len(rules(set)))
	return set
}
