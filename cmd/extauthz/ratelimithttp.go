package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-mesh/sluice/internal/admin"
	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/internal/statsd"
)

// nothing registers no service.
func nothing(grpc.ServiceRegistrar) {}

// http is what HOST:PORT serves.
func (r *ratelimitServer) http(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, req *http.Request) {
		if err := r.healthy(req.Context(), ctx.Err() != nil); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "OK")
	})
	mux.Handle("/json", admin.SameSite(r.door))
	return mux
}

// healthy says why requests should not be sent here, nil if they may.
func (r *ratelimitServer) healthy(ctx context.Context, draining bool) error {
	switch {
	case draining:
		return errors.New("told to end")
	case r.said.HealthyWhenLoaded && r.limits.set() == nil:
		return errors.New("no configuration is loaded")
	case r.said.HealthByRedis:
		ctx, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if err := r.stores.ping(ctx); err != nil {
			return errors.New("redis does not answer")
		}
	}
	return nil
}

// debug is what DEBUG_HOST:DEBUG_PORT serves.
func (r *ratelimitServer) debug() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rlconfig", r.config)
	mux.HandleFunc("GET /stats", r.statistics)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "/rlconfig       the limits in use\n/stats          statistics\n/metrics        our own, for Prometheus\n/debug/pprof/   profiles\n")
	})
	o := admin.Options{
		Ready:   func(ctx context.Context) admin.Readiness { return admin.Readiness{Ready: r.healthy(ctx, false) == nil} },
		Metrics: r.seen.metrics.Handler(), Pprof: true, Hosts: r.said.AdminHosts, HostsSetting: "SLUICE_ADMIN_HOSTS",
	}
	mux.Handle("/", admin.Handler(o))
	return admin.Guard(o, mux)
}

// config prints a line for each limit in use.
func (r *ratelimitServer) config(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, p := range r.limits.set().Policies() {
		for _, line := range p.Leaves() {
			fmt.Fprintln(w, line)
		}
	}
}

func (r *ratelimitServer) statistics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	counters := r.stats.Counters()
	lines := make([]string, 0, len(counters))
	for name, n := range counters {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, n))
	}
	for name, n := range r.stats.Gauges() {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, n))
	}
	slices.Sort(lines)
	fmt.Fprint(w, strings.Join(lines, ""))
}

// metrics is what PROMETHEUS_ADDR serves.
func (r *ratelimitServer) metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+r.said.PrometheusPath, r.named.Handler())
	return mux
}

// newSender makes what sends statistics to statsd, if that is asked for.
func (r *ratelimitServer) newSender() error {
	if !r.said.Statsd {
		return nil
	}
	s, err := statsd.New(statsd.Options{
		Addr: net.JoinHostPort(r.said.StatsdHost, strconv.Itoa(r.said.StatsdPort)), Every: r.said.FlushInterval, Tags: r.said.ExtraTags,
		Counters: r.stats.Counters, Gauges: r.stats.Gauges, Log: r.log,
	})
	if err != nil {
		return err
	}
	r.sender = s
	r.stats.Took = func(d time.Duration) {
		r.named.Took(d)
		s.Took("ratelimit_server.ShouldRateLimit.response_time", d)
	}
	return nil
}

// ratelimitRedisTLS is how Redis is believed, nil in plain text.
func ratelimitRedisTLS(r *ratelimit.Redis) (*tls.Config, error) {
	if !r.Encrypted() {
		return nil, nil //nolint:nilnil // there is none
	}
	c, err := trustFiles{
		namedFile{"REDIS_TLS_CACERT", r.CACert}, namedFile{"REDIS_TLS_CLIENT_CERT", r.Cert}, namedFile{"REDIS_TLS_CLIENT_KEY", r.Key},
	}.config("")
	if err != nil {
		return nil, usageError{err}
	}
	if r.AnyName {
		believeAnyName(c)
	}
	return c, nil
}

// believeAnyName has c believe a certificate of its authorities whatever the
// name in it.
func believeAnyName(c *tls.Config) {
	roots := c.RootCAs
	c.InsecureSkipVerify = true // the chain is verified below
	c.VerifyConnection = func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}
