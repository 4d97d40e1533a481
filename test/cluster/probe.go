package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/test/stack"
)

// probe asks a container's probes until ctx ends. A container without a
// readiness probe is ready once it is started; one whose liveness or startup
// probe fails is ended.
func (w *worker) probe(ctx context.Context, c container, p *stack.Process) {
	if c.StartupProbe != nil && !w.until(ctx, c, *c.StartupProbe) {
		w.kill(ctx, c, p, "startup")
		return
	}
	w.change(ctx, c, func(s *state) { s.started, s.ready = true, c.ReadinessProbe == nil })
	var probes sync.WaitGroup
	defer probes.Wait()
	if c.ReadinessProbe != nil {
		probes.Go(func() {
			w.follow(ctx, c, *c.ReadinessProbe, func(ok bool) bool {
				w.change(ctx, c, func(s *state) { s.ready = ok })
				return true
			})
		})
	}
	if c.LivenessProbe != nil {
		w.follow(ctx, c, *c.LivenessProbe, func(ok bool) bool {
			if !ok {
				w.kill(ctx, c, p, "liveness")
			}
			return ok
		})
	}
}

// kill ends a container whose probe has failed, unless the pod ends anyway.
func (w *worker) kill(ctx context.Context, c container, p *stack.Process, which string) {
	if ctx.Err() == nil {
		w.say(c.Name + ": failed its " + which + " probe, will be restarted")
		w.terminate(c, p)
	}
}

// until asks a probe until it succeeds, and says false if it fails for good.
func (w *worker) until(ctx context.Context, c container, p probe) bool {
	succeeded := false
	w.follow(ctx, c, p, func(ok bool) bool {
		succeeded = ok
		return false
	})
	return succeeded
}

// follow tells do each time that the probe's verdict changes, its first one
// too, until do says false or ctx ends.
func (w *worker) follow(ctx context.Context, c container, p probe, do func(ok bool) bool) {
	wait(ctx, time.Duration(p.InitialDelaySeconds)*time.Second)
	failures, successes := 0, 0
	for ctx.Err() == nil {
		asked, cancel := context.WithTimeout(ctx, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
		err := w.handle(asked, c, p.handler)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures, successes = 0, successes+1
		} else {
			failures, successes = failures+1, 0
			w.say(fmt.Sprintf("%s: a probe failed: %v", c.Name, err))
		}
		if successes == max(p.SuccessThreshold, 1) && !do(true) || failures == max(p.FailureThreshold, 1) && !do(false) {
			return
		}
		wait(ctx, time.Duration(max(p.PeriodSeconds, 1))*time.Second)
	}
}

// handle does what a probe or a hook asks for.
func (w *worker) handle(ctx context.Context, c container, h handler) error {
	switch {
	case h.GRPC != nil:
		return health(ctx, w.at(c, h.GRPC.Port), h.GRPC.Service)
	case h.HTTPGet != nil:
		return fetch(ctx, h.HTTPGet.Scheme, w.at(c, h.HTTPGet.Port), h.HTTPGet.Path)
	case h.TCPSocket != nil:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", w.at(c, h.TCPSocket.Port))
		if err == nil {
			conn.Close()
		}
		return err
	case h.Exec != nil:
		return w.exec(ctx, c, h.Exec.Command)
	case h.Sleep != nil:
		wait(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		return nil
	}
	return errors.New("this node does not know this kind of probe")
}

// at is where a port of a container is here.
func (w *worker) at(c container, p port) string { return net.JoinHostPort(loopback(w.ip), p.number(c)) }

func health(ctx context.Context, at, service string) error {
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("health is %v", answer.GetStatus())
	}
	return nil
}

// prober asks as kubelet does, which believes any certificate.
var prober = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
	DisableKeepAlives: true,
}}

func fetch(ctx context.Context, scheme, at, path string) error {
	url := "http://" + at + path
	if scheme == "HTTPS" {
		url = "https://" + at + path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := prober.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("GET %s = %s", path, resp.Status)
	}
	return nil
}

// exec runs a command as if inside the container.
func (w *worker) exec(ctx context.Context, c container, command []string) error {
	c.Command, c.Args = command, nil
	p, failed := w.start(ctx, c)
	if failed != nil {
		return failed.err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		_ = p.Stop(0)
		return ctx.Err()
	}
}
