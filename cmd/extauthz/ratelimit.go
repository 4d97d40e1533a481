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
	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/statsd"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

func newRatelimit(environ []string) *cobra.Command {
	return &cobra.Command{
		Use:   "ratelimit",
		Short: "Take the place of envoyproxy/ratelimit: its variables, ports and files",
		Long: `Take the place of envoyproxy/ratelimit, until told to end.

It has no flags: all settings are the variables of envoyproxy/ratelimit, with
their defaults. A variable that is read and not needed is logged at info, one
that looks like one and is not known as a warning. Without REDIS_URL the buckets
are in memory. SLUICE_ON_ERROR is local, allow or deny: what becomes of requests
while Redis is away. SLUICE_ADMIN_HOSTS are names by which the debug port may be
asked, with commas between, beside localhost and addresses; * is any.

Limits are read from all files in RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/
RUNTIME_APPDIRECTORY, or over xDS with CONFIG_TYPE=GRPC_XDS_SOTW. A program that
is called ratelimit is this command.`,
		Example: `  RUNTIME_ROOT=/etc/ratelimit REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 extauthz ratelimit
  RUNTIME_ROOT=. RUNTIME_APPDIRECTORY=config LOG_LEVEL=info USE_STATSD=false extauthz ratelimit`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRatelimit(cmd, environ) },
	}
}

func runRatelimit(cmd *cobra.Command, environ []string) error {
	s, notes, err := ratelimit.Load(environ)
	if err != nil {
		return usageError{fmt.Errorf("these variables cannot be used:\n%w", err)}
	}
	settings, err := ratelimitSettings(s)
	if err != nil {
		return err
	}
	log := newLogger(cmd.ErrOrStderr(), settings)
	for _, n := range notes {
		level := slog.LevelInfo
		if n.Warning {
			level = slog.LevelWarn
		}
		log.Log(cmd.Context(), level, "a variable is not used as it is", "variable", n.Variable, "detail", n.Text)
	}
	defer headroom(environ)()
	return serveRatelimit(cmd.Context(), s, settings, log)
}

// ratelimitSettings are s in our own terms.
func ratelimitSettings(s ratelimit.Settings) (config.Settings, error) {
	c := config.Default()
	c.LogLevel, c.LogFormat = s.LogLevel, s.LogFormat
	c.GRPCAddr, c.HTTPAddr, c.AdminAddr = s.Addresses()
	c.MaxConnectionAge, c.Reflection = s.MaxConnectionAge, false
	if s.LocalCache != nil {
		c.DenyCache = config.Bytes(*s.LocalCache)
	}
	c.KeyPrefix = s.KeyPrefix + c.KeyPrefix
	if s.ServerTLS {
		c.GRPCTLSCert, c.GRPCTLSKey, c.GRPCTLSClientCA = s.ServerTLSCert, s.ServerTLSKey, s.ClientTLSCACert
		if s.ClientTLSSAN != "" {
			c.GRPCTLSClientSAN = []string{s.ClientTLSSAN}
		}
	}
	c.Store = config.Memory
	if s.Redis == nil {
		return c, nil
	}
	c.Store, c.RedisURL, c.RedisPoolSize = config.Redis, s.Redis.URL, s.Redis.PoolSize
	c.RedisUsername, c.RedisPassword = s.Redis.Username, s.Redis.Password
	c.RedisSentinelUsername, c.RedisSentinelPassword = s.Redis.SentinelUsername, s.Redis.SentinelPassword
	if s.Redis.Timeout > 0 {
		c.StoreDeadline = s.Redis.Timeout
	}
	var err error
	c.RedisTLS, err = ratelimitRedisTLS(s.Redis)
	return c, err
}

// A ratelimitServer is all that serves in the place of envoyproxy/ratelimit.
type ratelimitServer struct {
	said     ratelimit.Settings
	settings config.Settings
	limits   limits
	stores   *stores
	door     *rls.Server
	stats    *ratelimit.Stats
	named    *telemetry.Ratelimit
	sender   *statsd.Sender // nil without statsd
	seen     observers
	tls      securedPorts
	ports    ports
	scrape   net.Listener // nil without Prometheus
	log      *slog.Logger
}

