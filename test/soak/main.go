// Command soak keeps a real extauthz on a real Redis under half of the load
// that the machine bears, over both gRPC services, for long: its memory,
// goroutines and files must not grow, and no request may go unanswered. Its
// policy is read again every ten seconds and its connections last a minute, so
// that what either leaves behind adds up. All of it is on loopback, and ends.
//
//	go run ./test/soak -time 1h -write docs/reliability.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

type options struct {
	time     time.Duration
	probe    time.Duration
	deadline time.Duration
	write    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.time, "time", time.Hour, "how long")
	flags.DurationVar(&o.probe, "probe", 5*time.Second, "how long to ask as fast as it answers, first")
	flags.DurationVar(&o.deadline, "deadline", time.Second, "the store's deadline")
	flags.StringVar(&o.write, "write", "", "write the summary into this page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := newSystem(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.soak(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(out, r.table())
	if err := r.verdict(); err != nil {
		return err
	}
	if o.write == "" {
		return nil
	}
	return writeInto(o.write, r.table())
}
