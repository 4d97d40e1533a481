package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// stores are where buckets are kept.
type stores struct {
	main limiter.Store
	// local stands in for main where that may fail; nil with the memory store.
	local limiter.Store
	redis *redisstore.Store // nil without
}

func openStores(settings config.Settings, metrics *telemetry.Metrics) (*stores, error) {
	memory, err := memstore.New(memstore.Options{MaxKeys: settings.MemoryLimit})
	if err != nil {
		return nil, fmt.Errorf("make the memory store: %w", err)
	}
	if settings.Store == config.Memory {
		metrics.Memory(config.Memory, memory)
		return &stores{main: metrics.Errors(config.Memory, memory)}, nil
	}
	const local = "local"
	metrics.Memory(local, memory)
	redis, err := redisstore.New(redisstore.Options{
		URL: settings.RedisURL, Username: settings.RedisUsername, Password: settings.RedisPassword,
		SentinelUsername: settings.RedisSentinelUsername, SentinelPassword: settings.RedisSentinelPassword,
		TLS:       settings.RedisTLS,
		KeyPrefix: settings.KeyPrefix, Deadline: settings.StoreDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("make the redis store (redis-url from %s): %w", settings.From("redis-url"), err)
	}
	return &stores{main: metrics.Store(config.Redis, redis), local: metrics.Errors(local, memory), redis: redis}, nil
}

// look logs what is wrong with the store at the start. None of it keeps the
// program from serving: that is for on_error.
func (s *stores) look(ctx context.Context, log *slog.Logger) {
	if s.redis == nil {
		return
	}
	if err := s.redis.Ping(ctx); err != nil {
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

// ping asks the store for a sign of life.
func (s *stores) ping(ctx context.Context) error {
	if s.redis == nil {
		return nil
	}
	return s.redis.Ping(ctx)
}

func (s *stores) close(log *slog.Logger) {
	if s.redis == nil {
		return
	}
	if err := s.redis.Close(); err != nil {
		log.Warn("the store did not close well", "error", err)
	}
}
