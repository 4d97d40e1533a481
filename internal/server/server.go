// Package server runs the gRPC port: the services it is given, gRPC health and
// reflection, from the first connection to a drain that loses nothing. It also
// keeps the policy set in use, and reads it again when its files change.
//
// It knows nothing of what the services answer.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// A Service is one gRPC service.
type Service struct {
	// Name is the full name, by which health is asked for it.
	Name     string
	Register func(grpc.ServiceRegistrar)
}

// Options are what a Server is made of. Services is required.
type Options struct {
	Services   []Service
	Reflection bool
	// MaxConnectionAge is how long a connection lives before its client is
	// asked to open another. 0 is for ever.
	MaxConnectionAge time.Duration
	// AgeGrace is how long requests may go on when that time is up. 0 means
	// 30s.
	AgeGrace       time.Duration
	MaxMessageSize int    // bytes of a request; 0 means 4 MiB
	MaxStreams     uint32 // of one connection; 0 means no bound
	MaxHeaderSize  uint32 // bytes of a request's headers, as HTTP/2 counts them; 0 means 16 MiB
	// TLS is how connections are encrypted; nil leaves them in plain text.
	TLS *tls.Config
	// Refused is called for each TLS handshake that failed, with one of a few
	// words for why. It may be nil.
	Refused func(reason string)
	// DrainDelay is how long the Server goes on as before once it has said
	// that it is not serving.
	DrainDelay time.Duration
	// DrainTime is how long requests under way may take after that.
	DrainTime time.Duration
	// Ready says whether requests may be sent here, for Readiness. It may be
	// nil: then they may.
	Ready    func(context.Context) bool
	Log      *slog.Logger // nil logs nothing
	Panicked func()       // is called for each panic caught; may be nil
}

// A Server serves one listener, once.
type Server struct {
	opts   Options
	grpc   *grpc.Server
	health *health.Server
	names  []string // of what health is asked for
	// draining says that what health says is decided.
	mu       sync.Mutex
	draining bool
	// ending is done when streams that would go on for ever must end.
	ending context.Context //nolint:containedctx // it is the Server's own life, no request's
	end    context.CancelFunc
}

// New makes a Server that serves nothing yet.
func New(o Options) *Server {
	o.fill()
	s := &Server{opts: o, health: health.NewServer(), names: []string{"", Readiness, Liveness}}
	s.ending, s.end = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(s.grpcOptions()...)
	healthv1.RegisterHealthServer(s.grpc, probes{s.health, o.Ready})
	for _, service := range o.Services {
		service.Register(s.grpc)
		s.names = append(s.names, service.Name)
	}
	for _, name := range s.names {
		s.SetServing(name, true)
	}
	if o.Reflection {
		reflection.Register(s.grpc)
	}
	return s
}

// fill makes what may be nil something that can be called.
func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Panicked == nil {
		o.Panicked = func() {}
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) bool { return true }
	}
	if o.AgeGrace == 0 {
		o.AgeGrace = ageGrace
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
}

const (
	// ageGrace is Options.AgeGrace where nothing is said.
	ageGrace = 30 * time.Second
	// minPing is the shortest time between a client's pings. Proxies ping much
	// more often than the five minutes that are grpc's own default, and would
	// be hung up on.
	minPing = 5 * time.Second
	// openTime is how long a client may take to begin: TLS and HTTP/2.
	openTime = 10 * time.Second
	// workers answer requests one after the other, on stacks that have grown.
	// A request that finds none free, as where many wait for a store, gets a
	// goroutine of its own.
	workers = 64
)

// StreamWindow and ConnWindow are how much a client may send that nobody has
// taken yet: on one stream, and on a connection. Windows that grpc chooses by
// itself go up to 16 MiB, and it pings the client all the time to choose them:
// with every request where they come one by one.
const (
	StreamWindow = 256 << 10
	ConnWindow   = 1 << 20
)

func (s *Server) grpcOptions() []grpc.ServerOption {
	alive := keepalive.ServerParameters{MaxConnectionAge: s.opts.MaxConnectionAge, MaxConnectionAgeGrace: s.opts.AgeGrace}
	opts := []grpc.ServerOption{
		grpc.KeepaliveParams(alive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.guardCall),
		grpc.ChainStreamInterceptor(s.guardStream),
		grpc.WaitForHandlers(true),
		grpc.ConnectionTimeout(openTime),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.NumStreamWorkers(workers),
		grpc.StaticStreamWindowSize(StreamWindow),
		grpc.StaticConnWindowSize(ConnWindow),
	}
	if s.opts.MaxMessageSize > 0 {
		opts = append(opts, grpc.MaxRecvMsgSize(s.opts.MaxMessageSize))
	}
	if s.opts.MaxStreams > 0 {
		opts = append(opts, grpc.MaxConcurrentStreams(s.opts.MaxStreams))
	}
	if s.opts.MaxHeaderSize > 0 {
		opts = append(opts, grpc.MaxHeaderListSize(s.opts.MaxHeaderSize))
	}
	if s.opts.TLS != nil {
		opts = append(opts, grpc.Creds(newCredentials(s.opts.TLS, s.opts.Refused)))
	}
	return opts
}

// Run serves l until ctx ends, and then drains: health says NOT_SERVING,
// clients are told to open no more requests here, and those under way end. It
// closes l. The error is nil after a drain, also after one that took too long.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	defer s.end()
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.drain()
	if err := <-failed; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("stop serving gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

func (s *Server) drain() {
	s.opts.Log.Info("draining", "delay", s.opts.DrainDelay, "time", s.opts.DrainTime)
	s.stopServing()
	time.Sleep(s.opts.DrainDelay)
	s.end()
	told := make(chan struct{})
	late := time.AfterFunc(s.opts.DrainTime, func() {
		defer close(told)
		s.opts.Log.Warn("requests are still under way after the drain time, ending them")
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	if !late.Stop() {
		<-told // nothing is logged once Run has returned
	}
}
