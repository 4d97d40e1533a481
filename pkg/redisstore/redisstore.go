// Package redisstore keeps buckets in Redis or Valkey, so that many processes
// share them. All of a call's buckets are charged by one script, on the
// server and by the server's clock.
//
// It needs Redis 6.2 or later, or any Valkey, and a user who may EVALSHA, EVAL,
// TIME, MGET, GET, SET, DEL, PING and INFO.
//
// The package knows keys and numbers only. What a failure of the server means
// for a request is for its caller to say: every error has a Cause.
package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Options say which server keeps the buckets, and how long to wait for it.
type Options struct {
	// URL names the server: redis://user:password@host:port/db, rediss:// for
	// TLS, or unix:///path/to/socket. Required.
	URL string
	// Username and Password, where they are set, take the place of the URL's.
	Username, Password string
	// TLS is used with rediss://; nil trusts the system's roots.
	TLS *tls.Config
	// KeyPrefix is put before every bucket's key. "" means "sl:".
	KeyPrefix string
	// Deadline bounds each call, connecting included. 0 means 25ms.
	Deadline time.Duration
	// PoolSize is the most connections. 0 means 10 for each processor.
	PoolSize int
	// Now is for tests: it takes the place of the server's clock. It is not to
	// be before 1970.
	Now func() time.Time
}

// A Store keeps buckets on one server. It is safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	prefix   string
	deadline time.Duration
	now      func() time.Time
}

// New returns a Store. It does not connect: a server that is away is the error
// of the first Take or Ping. Close the Store after use.
func New(o Options) (*Store, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	s := &Store{client: redis.NewUniversalClient(settings), prefix: o.KeyPrefix, deadline: o.Deadline, now: o.Now}
	if s.prefix == "" {
		s.prefix = "sl:"
	}
	if s.deadline == 0 {
		s.deadline = 25 * time.Millisecond
	}
	return s, nil
}

// Close closes the connections. Calls under way fail, their charges made or
// not.
func (s *Store) Close() error { return s.client.Close() }

// Take makes charges as bucket.Group does. A value under one of the keys that
// is no bucket is left alone: its charge is not made, its result's Err is an
// *Error of Cause "foreign", and the others are answered as if it had room.
//
// Any other failure is an *Error for the whole call. After the Causes timeout,
// canceled, broken, closed, reply and other the charges may have been made;
// after the rest none was.
func (s *Store) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if len(charges) != len(results) {
		return failure("take", errLengths)
	}
	return s.take(ctx, []group{{charges, results}})
}

// take makes the charges of several requests in turn, in one call.
func (s *Store) take(ctx context.Context, groups []group) error {
	c := newCall(s.prefix, groups)
	if len(c.asks) == 0 {
		return nil
	}
	if err := c.check(); err != nil {
		return failure("take", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	reply, err := s.eval(ctx, c)
	if err == nil {
		err = c.read(reply)
	}
	return failure("take", err)
}

// Ping asks the server for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	return failure("ping", s.client.Ping(ctx).Err())
}

// Warnings says in sentences what about the server's settings makes limits
// inexact. It is for start-up and takes as long as ctx lets it, at most 5s.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return nil, failure("info", err)
	}
	_, policy, _ := strings.Cut(info, "maxmemory_policy:")
	policy, _, _ = strings.Cut(policy, "\r\n")
	if policy == "noeviction" {
		return nil, nil
	}
	return []string{fmt.Sprintf("maxmemory-policy is %q, which drops buckets when memory is short, and a dropped bucket is full; want noeviction", policy)}, nil
}