// serveRatelimit answers until ctx ends, and drains.
func serveRatelimit(ctx context.Context, s ratelimit.Settings, settings config.Settings, log *slog.Logger) error {
	r := &ratelimitServer{said: s, settings: settings, seen: newObservers(log), log: log}
	r.stats = &ratelimit.Stats{NearRatio: s.NearLimitRatio, Shadow: s.Shadow}
	r.named = telemetry.NewRatelimit(r.stats)
	r.stats.Took = r.named.Took
	err := r.newSender()
	if err != nil {
		return err
	}
	if r.limits, err = newLimits(s, r.stats, r.seen); err != nil {
		return err
	}
	if r.stores, err = openStores(settings, r.seen.metrics, log); err != nil {
		return err
	}
	defer r.stores.close(log)
	if r.stores.redis != nil {
		r.stats.Connections = r.stores.redis.Connections
	}
	if r.door, err = r.newDoor(); err != nil {
		return err
	}
	if r.tls, err = secure(settings, r.seen.metrics, log); err != nil {
		return err
	}
	if err := r.listen(); err != nil {
		return err
	}
	r.stores.look(ctx, log)
	return r.serve(ctx)
}

func (r *ratelimitServer) newDoor() (*rls.Server, error) {
	ours := r.seen.decided(telemetry.RLS)
	l, err := limiter.New(limiter.Options{
		Store: r.stores.main, Local: r.stores.local, Log: r.log,
		Observe: func(ctx context.Context, d limiter.Decision) {
			ours(ctx, d)
			r.stats.Observe(ctx, d)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a limiter: %w", err)
	}
	m := &rls.Manner{Metadata: r.said.Metadata, Shadow: r.said.Shadow, Quota: r.said.Quota}
	if r.said.Headers {
		m.Headers = &rls.HeaderNames{Limit: r.said.LimitHeader, Remaining: r.said.Remaining, Reset: r.said.Reset}
	}
	door, err := rls.New(rls.Options{Policies: r.limits.set, Limiter: l, Manner: m, Asked: r.stats.Asked, Strayed: r.stats.Strayed})
	if err != nil {
		return nil, fmt.Errorf("make the rate limit door: %w", err)
	}
	return door, nil
}

func (r *ratelimitServer) listen() error {
	names := portNames{"GRPC_PORT", "PORT", "DEBUG_PORT"}
	if r.said.GRPCUDS != "" {
		names.grpc = "GRPC_UDS"
	}
	var err error
	if r.ports, err = listen(r.settings, names); err != nil || !r.said.Prometheus {
		return err
	}
	if r.scrape, err = server.Listen(r.said.PrometheusAddr); err != nil {
		return errors.Join(fmt.Errorf("PROMETHEUS_ADDR %s: %w", r.said.PrometheusAddr, err), r.ports.close())
	}
	return nil
}

// serve runs the ports until ctx ends or one fails.
func (r *ratelimitServer) serve(ctx context.Context) error {
	return serveUntil(ctx, func(ctx, after context.Context, s *sides) {
		plain := func(h http.Handler) func(net.Listener) error {
			return func(l net.Listener) error { return server.ServeHTTP(after, l, besideOptions(h, r.seen.metrics, r.log)) }
		}
		s.beside.run(r.ports.admin, plain(r.debug()))
		s.beside.run(r.ports.http, plain(r.http(ctx)))
		s.beside.run(r.scrape, plain(r.metrics()))
		s.beside.wait.Go(func() { r.limits.run(ctx, s.hangups) })
		if r.sender != nil {
			s.beside.wait.Go(func() { r.sender.Run(after) })
		}
		r.tls.follow(ctx, &s.beside.wait)
		r.log.Info("ready", "grpc", address(r.ports.grpc), "http", address(r.ports.http), "debug", address(r.ports.admin),
			"prometheus", address(r.scrape), "store", r.settings.Store, "version", thisBuild().version)
		s.doors.run(r.ports.grpc, func(l net.Listener) error { return r.newServer(ctx).Run(ctx, l) })
	})
}

// healthName is what envoyproxy/ratelimit's health is asked for by.
const healthName = "ratelimit"

func (r *ratelimitServer) newServer(ctx context.Context) *server.Server {
	o := grpcOptions(r.settings, &r.tls.grpc)
	o.Services = []server.Service{server.RateLimit(r.door), {Name: healthName, Register: nothing}}
	o.Ready = func(asked context.Context) bool { return r.healthy(asked, ctx.Err() != nil) == nil }
	o.AgeGrace = r.said.ConnectionAgeGrace
	o.Log, o.Panicked = r.log, r.seen.metrics.Panicked
	return server.New(o)
}
