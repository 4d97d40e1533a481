package telemetry

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
)

// Ratelimit are metrics under the names that envoyproxy/ratelimit has for
// them, in a registry of their own.
type Ratelimit struct {
	stats    *ratelimit.Stats
	registry *prometheus.Registry
	took     prometheus.Histogram
}

// NewRatelimit makes the metrics of s.
func NewRatelimit(s *ratelimit.Stats) *Ratelimit {
	r := &Ratelimit{stats: s, registry: prometheus.NewRegistry()}
	r.took = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds", Help: "How long answers took.",
		ConstLabels: prometheus.Labels{"grpc_method": "ShouldRateLimit"}, Buckets: prometheus.ExponentialBuckets(25e-6, 2, 16),
	})
	r.registry.MustRegister(r, r.took, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Took counts the time that an answer took.
func (r *Ratelimit) Took(d time.Duration) { r.took.Observe(d.Seconds()) }

// Handler serves the metrics.
func (r *Ratelimit) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{Registry: r.registry})
}

// Describe says nothing: which limits there will be is not known.
func (r *Ratelimit) Describe(chan<- *prometheus.Desc) {}

// place is what limits are told apart by here.
type place struct{ domain, key1, key2 string }

// Collect sends all numbers. Limits that differ only beyond the second key are
// one.
func (r *Ratelimit) Collect(ch chan<- prometheus.Metric) {
	for p, numbers := range r.sums() {
		for k, n := range numbers {
			send(ch, "ratelimit_service_rate_limit_"+ratelimit.Kind(k).String(), n, "domain", p.domain, "key1", p.key1, "key2", p.key2)
		}
	}
	s := r.stats
	for domain, n := range s.Strays() {
		send(ch, "ratelimit_service_rate_limit_domain_not_found", n, "domain", domain)
	}
	if s.Connections != nil {
		open, made, closed := s.Pool()
		ch <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(open))
		send(ch, "ratelimit_redis_pool_cx_total", made)
		send(ch, "ratelimit_redis_pool_cx_local_close", closed)
	}
	send(ch, "ratelimit_service_should_rate_limit_error", s.RedisErrors.Load(), "err_type", "redis_error")
	send(ch, "ratelimit_service_should_rate_limit_error", s.ServiceErrors.Load(), "err_type", "service_error")
	send(ch, "ratelimit_service_total_requests", s.Requests.Load(), "grpc_method", "ShouldRateLimit")
	send(ch, "ratelimit_service_config_load_success", s.ConfigLoadSuccess.Load())
	send(ch, "ratelimit_service_config_load_error", s.ConfigLoadError.Load())
	send(ch, "ratelimit_service_global_shadow_mode", s.GlobalShadow.Load())
}

// sums are the numbers of limits by their places.
func (r *Ratelimit) sums() map[place]*[ratelimit.Kinds]uint64 {
	sums := map[place]*[ratelimit.Kinds]uint64{}
	r.stats.Each(func(l ratelimit.Limit, n *ratelimit.Numbers) {
		if l == (ratelimit.Limit{}) {
			l = ratelimit.Limit{Domain: ratelimit.Other, Way: ratelimit.Other}
		}
		p := place{domain: l.Domain}
		p.key1, p.key2, _ = strings.Cut(l.Way, ".")
		p.key2, _, _ = strings.Cut(p.key2, ".")
		if sums[p] == nil {
			sums[p] = new([ratelimit.Kinds]uint64)
		}
		for k := range ratelimit.Kinds {
			sums[p][k] += n[k].Load()
		}
	})
	return sums
}

var poolOpen = prometheus.NewDesc("ratelimit_redis_pool_cx_active", "Connections to Redis.", nil, nil)

// send sends a counter with labels, name and value in turns. Those without a
// value are left out.
func send(ch chan<- prometheus.Metric, name string, n uint64, labels ...string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			names, values = append(names, labels[i]), append(values, strings.ToValidUTF8(labels[i+1], "?"))
		}
	}
	ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, "As envoyproxy/ratelimit counts it.", names, nil), prometheus.CounterValue, float64(n), values...)
}
