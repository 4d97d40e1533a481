package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-mesh/sluice/internal/bench"
)

func newBench() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench ext_authz|rls|http ADDRESS",
		Short: "Ask a server as Envoy does, and say how fast it answers",
		Long: `Ask a server as Envoy does, and say how fast it answers. Any server will do that
speaks ext_authz, Envoy's rate limit protocol, or HTTP: a check over HTTP, or a
proxy itself. ADDRESS is host:port or, for the first two, unix:PATH.

Without --rate each caller asks again as soon as it has its answer. With --rate
requests begin when they are due, and a latency counts from then: a server that
falls behind shows it. All that are due within --duration are asked, so that it
then takes longer.

In --path, --host, and the values of --header and --descriptor, {key} is the
number of a key, from 0 to --keys less 1, and {n} that of the request. The exit
code is 1 if a request had no answer.`,
		Example: `  extauthz bench rls 127.0.0.1:9001 --domain edge --descriptor 'user={key}' --keys 100000 --callers 32 --connections 4
  extauthz bench ext_authz 127.0.0.1:9001 --path /api/x --peer 10.0.0.0/8 --keys 1000000 --zipf 1.1 --rate 5000 --callers 32 --json
  extauthz bench http 127.0.0.1:10000 --path '/hello?{n}' --requests 100 --all-ok`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := o.request(args, cmd.Flags())
			if err != nil {
				return usageError{err}
			}
			if err := o.run.Check(); err != nil {
				return usageError{err}
			}
			o.target.Addr = args[1]
			return o.bench(cmd, request)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *benchOptions) bench(cmd *cobra.Command, request bench.Request) error {
	var err error
	if o.target.TLS, err = o.tls.config(); err != nil {
		return usageError{err}
	}
	client, err := bench.Dial(o.target, request)
	if err != nil {
		return usageError{err}
	}
	if o.progress || isTerminal(cmd.ErrOrStderr()) {
		o.run.Progress = cmd.ErrOrStderr()
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt) // ends the run, not the report
	defer stop()
	report, err := bench.Run(ctx, client, o.run)
	if err = errors.Join(err, client.Close()); err != nil {
		return err
	}
	if err := o.write(cmd.OutOrStdout(), report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return o.verdict(report)
}

func (o *benchOptions) write(w io.Writer, r bench.Report) error {
	if !o.json {
		return r.Text(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// verdict is an error if r is not what was wanted.
func (o *benchOptions) verdict(r bench.Report) error {
	switch {
	case r.Requests == 0:
		return errors.New("no request ended")
	case r.Unanswered > 0:
		return fmt.Errorf("%d of %d requests had no answer: %s", r.Unanswered, r.Requests, r.FirstError)
	case o.allOK && r.Answers[bench.OK] < r.Requests:
		return fmt.Errorf("%d of %d requests were not OK", r.Requests-r.Answers[bench.OK], r.Requests)
	default:
		return nil
	}
}

// isTerminal says that somebody may be reading w as it is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !strings.HasSuffix(f.Name(), "null")
}
