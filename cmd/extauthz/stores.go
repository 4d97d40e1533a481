package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/lease"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/pkg/standin"
)

// stores are where buckets are kept.
type stores struct {
	main limiter.Store
	// local stands in for main where that may fail; nil with the memory store.
	local limiter.Store
	// redis, the breaker before it, what stands in for both and what takes
	// tokens ahead are nil without.
	redis   *redisstore.Store
	breaker *breaker.Breaker
	standIn *standin.Store
	leases  *lease.Keeper
}

func openStores(settings config.Settings, metrics *telemetry.Metrics, log *slog.Logger) (*stores, error) {
	onFull := memstore.Deny
	if settings.MemoryFull == config.Fail {
		onFull = memstore.Fail
	}
	memory, err := memstore.New(memstore.Options{MaxBytes: int64(settings.MemoryLimit), OnFull: onFull})
	if err != nil {
		return nil, fmt.Errorf("make the memory store: %w", err)
	}
	if settings.Store == config.Memory {
		metrics.Memory(config.Memory, memory)
		return &stores{main: metrics.Errors(config.Memory, memory)}, nil
	}
	return openRedis(settings, memory, metrics, log)
}

// openRedis opens the shared store, for which memory stands in.
func openRedis(settings config.Settings, memory *memstore.Store, metrics *telemetry.Metrics, log *slog.Logger) (*stores, error) {
	const local = "local"
	metrics.Memory(local, memory)
	s := new(stores)
	redis, err := redisstore.New(redisstore.Options{
		URL: settings.RedisURL, Username: settings.RedisUsername, Password: settings.RedisPassword,
		SentinelUsername: settings.RedisSentinelUsername, SentinelPassword: settings.RedisSentinelPassword,
		TLS: settings.RedisTLS, PoolSize: settings.RedisPoolSize,
		KeyPrefix: settings.KeyPrefix, Deadline: settings.StoreDeadline,
		Seen: func(keys []string, buckets []bucket.Bucket) { s.standIn.Seen(keys, buckets) }, // which is there before the first call
	})
	if err != nil {
		return nil, fmt.Errorf("make the redis store (redis-url from %s): %w", settings.From("redis-url"), err)
	}
	b, err := newBreaker(settings, redis, metrics, log)
	if err != nil {
		return nil, errors.Join(err, redis.Close())
	}
	standIn, err := standin.New(standin.Options{Local: memory, Main: b})
	if err != nil {
		return nil, errors.Join(err, b.Close(), redis.Close())
	}
	metrics.StandIn(standIn)
	*s = stores{local: metrics.Errors(local, standIn), redis: redis, breaker: b, standIn: standIn}
	if err := s.before(b, settings, metrics); err != nil {
		return nil, errors.Join(err, standIn.Close(), b.Close(), redis.Close())
	}
	return s, nil
}

// before sets main to what stands before b: what takes tokens ahead and, if it
// is wanted, what remembers denials.
func (s *stores) before(b *breaker.Breaker, settings config.Settings, metrics *telemetry.Metrics) error {
	var err error
	if s.leases, err = lease.New(lease.Options{Store: b}); err != nil {
		return err
	}
	metrics.Leases(config.Redis, s.leases)
	if settings.DenyCache == 0 {
		s.main = metrics.Errors(config.Redis, s.leases)
		return nil
	}
	denials, err := denycache.New(denycache.Options{Store: s.leases, MaxBytes: int64(settings.DenyCache)})
	if err != nil {
		return err
	}
	metrics.Denials(config.Redis, denials)
	s.main = metrics.Errors(config.Redis, denials)
	return nil
}

// newBreaker puts a breaker before redis that tells when it opens and closes.
func newBreaker(settings config.Settings, redis *redisstore.Store, metrics *telemetry.Metrics, log *slog.Logger) (*breaker.Breaker, error) {
	count := metrics.Breaker(config.Redis)
	o := breaker.Options{Store: metrics.Seconds(config.Redis, redis), Changed: func(c breaker.Change) {
		count(c.Open)
		logChange(log, c)
	}}
	if scheme, _, _ := strings.Cut(settings.RedisURL, "://"); strings.HasSuffix(scheme, "+cluster") {
		o.Silence = settings.StoreDeadline
	}
	return breaker.New(o)
}

func logChange(log *slog.Logger, c breaker.Change) {
	if c.Open {
		log.Warn("the store is away, until it answers each rule's on_error decides at once", "store", config.Redis, "cause", limiter.Cause(c.Err), "error", c.Err)
		return
	}
	log.Info("the store answers again", "store", config.Redis, "away", c.Lasted.Round(time.Millisecond), "cause", limiter.Cause(c.Err))
}

// look logs what is wrong with the store at the start. None of it keeps the
// program from serving: that is for on_error.
func (s *stores) look(ctx context.Context, log *slog.Logger) {
	if s.redis == nil {
		return
	}
	if err := s.firstPing(ctx); err != nil {
		log.Warn("the store does not answer, until it does each rule's on_error decides", "store", config.Redis, "cause", limiter.Cause(err), "error", err)
		return
	}
	warnings, err := s.redis.Warnings(ctx)
	if err != nil {
		log.Warn("the store does not tell how it is set up", "store", config.Redis, "cause", limiter.Cause(err), "error", err)
	}
	for _, w := range warnings {
		log.Warn("the store is not set up to be exact", "store", config.Redis, "detail", w)
	}
}

// firstPing is patient for a second with a store that is slow to answer, as the
// first connection may be where everything starts at once.
func (s *stores) firstPing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		err := s.redis.Ping(ctx)
		if err == nil || limiter.Cause(err) != "timeout" || ctx.Err() != nil {
			return err
		}
	}
}

// ping asks the store for a sign of life. While the breaker is open it is its
// error, and the store is left alone.
func (s *stores) ping(ctx context.Context) error {
	if s.redis == nil {
		return nil
	}
	if open := s.breaker.Open(); open != nil {
		return open
	}
	return s.redis.Ping(ctx)
}

func (s *stores) close(log *slog.Logger) {
	if s.redis == nil {
		return
	}
	if err := errors.Join(s.leases.Close(), s.standIn.Close(), s.breaker.Close(), s.redis.Close()); err != nil {
		log.Warn("the store did not close well", "error", err)
	}
}
