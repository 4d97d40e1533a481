// Command scale says what a fleet takes that answers a million requests a
// second: what one request costs is measured here, the rest is arithmetic and a
// simulation (bench/scale/sim) that comes out the same for the same seed.
//
//	go run ./bench/scale -seed 1 -write docs/scale.md
//	go run ./bench/scale -rate 200000 -replicas 10 -arithmetic
//	go run ./bench/scale -measure bench/scale/measured.json
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// measuredText is what a run with -measure found. The page and the simulation
// are made of it, so that they need no quiet machine.
//
//go:embed measured.json
var measuredText []byte

const fullRate = 1e6

type options struct {
	seed     uint64
	rate     float64
	time     time.Duration
	envoys   int
	replicas int
	nodes    int
	tenants  int
	zipf     float64
	use      float64

	write      string
	json       bool
	arithmetic bool

	measure string
	rounds  int
	each    time.Duration
	crowd   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(progress)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("found the argument %q, want flags alone: what comes after it would not be heeded", flags.Arg(0))
	}
	if o.rate <= 0 || o.replicas <= 0 || o.nodes < 0 || o.use <= 0 || o.use > 1 {
		return fmt.Errorf("-rate is %v, -replicas %d, -nodes %d, -use %v; want them above 0, -nodes 0 or more, -use at most 1", o.rate, o.replicas, o.nodes, o.use)
	}
	if o.measure != "" {
		if o.rounds < 1 || o.each <= 0 || o.crowd < 1 {
			return fmt.Errorf("-rounds is %d, -each %v, -crowd %d; want all above 0", o.rounds, o.each, o.crowd)
		}
		return o.remeasure(ctx, progress)
	}
	var m measured
	if err := json.Unmarshal(measuredText, &m); err != nil {
		return fmt.Errorf("read measured.json: %w", err)
	}
	p := page{o: o, m: m, e: m.estimate(o)}
	if o.arithmetic {
		return p.arithmetic(stdout)
	}
	return p.simulate(stdout, progress)
}

func (o *options) addFlags(flags *flag.FlagSet) {
	flags.Uint64Var(&o.seed, "seed", 1, "of the simulation")
	flags.Float64Var(&o.rate, "rate", fullRate, "requests a second")
	flags.DurationVar(&o.time, "time", 5*time.Second, "how long the simulated fleet is asked")
	flags.IntVar(&o.envoys, "envoys", 1000, "Envoys")
	flags.IntVar(&o.replicas, "replicas", 50, "replicas of extauthz")
	flags.IntVar(&o.nodes, "nodes", 0, "nodes of the Redis Cluster; 0 is as many as the arithmetic says")
	flags.IntVar(&o.tenants, "tenants", 1_000_000, "tenants, each with a bucket")
	flags.Float64Var(&o.zipf, "zipf", 1.1, "how uneven the tenants are: the k-th asks as 1/k to this power")
	flags.Float64Var(&o.use, "use", 0.6, "the share of a core that is to be used")
	flags.StringVar(&o.write, "write", "", "write the page into this file, and its drawings beside it")
	flags.BoolVar(&o.json, "json", false, "print what the simulation found as JSON")
	flags.BoolVar(&o.arithmetic, "arithmetic", false, "print the arithmetic alone")
	flags.StringVar(&o.measure, "measure", "", "measure the costs on this machine, which takes some minutes, and write them into this file: bench/scale/measured.json is built in")
	flags.IntVar(&o.rounds, "rounds", 5, "with -measure: rounds, of which the median is taken")
	flags.IntVar(&o.crowd, "crowd", 10_000_000, "with -measure: keys of others in a Redis that is full of them")
	flags.DurationVar(&o.each, "each", 2*time.Second, "with -measure: how long each thing is measured in a round")
}

// remeasure measures, and writes that where the program is built from it.
func (o options) remeasure(ctx context.Context, progress io.Writer) error {
	var before measured
	if err := json.Unmarshal(measuredText, &before); err != nil {
		return fmt.Errorf("read measured.json: %w", err)
	}
	m, err := o.measureAll(ctx, progress)
	if err != nil {
		return err
	}
	m.Flat = before.Flat // until that is measured too
	if err := m.keep(o.measure); err != nil {
		return err
	}
	if m.Flat, err = flats(ctx, o.rounds, max(o.each, leastFlat), progress); err != nil {
		return err
	}
	return m.keep(o.measure)
}

// A page is what is said, and of what.
type page struct {
	o    options
	m    measured
	e    estimate
	runs []sim.Report // the fleet, in its variants
	hot  []sim.Report // one key, ever hotter
}

func (p page) simulate(stdout, progress io.Writer) (err error) {
	if p.runs, err = p.o.runs(p.e, progress); err != nil {
		return err
	}
	if p.hot, err = p.o.hot(p.e, progress); err != nil {
		return err
	}
	if p.o.write != "" {
		if err := p.save(p.o.write); err != nil {
			return err
		}
	}
	if p.o.json {
		return json.NewEncoder(stdout).Encode(map[string][]sim.Report{"runs": p.runs, "one_key": p.hot})
	}
	_, err = io.WriteString(stdout, p.simulated())
	return err
}

// save writes the page, and its drawings beside it.
func (p page) save(path string) error {
	return sheet.Save(map[string]string{
		path: p.markdown(),
		filepath.Join(filepath.Dir(path), latencyDrawing): p.drawLatency(),
		filepath.Join(filepath.Dir(path), nodesDrawing):   p.drawNodes(),
	})
}
