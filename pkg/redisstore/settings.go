package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings returns what o's URL says, or which field is wrong. Errors never
// show the URL, which may hold a password.
func (o Options) settings() (address, error) {
	a, err := parseAddress(o.URL)
	switch {
	case err != nil:
		return a, fmt.Errorf("redis URL: %w", err)
	case o.Deadline < 0:
		return a, fmt.Errorf("redis Deadline is %v, want 0 or more", o.Deadline)
	case o.PoolSize < 0:
		return a, fmt.Errorf("redis PoolSize is %d, want 0 or more", o.PoolSize)
	case o.TLS != nil && !a.tls:
		return a, errors.New("redis TLS is set, want a URL that begins with rediss")
	case o.SentinelUsername+o.SentinelPassword != "" && a.scheme != sentinels:
		return a, errors.New("redis SentinelPassword is set, want a URL that begins with redis+sentinel://")
	}
	a.username = cmp.Or(o.Username, a.username)
	a.password = cmp.Or(o.Password, a.password)
	// A failed dial is logged by the library at each try. Its error comes back
	// from the call, which is enough.
	logging.Disable()
	return a, nil
}

// client returns how to speak to the server at addr, without its user.
func (o Options) client(a address, addr string) *redis.Options {
	c := &redis.Options{
		Addr:     addr,
		PoolSize: o.PoolSize,
		// A charge that is sent twice is made twice, so nothing is repeated
		// behind our back; and a dead server is to cost one dial.
		MaxRetries:    -1,
		DialerRetries: 1,
		// The context of a call is its only deadline.
		ContextTimeoutEnabled: true,
		ReadTimeout:           -1,
		WriteTimeout:          -1,
		// Pipelines take connections from the one pool that there is.
		PipelinePoolSize: -1,
		// What follows saves round trips on a new connection.
		Protocol:                 a.protocol,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if a.tls {
		c.TLSConfig = o.tls(addr)
	}
	return c
}

// server is client for one that keeps buckets, of n.
func (o Options) server(a address, addr string, n *nodes) *redis.Options {
	c := o.client(a, addr)
	c.Username, c.Password, c.DB = a.username, a.password, a.db
	persistent(c, n)
	return c
}

// sentinel is client for one that knows who keeps them.
func (o Options) sentinel(a address, addr string) *redis.Options {
	c := o.client(a, addr)
	c.Username, c.Password, c.PoolSize = o.SentinelUsername, o.SentinelPassword, 2
	return c
}

// tls is how addr is trusted: by the name that it is called, unless o.TLS says
// another.
func (o Options) tls(addr string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	host, _, _ := net.SplitHostPort(addr)
	c.ServerName = cmp.Or(c.ServerName, host)
	return c
}

// nodes returns the servers that a says, at which serve carries out what is
// to be done.
func (o Options) nodes(a address, serve func(*node, *batch)) *nodes {
	n := &nodes{serve: serve, clients: map[string]*node{}, stop: make(chan struct{})}
	n.options = func(addr string) *redis.Options { return o.server(a, addr, n) }
	n.source = o.source(a, n)
	switch a.scheme {
	case clustered:
	case sentinels:
		n.begin(func() { n.follow(n.stop) })
	default:
		n.see(&view{addrs: a.addrs})
	}
	return n
}

// source returns what says which server keeps which slot; nil where it is
// always the same.
func (o Options) source(a address, n *nodes) source {
	switch a.scheme {
	case clustered:
		return &clusterSource{seeds: a.addrs, client: n.client}
	case sentinels:
		s := &sentinelSource{primary: a.primary}
		for _, addr := range a.addrs {
			s.clients = append(s.clients, redis.NewClient(o.sentinel(a, addr)))
		}
		return s
	default:
		return nil
	}
}

// A source knows which server keeps which slot.
type source interface {
	// look asks; the server at hint, where it is not "", is likely to know.
	look(ctx context.Context, hint string) (*view, error)
	close() error
}
