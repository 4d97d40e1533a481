// Command bench measures the limiter against a floor: a bare gRPC server that
// answers at once. All targets take turns in one run on one machine, so that
// the shares it prints mean something on a noisy one. It sends load to
// loopback only, and ends what it starts.
//
//	go run ./bench -envoy .tools/envoy -redis "$(command -v redis-server)"
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"
)

type options struct {
	rounds  int
	seconds time.Duration
	callers int
	conns   int
	envoy   string
	redis   string
	json    bool
	floor   string
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "rounds; the median is printed")
	flags.DurationVar(&o.seconds, "time", 2*time.Second, "how long each target is asked in a round")
	flags.IntVar(&o.callers, "callers", 32, "callers at a time")
	flags.IntVar(&o.conns, "conns", 4, "connections that the callers share")
	flags.StringVar(&o.envoy, "envoy", os.Getenv("ENVOY"), "an Envoy binary; without one the ways through Envoy are left out")
	flags.StringVar(&o.redis, "redis", "", "a redis-server or valkey-server binary; without one the Redis store is left out")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.floor, "floor", "", "internal: be the bare server on this address")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.floor != "" {
		return serveFloor(o.floor)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows, err := measure(ctx, o, stderr)
	if err != nil {
		return err
	}
	return report(stdout, rows, o.json)
}

// A row is what one target answered over all rounds.
type row struct {
	Target string    `json:"target"`
	Rates  []float64 `json:"requests_per_second"`
	Shares []float64 `json:"shares_of_floor"`
}

// measure asks every target in turn, round after round.
func measure(ctx context.Context, o options, progress io.Writer) ([]row, error) {
	lab, err := newLab(ctx, o)
	if err != nil {
		return nil, err
	}
	defer lab.close()
	rows := make([]row, len(lab.targets))
	for round := range o.rounds {
		var floor float64
		for i, t := range lab.targets {
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, t.name)
			n, took, err := closedLoop(ctx, o, t.ask)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			rate := float64(n) / took.Seconds()
			if i == 0 {
				floor = rate
			}
			rows[i].Target = t.name
			rows[i].Rates = append(rows[i].Rates, rate)
			rows[i].Shares = append(rows[i].Shares, rate/floor)
		}
	}
	return rows, nil
}

func report(w io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(rows)
	}
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tab, "target\trequests/s\tshare of the floor\tspread")
	for _, r := range rows {
		shares := slices.Sorted(slices.Values(r.Shares))
		fmt.Fprintf(tab, "%s\t%.0f\t%.2f\t%.2f to %.2f\n", r.Target, median(r.Rates), median(shares), shares[0], shares[len(shares)-1])
	}
	return tab.Flush()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
