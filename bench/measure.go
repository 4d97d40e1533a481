package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// A row is what one work came to, a value for each round.
type row struct {
	Work       string `json:"work"`
	Rates      series `json:"requests_per_second"`
	Shares     series `json:"shares"`      // of the base's rate
	CPU        series `json:"cpu_us"`      // a request
	CPUShares  series `json:"cpu_shares"`  // of the base's
	BothShares series `json:"both_shares"` // of the CPU that the base and its caller use together
	Goal       goal   `json:"-"`
}

// measure does every work once a round: its base first, and it right after, so
// that both meet the same noise.
func measure(ctx context.Context, l *lab, all []work, progress io.Writer) ([]row, error) {
	rows := make([]row, len(all))
	for i, w := range all {
		rows[i].Work, rows[i].Goal = w.name, w.goal
	}
	for round := range l.o.rounds {
		for i, w := range all {
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, l.o.rounds, w.name)
			base, err := l.run(ctx, w.base, l.o.callers)
			if err != nil {
				return nil, err
			}
			of, err := l.run(ctx, w.of, l.o.callers)
			if err != nil {
				return nil, err
			}
			rows[i].add(of, base)
		}
	}
	return rows, nil
}

func (r *row) add(of, base outcome) {
	r.Rates = append(r.Rates, of.PerSecond)
	r.Shares = append(r.Shares, of.PerSecond/base.PerSecond)
	r.CPU = append(r.CPU, of.server)
	r.CPUShares = append(r.CPUShares, of.server/base.server)
	r.BothShares = append(r.BothShares, (base.server+base.caller)/(of.server+of.caller))
}

// An outcome is a report, and what a request costs the servers and the callers,
// in µs.
type outcome struct {
	bench.Report
	server, caller float64
}

// patience is how long a request waits: a machine may be busy with other things.
const patience = 10 * time.Second

// run asks s for the time of one turn. An answer that is not the wanted one is
// an error: whatever it measures, it is not this.
func (l *lab) run(ctx context.Context, s side, callers int) (outcome, error) {
	client, err := l.client(s)
	if err != nil {
		return outcome{}, err
	}
	pids := append([]int{os.Getpid()}, l.processes[s.server].pids...)
	report, err := bench.Run(ctx, client, bench.Options{
		Callers: callers, WarmUp: l.o.time / 10, Duration: l.o.time, Timeout: patience, Keys: s.keys, PIDs: pids,
	})
	if err != nil {
		return outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	if report.Answers[s.want] != report.Requests {
		return outcome{}, fmt.Errorf("the server %q answers %v, want %s always; %s", s.server, report.Answers, s.want, report.FirstError)
	}
	o := outcome{Report: report, caller: report.CPU[0].PerRequest}
	for _, c := range report.CPU[1:] {
		o.server += c.PerRequest
	}
	return o, nil
}

// A wait is the median latency of one caller on Redis, in µs, a value for each
// round, beside the floor's, an EVALSHA's, and that of the floor with an EVALSHA
// in it.
type wait struct {
	Work         string `json:"work"`
	P50          series `json:"p50_us"`
	Floor        series `json:"floor_p50_us"`
	EVALSHA      series `json:"evalsha_p50_us"`
	Ratios       series `json:"ratios"` // over the sum of these two
	Charging     series `json:"charging_p50_us"`
	OverCharging series `json:"over_charging"`
}

// waitGoal is what one caller should wait at most, as a share of the sum of what
// the parts take by themselves.
const waitGoal = 1.15

// alone lets one caller ask. There is nothing to measure without a Redis.
func alone(ctx context.Context, l *lab, progress io.Writer) ([]wait, error) {
	if l.o.redis == "" {
		return nil, nil
	}
	script, err := dialRaw(l.redis.Addr)
	if err != nil {
		return nil, err
	}
	defer script.Close()
	waits := []wait{{Work: "RLS, Redis, 100,000 keys"}, {Work: "ext_authz, Redis, 20 headers, 50 rules"}}
	requests := []bench.Request{user, page}
	for round := range l.o.rounds {
		for i := range waits {
			fmt.Fprintf(progress, "round %d of %d: one caller, %s\n", round+1, l.o.rounds, waits[i].Work)
			if err := waits[i].measure(ctx, l, requests[i], script); err != nil {
				return nil, err
			}
		}
	}
	return waits, nil
}

func (w *wait) measure(ctx context.Context, l *lab, r bench.Request, script *raw) error {
	var p50 [3]float64
	for i, server := range []string{floorServer, chargingServer, redisServer} {
		o, err := l.run(ctx, side{server, r, manyKeys, bench.OK}, 1)
		if err != nil {
			return err
		}
		p50[i] = o.Latency.P50
	}
	evalsha, err := script.p50(l.o.time)
	if err != nil {
		return err
	}
	floor, charging, of := p50[0], p50[1], p50[2]
	w.P50, w.Floor, w.EVALSHA, w.Charging = append(w.P50, of), append(w.Floor, floor), append(w.EVALSHA, evalsha), append(w.Charging, charging)
	w.Ratios, w.OverCharging = append(w.Ratios, of/(floor+evalsha)), append(w.OverCharging, of/charging)
	return nil
}
