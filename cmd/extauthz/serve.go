package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/telemetry"
)

func newServe(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer Envoy by a policy, until told to end",
		Long: `Answer Envoy by a policy, until told to end.

A setting is taken from its flag, else from its variable (--store-deadline is
SLUICE_STORE_DEADLINE), else from the file that --config or SLUICE_CONFIG names
(store-deadline: 25ms), else it has its default. A list in a variable is divided
by commas.

A policy that changes is read again, and so it is on SIGHUP. One with faults is
not used: the last good one stays. SIGTERM and SIGINT drain, a second one ends
at once.`,
		Example: `  extauthz serve --policy policy.yaml
  extauthz serve --policy policies/ --redis-url redis://127.0.0.1:6379 --grpc-addr :9001`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, warnings, err := loadSettings(cmd, environ)
			if err != nil {
				return err
			}
			log := newLogger(cmd.ErrOrStderr(), settings)
			for _, w := range warnings {
				log.Warn("the settings have a doubtful place", "detail", w)
			}
			defer headroom(environ)()
			return serve(cmd.Context(), settings, log)
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

// loadSettings returns what flags, variables and the settings file say together,
// and warnings.
func loadSettings(cmd *cobra.Command, environ []string) (config.Settings, []string, error) {
	settings, warnings, err := config.Load(cmd.Flags(), environ)
	var faults config.Faults
	if errors.As(err, &faults) {
		err = usageError{fmt.Errorf("these settings cannot be used:\n%w", err)}
	}
	return settings, warnings, err
}

// serve answers until ctx ends, and drains.
func serve(ctx context.Context, settings config.Settings, log *slog.Logger) error {
	seen := newObservers(log)
	policies, err := loading{settings, seen}.start()
	if err != nil {
		return err
	}
	stores, err := openStores(settings, seen.metrics, log)
	if err != nil {
		return err
	}
	defer stores.close(log)
	services, err := newServices(policies, stores, seen)
	if err != nil {
		return err
	}
	checks, err := newHTTPCheck(settings, policies, stores, seen)
	if err != nil {
		return err
	}
	secured, err := secure(settings, seen.metrics, log)
	if err != nil {
		return err
	}
	ports, err := listen(settings, settingNames)
	if err != nil {
		return err
	}
	stores.look(ctx, log)
	return serveAll(ctx, parts{settings, policies, stores, services, checks, secured, ports, seen.metrics, log})
}

// parts are all that serves.
type parts struct {
	settings config.Settings
	policies *server.Policies
	stores   *stores
	services []server.Service
	checks   http.Handler
	tls      securedPorts
	ports    ports
	metrics  *telemetry.Metrics
	log      *slog.Logger
}

// serveAll runs the ports and the reload until ctx ends or a port fails.
func serveAll(ctx context.Context, p parts) error {
	err := serveUntil(ctx, func(ctx, after context.Context, s *sides) {
		s.beside.run(p.ports.admin, func(l net.Listener) error { return server.ServeHTTP(after, l, p.adminOptions(ctx)) })
		s.beside.wait.Go(func() { p.policies.Run(ctx, s.hangups) })
		p.tls.follow(ctx, &s.beside.wait)
		grpc := p.newServer(ctx)
		s.beside.wait.Go(func() { p.followHealth(ctx, grpc) })
		p.logReady()
		s.doors.run(p.ports.http, func(l net.Listener) error { return server.ServeHTTP(ctx, l, p.httpOptions()) })
		s.doors.run(p.ports.grpc, func(l net.Listener) error { return grpc.Run(ctx, l) })
	})
	if err == nil {
		p.log.Info("stopped")
	}
	return err
}

func (p parts) newServer(ctx context.Context) *server.Server {
	o := grpcOptions(p.settings, &p.tls.grpc)
	o.Services, o.Reflection = p.services, p.settings.Reflection
	o.Ready = func(asked context.Context) bool { return p.ready(asked, ctx.Err() != nil).Ready }
	o.Log, o.Panicked = p.log, p.metrics.Panicked
	return server.New(o)
}

// logReady tells the addresses that were found, for who asked for port 0.
func (p parts) logReady() {
	p.log.Info("ready", "grpc", address(p.ports.grpc), "http", address(p.ports.http), "admin", address(p.ports.admin),
		"store", p.settings.Store, "rules", len(rules(p.policies.Set())), "version", thisBuild().version)
}
