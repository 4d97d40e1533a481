package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func newExplain(environ []string) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [METHOD] PATH | explain --descriptor KEY=VALUE,...",
		Short: "Say what would become of a request, and why",
		Long: `Say what would become of a request, and why: who it comes from, which rules
apply to it, what is left in their buckets, and the answer that its client
would get. Nothing is spent and nothing is counted.

With --policy the buckets are full, unless --redis-url says where they are; the
settings of serve hold here too, with their variables and their file. With
--server a running server explains by its own policy and buckets: ADDRESS is
its admin address.`,
		Example: `  extauthz explain --policy policy.yaml 'GET /api/x' --peer 10.0.0.5 -H 'x-forwarded-for: 1.2.3.4'
  extauthz explain --policy policy.yaml --descriptor generic_key=login,remote_address=1.2.3.4
  extauthz explain --server 127.0.0.1:9002 /api/x --peer 10.0.0.5 --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := o.request(args)
			if err != nil {
				return usageError{err}
			}
			return o.explain(cmd, environ, request)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// explainSettings are the settings of serve that change an explanation. The
// others are read all the same, since a settings file may have them.
var explainSettings = []string{
	"config", "policy", "domain", "merge-domains", "redis-url", "redis-password-file", "store-deadline", "key-prefix", "hash-key-file",
	"admin-token-file",
}

func (o *explainOptions) addFlags(flags *pflag.FlagSet) {
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(explainSettings, f.Name) })
	flags.Lookup("admin-token-file").Usage = "with --server, show it the token in this `FILE`"
	flags.StringVar(&o.server, "server", "", "have the server at this admin `ADDRESS` explain, host:port or unix:path")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	o.tls.addFlags(flags)
	o.addRequestFlags(flags)
}

func (o *explainOptions) explain(cmd *cobra.Command, environ []string, r explain.Request) error {
	if o.server != "" && (cmd.Flags().Changed("policy") || cmd.Flags().Changed("redis-url")) {
		return usageError{errors.New("found --server beside --policy or --redis-url, want one of the two: a server explains by its own")}
	}
	domain := cmd.Flags().Lookup("domain").Value.String()
	var report explain.Report
	var err error
	if o.server != "" {
		r.Domain = domain
		report, err = o.ask(cmd, environ, r)
	} else {
		report, err = explainHere(cmd, environ, r)
	}
	var wrong explain.RequestError
	if errors.As(err, &wrong) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return o.write(cmd.OutOrStdout(), report)
}

func (o *explainOptions) write(w io.Writer, report explain.Report) error {
	write := report.Text
	if o.json {
		write = report.JSON
	}
	if err := write(w); err != nil {
		return fmt.Errorf("write the explanation: %w", err)
	}
	return nil
}

// ask has the server that was named explain.
func (o *explainOptions) ask(cmd *cobra.Command, environ []string, r explain.Request) (explain.Report, error) {
	s := explain.Server{Addr: o.server}
	var err error
	if s.TLS, err = o.tls.config(); err != nil {
		return explain.Report{}, usageError{err}
	}
	file := cmp.Or(cmd.Flags().Lookup("admin-token-file").Value.String(), variable(environ, "SLUICE_ADMIN_TOKEN_FILE"))
	if file != "" {
		token, err := config.Admin{AdminTokenFile: file}.AdminToken()
		if err != nil {
			return explain.Report{}, err
		}
		s.Token = string(token)
	}
	return explain.Ask(cmd.Context(), s, r)
}

// explainHere explains by the settings that serve would have.
func explainHere(cmd *cobra.Command, environ []string, r explain.Request) (explain.Report, error) {
	settings, _, err := loadSettings(cmd, environ)
	if err != nil {
		return explain.Report{}, err
	}
	set, found := policyfile.Load(policyOptions(settings))
	if err := found.Err(); err != nil {
		return explain.Report{}, fmt.Errorf("the policy cannot be used:\n%w", err)
	}
	// Nobody waits but who asked, and the connection is still to be made.
	settings.StoreDeadline = max(settings.StoreDeadline, time.Second)
	log := slog.New(slog.DiscardHandler)
	stores, err := openStores(settings, telemetry.New(telemetry.Options{}), log)
	if err != nil {
		return explain.Report{}, err
	}
	defer stores.close(log)
	r.Domain = settings.Domain
	return explain.Explain(cmd.Context(), explain.Options{Set: set, Store: stores.main, Local: stores.local}, r)
}

// explain returns what the admin port explains by.
func (p parts) explain() explain.Options {
	return explain.Options{Set: p.policies.Set(), Store: p.stores.main, Local: p.stores.local}
}
