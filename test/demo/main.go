// Demo runs Sluice as a newcomer can try it: a real Envoy on
// envoy/edge-extauthz.yaml, which asks extauthz with envoy/policy.yaml, in
// front of a small upstream. It says what to try, and runs until it is told to
// end, or until one of its parts ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	flags.StringVar(&o.store, "store", "memory", "where the buckets are kept: `memory or redis`")
	flags.StringVar(&o.extauthz, "extauthz", "bin/extauthz", "the extauthz to run")
	flags.DurationVar(&o.patience, "patience", 0, "wait this `long` where Envoy and extauthz would wait less: for a machine that is very busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.store != "memory" && o.store != "redis" {
		return fmt.Errorf("-store %s: want memory or redis", o.store)
	}
	d, err := start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprint(out, d.welcome())
	err = d.wait(ctx, out)
	fmt.Fprintln(out, "\nending")
	return errors.Join(err, d.stop())
}

// A try is something to do, and what it will answer.
type try struct{ command, promise string }

// tries are for envoy/policy.yaml, one after the other.
func tries(url string) []try {
	return []try{
		{"curl -i " + url + "/hello", "200, and the header x-ratelimit-remaining: 4"},
		{
			"curl -s -o /dev/null -w '%{http_code} ' '" + url + "/hello?[1-6]'",
			"200 200 200 200 429 429   (within 10 seconds of the first)",
		},
		{"curl -i " + url + "/hello", "429, and the header retry-after: the seconds that are left"},
	}
}

// welcome says what runs and what to try.
func (d *demo) welcome() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nEnvoy listens on %s and asks extauthz, which keeps its buckets in %s.\n", d.url(), d.keptIn())
	fmt.Fprintf(&b, "Running: %s.\n", strings.Join(d.running(), ", "))
	fmt.Fprintf(&b, "The policy is envoy/policy.yaml. Edit it meanwhile: what you save holds within a second.\n\nTry, in another terminal:\n")
	for _, t := range tries(d.url()) {
		fmt.Fprintf(&b, "\n  %s\n      %s\n", t.command, t.promise)
	}
	fmt.Fprintf(&b, "\nMetrics: curl http://%s/metrics\nCtrl-C ends all of it.\n", d.extauthz.Admin)
	return b.String()
}
