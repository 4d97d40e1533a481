package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Ports adds what is known of ports that speak TLS, and may be called once.
func (m *Metrics) Ports() *Ports {
	p := &Ports{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_tls_handshake_failures_total",
			Help: "Connections that failed before their first request, by port and reason: no_certificate, certificate (of no authority that is believed, or expired), name (none that is let in), version, not_tls, alpn, client (it gave up), other.",
		}, []string{"port", "reason"}),
		good: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_tls_last_reload_successful",
			Help: "1 if the certificate files that were read last are in use, 0 if they have faults and those before are.",
		}, []string{"port"}),
		notAfter: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_tls_certificate_not_after_timestamp_seconds", Help: "When the port's certificate in use expires.",
		}, []string{"port"}),
	}
	m.registry.MustRegister(p.refused, p.good, p.notAfter)
	return p
}

// Ports counts what becomes of TLS. Its zero value is of no use.
type Ports struct {
	refused        *prometheus.CounterVec
	good, notAfter *prometheus.GaugeVec
}

// Refused returns what counts a connection to port that failed.
func (p *Ports) Refused(port string) func(reason string) {
	return func(reason string) { p.refused.WithLabelValues(port, reason).Inc() }
}

// Certificate notes that port shows a certificate until notAfter, and whether
// the files that were read last are those in use.
func (p *Ports) Certificate(port string, notAfter time.Time, good bool) {
	value := 0.0
	if good {
		value = 1
	}
	p.good.WithLabelValues(port).Set(value)
	p.notAfter.WithLabelValues(port).Set(float64(notAfter.Unix()))
}
