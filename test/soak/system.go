package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/stack"
)

const policyText = `domain: edge
on_error: deny
rules:
  - {name: caller, match: {path: /*}, per: [ip], limits: [{rate: 100/1s}, {rate: 1000000/1h, refill: interval}]}
  - {name: key, match: {path: /*}, per: [header.x-key], missing: skip, limits: [{rate: 50/1s, refill: sliding}]}
  - {name: user, descriptor: [user], limits: [{rate: 100/1s}]}
`

const (
	keys     = 20_000
	callers  = 16
	reload   = 10 * time.Second
	startsIn = time.Minute
	endsIn   = 30 * time.Second
)

// A system is what is soaked.
type system struct {
	o      options
	dir    string
	redis  *stack.Redis
	sluice *stack.Extauthz
	doors  []*bench.Client
}

func newSystem(ctx context.Context, o options) (*system, error) {
	dir, err := os.MkdirTemp("", "sluice-soak-")
	if err != nil {
		return nil, err
	}
	s := &system{o: o, dir: dir}
	if err := s.start(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *system) start(ctx context.Context) error {
	program, err := stack.BuildExtauthz(s.dir)
	if err != nil {
		return err
	}
	server, err := stack.RedisPath()
	if err != nil {
		return err
	}
	policy := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(policyText), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	if s.redis, err = stack.StartRedis(ctx, server, s.dir); err != nil {
		return err
	}
	s.sluice, err = stack.StartExtauthz(ctx, program, 0, "--policy", policy, "--redis-url", s.redis.URL,
		"--store-deadline", s.o.deadline.String(), "--max-connection-age", "1m")
	if err != nil {
		return err
	}
	return s.dial()
}

// dial makes a client for each door.
func (s *system) dial() error {
	for _, r := range []bench.Request{
		bench.Authz{Peer: "10.0.0.0/8", Path: "/api/{n}", Headers: []bench.Entry{{Key: "x-key", Value: "{key}"}}},
		bench.RLS{Domain: "edge", Descriptors: [][]bench.Entry{{{Key: "user", Value: "{key}"}}}},
	} {
		c, err := bench.Dial(bench.Target{Addr: s.sluice.GRPC, Connections: 4}, r)
		if err != nil {
			return err
		}
		s.doors = append(s.doors, c)
	}
	return nil
}

func (s *system) close() {
	for _, c := range s.doors {
		_ = c.Close()
	}
	if s.sluice != nil {
		_ = s.sluice.Stop(endsIn)
	}
	if s.redis != nil {
		_ = s.redis.Stop(endsIn)
	}
	_ = os.RemoveAll(s.dir)
}

// load asks through every door for so long, each at rate, or with 0 as fast as
// it answers.
func (s *system) load(ctx context.Context, d time.Duration, rate float64) ([]bench.Report, error) {
	reports, errs := make([]bench.Report, len(s.doors)), make([]error, len(s.doors))
	done := make(chan struct{})
	for i, c := range s.doors {
		go func() {
			defer func() { done <- struct{}{} }()
			reports[i], errs[i] = bench.Run(ctx, c, bench.Options{
				Callers: callers, Rate: rate, Duration: d, Timeout: endsIn, Keys: keys, Zipf: 1.1,
			})
		}()
	}
	for range s.doors {
		<-done
	}
	return reports, errors.Join(errs...)
}

// soak asks at half of what it bears.
func (s *system) soak(ctx context.Context) (*result, error) {
	full, err := s.load(ctx, s.o.probe, 0)
	if err != nil {
		return nil, err
	}
	r := &result{time: s.o.time, full: full[0].PerSecond + full[1].PerSecond}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error)
	go func() { watched <- s.watch(watching, r) }()
	r.doors, err = s.load(ctx, s.o.time, r.full/2/float64(len(s.doors)))
	stop()
	if err = errors.Join(err, <-watched, ctx.Err()); err != nil {
		return nil, err
	}
	return r, s.sluice.Stop(endsIn)
}

// watch takes a sample each second, and has the policy read again now and then.
func (s *system) watch(ctx context.Context, r *result) error {
	tick, again := time.NewTicker(time.Second), time.NewTicker(reload)
	defer tick.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			last, err := s.sample()
			r.samples = append(r.samples, last)
			return err
		case <-again.C:
			if err := s.sluice.Signal(syscall.SIGHUP); err != nil {
				return fmt.Errorf("read the policy again: %w", err)
			}
		case <-tick.C:
			now, err := s.sample()
			if err != nil {
				return err
			}
			r.samples = append(r.samples, now)
		}
	}
}
