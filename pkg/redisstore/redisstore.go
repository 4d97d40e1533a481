// Package redisstore keeps buckets in Redis or Valkey, so that many processes
// share them. All of a call's buckets are charged by one script, on the
// server and by the server's clock, together with those of all calls that came
// while the last round trip was under way.
//
// It needs Redis 6.2 or later, or any Valkey, alone, in a Cluster or watched by
// Sentinels; and a user who may EVALSHA, EVAL, TIME, MGET, GET, SET, DEL, EXISTS,
// PING and INFO, and on a Cluster CLUSTER SLOTS and ASKING.
//
// The package knows keys and numbers only. What a failure of the server means
// for a request is for its caller to say: every error has a Cause.
package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Options say which servers keep the buckets, and how long to wait for them.
type Options struct {
	// URL names the servers. Required.
	//
	//	redis://user:password@host:port/db
	//	unix://user:password@/path/to/socket?db=0
	//	redis+cluster://user:password@host:port,host:port
	//	redis+sentinel://user:password@host:port,host:port/primary/db
	//
	// Of a Cluster it names a few nodes, that know the others. Before a
	// primary that sentinels watch it names them; user and password are the
	// primary's. With rediss for redis, all that is spoken to is by TLS. The
	// parameters are db, and protocol=3 for RESP3.
	URL string
	// Username and Password, where they are set, take the place of the URL's.
	Username, Password string
	// SentinelUsername and SentinelPassword are for the sentinels. "" is
	// none.
	SentinelUsername, SentinelPassword string
	// TLS is used with rediss; nil trusts the system's roots. With no
	// ServerName, a server is trusted by the name or address under which it is
	// reached: a Cluster's nodes by that under which they announce themselves.
	TLS *tls.Config
	// KeyPrefix is put before every bucket's key. "" means "sl:". With a brace
	// in it, a Cluster would keep all buckets in one slot.
	KeyPrefix string
	// Deadline bounds each call, waiting for others and connecting included. 0
	// means 25ms. A caller whose own time is shorter is answered when a fifth
	// of it is left.
	Deadline time.Duration
	// PoolSize is the most connections to each server. 0 means 10 for each
	// processor. Calls use 8 at most: as long as a server answers at once, one.
	PoolSize int
	// Seen is told what each bucket is that was charged or looked at, settled
	// at the server's time, and at the same place its key, by the goroutine
	// that reads the server's answers: it must be quick, and keep neither
	// slice. Of a bucket that many ask for at once it is told the last. What a
	// Cluster gives back afterwards it is not told. nil is not told.
	Seen func(keys []string, buckets []bucket.Bucket)
	// Now is for tests: it takes the place of the server's clock. It is not to
	// be before 1970.
	Now func() time.Time
}

// A Store keeps buckets on servers. It is safe for concurrent use.
type Store struct {
	nodes     *nodes
	clustered bool
	prefix    string
	deadline  time.Duration
	leadTime  time.Duration
	seen      func(keys []string, buckets []bucket.Bucket)
	now       func() time.Time
	ahead     atomic.Int64 // ns: of this clock, the server's is
	entries   sync.Pool    // of *entry, which have timers of their own
	batches   sync.Pool    // of *batch, for callers that carry them out
	sightings sync.Pool    // of *sighting
}

// New returns a Store. It does not connect: a server that is away is the error
// of the first Take or Ping. Close the Store after use.
func New(o Options) (*Store, error) {
	a, err := o.settings()
	if err != nil {
		return nil, err
	}
	s := &Store{clustered: a.scheme == clustered, prefix: o.KeyPrefix, deadline: o.Deadline, leadTime: leadTime, seen: o.Seen, now: o.Now}
	s.entries.New = func() any { return newEntry() }
	s.batches.New = func() any { return new(batch) }
	s.sightings.New = func() any { return new(sighting) }
	if s.prefix == "" {
		s.prefix = "sl:"
	}
	if s.deadline == 0 {
		s.deadline = 25 * time.Millisecond
	}
	s.nodes = o.nodes(a, s.serve)
	return s, nil
}

// Close closes the connections. Calls under way fail, their charges made or
// not.
func (s *Store) Close() error { return s.nodes.close() }

// Ping asks every server that keeps buckets for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	return failure("ping", s.nodes.each(ctx, func(c *redis.Client) error { return c.Ping(ctx).Err() }))
}

// Warnings says in sentences what about the servers' settings makes limits
// inexact. It is for start-up and takes as long as ctx lets it, at most 5s.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var mu sync.Mutex
	var warnings []string
	err := s.nodes.each(ctx, func(c *redis.Client) error {
		warning, err := evicts(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		if warning != "" && !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
		return err
	})
	return warnings, failure("info", err)
}

// evicts warns of a server that drops keys when its memory is short.
func evicts(ctx context.Context, c *redis.Client) (string, error) {
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	_, policy, _ := strings.Cut(info, "maxmemory_policy:")
	policy, _, _ = strings.Cut(policy, "\r\n")
	if policy == "noeviction" {
		return "", nil
	}
	return fmt.Sprintf("maxmemory-policy is %q, which drops buckets when memory is short, and a dropped bucket is full; want noeviction", policy), nil
}

// Connections returns how many there are to the servers that keep buckets, and
// how many there ever were.
func (s *Store) Connections() (open, made int64) { return s.nodes.connections() }
