// Command bench measures the limiter against a floor: a bare gRPC server that
// answers at once. Everything takes turns in one run on one machine, so that
// the shares it prints mean something on a noisy one. It sends load to
// loopback only, and ends what it starts.
//
//	go run ./bench -redis "$(command -v redis-server)" -write docs/performance.md
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/bench/sheet"
	"github.com/sluice-mesh/sluice/internal/bench"
)

type options struct {
	rounds  int
	time    time.Duration
	callers int
	conns   int
	only    string
	envoy   string
	redis   string
	json    bool
	write   string
	loaded  int

	floor, charge, policy string
}

// connections returns how many the callers share. HTTP/1.1 carries one request
// at a time on each.
func (o options) connections(r bench.Request) int {
	if _, ok := r.(bench.HTTP); ok {
		return o.callers
	}
	return o.conns
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("found the argument %q, want flags alone: what comes after it would not be heeded", flags.Arg(0))
	}
	if o.rounds < 1 || o.time <= 0 || o.callers < 1 || o.conns < 1 || o.loaded < 1 {
		return fmt.Errorf("-rounds is %d, -time %v, -callers %d, -conns %d, -loaded %d; want all above 0", o.rounds, o.time, o.callers, o.conns, o.loaded)
	}
	switch {
	case o.policy != "":
		return serveLoaded(o, stdout)
	case o.floor != "":
		return serveFloor(o.floor, o.charge, stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := results(ctx, o, stderr)
	if err != nil {
		return err
	}
	return found.report(stdout, o)
}

func (o *options) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&o.rounds, "rounds", 11, "rounds; the median is printed")
	flags.DurationVar(&o.time, "time", 500*time.Millisecond, "how long each server is asked in a round, twice a work")
	flags.IntVar(&o.callers, "callers", 32, "callers at a time")
	flags.IntVar(&o.conns, "conns", 4, "connections that the callers share")
	flags.StringVar(&o.only, "only", "", "a regular expression: leave out works whose names it does not match")
	flags.IntVar(&o.loaded, "loaded", 10_000_000, "buckets in the memory that has many")
	flags.StringVar(&o.envoy, "envoy", os.Getenv("ENVOY"), "an Envoy binary; without one the ways through Envoy are left out")
	flags.StringVar(&o.redis, "redis", "", "a redis-server or valkey-server binary; without one the Redis store is left out")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.write, "write", "", "write the results as Markdown into this file too, and a drawing of them beside it")
	flags.StringVar(&o.floor, "floor", "", "internal: be the bare server on this address")
	flags.StringVar(&o.charge, "charge", "", "internal: with -floor, take from a bucket in the Redis on this address in each request")
	flags.StringVar(&o.policy, "policy", "", "internal: be a server with -loaded buckets and this policy instead")
}

func results(ctx context.Context, o options, progress io.Writer) (found, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return found{}, err
	}
	all := slices.DeleteFunc(works(o), func(w work) bool { return !only.MatchString(w.name) })
	if len(all) == 0 {
		return found{}, fmt.Errorf("-only %q matches no work; those on Redis want -redis, those through Envoy -envoy", o.only)
	}
	lab, err := newLab(ctx, o)
	if err != nil {
		return found{}, err
	}
	defer lab.close()
	rows, err := measure(ctx, lab, all, progress)
	if err != nil {
		return found{}, err
	}
	waits, err := alone(ctx, lab, progress)
	if err != nil {
		return found{}, err
	}
	steps, err := steps(lab.mainPolicy())
	return found{rows, waits, steps}, err
}

// found is what was measured.
type found struct {
	Works []row  `json:"works"`
	Alone []wait `json:"one_caller"`
	Steps []step `json:"steps"`
}

func (f found) report(w io.Writer, o options) error {
	if o.write != "" {
		if err := f.write(o); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(w).Encode(f)
	}
	return f.text(w)
}

// write writes the page and the drawing beside it.
func (f found) write(o options) error {
	return sheet.Save(map[string]string{o.write: f.markdown(o), drawnBeside(o.write): f.drawing()})
}
