package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/server"
)

// ports are where it listens. http and admin are nil where it does not.
type ports struct{ grpc, http, admin net.Listener }

// portNames are the names of what says where the ports are, for who reads that
// one of them cannot be had.
type portNames struct{ grpc, http, admin string }

var settingNames = portNames{"grpc-addr", "http-addr", "admin-addr"}

func listen(settings config.Settings, names portNames) (ports, error) {
	var p ports
	for _, port := range []struct {
		listener   *net.Listener
		name, addr string
	}{
		{&p.grpc, names.grpc, settings.GRPCAddr},
		{&p.http, names.http, settings.HTTPAddr},
		{&p.admin, names.admin, settings.AdminAddr},
	} {
		if port.addr == "" {
			continue
		}
		l, err := server.Listen(port.addr)
		if err != nil {
			return ports{}, errors.Join(fmt.Errorf("%s %s: %w", port.name, port.addr, err), p.close())
		}
		*port.listener = l
	}
	return p, nil
}

func (p ports) close() error {
	var errs []error
	for _, l := range []net.Listener{p.grpc, p.http, p.admin} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// grpcOptions are what settings say of the gRPC port.
func grpcOptions(s config.Settings, port *secured) server.Options {
	return server.Options{
		MaxConnectionAge: s.MaxConnectionAge, MaxMessageSize: s.MaxMessageSize, MaxStreams: s.MaxStreams, MaxHeaderSize: uint32(s.MaxHeaderSize),
		TLS: port.config(), Refused: port.refused(), DrainDelay: s.DrainDelay, DrainTime: s.DrainTime,
	}
}

// address is where l listens, for the log.
func address(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

// sides are all that runs: the doors, and beside them what goes on while they
// drain, and tells how that goes.
type sides struct {
	doors, beside running
	hangups       <-chan os.Signal // each has the policy read again
}

// serveUntil runs what begin starts until ctx ends or a port fails. begin is
// given a context that ends then, for the doors, and one that ends after them.
func serveUntil(ctx context.Context, begin func(ctx, after context.Context, s *sides)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	s := &sides{doors: running{stop: stop}, beside: running{stop: stop}, hangups: hangups}
	begin(ctx, after, s)
	err := s.doors.ended()
	stop()
	end()
	return errors.Join(err, s.beside.ended())
}

// running are ports that serve side by side. One that fails stops all.
type running struct {
	stop context.CancelFunc
	wait sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// run serves l, unless it is nil.
func (r *running) run(l net.Listener, serve func(net.Listener) error) {
	if l == nil {
		return
	}
	r.wait.Go(func() {
		err := serve(l)
		if err == nil {
			return
		}
		r.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, err)
	})
}

// ended waits until all have ended, and returns their errors.
func (r *running) ended() error {
	r.wait.Wait()
	return errors.Join(r.errs...)
}
