package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings returns o as the client's. Errors name the field and never show
// the URL, which may hold a password.
func (o Options) settings() (*redis.UniversalOptions, error) {
	server, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	if o.Deadline < 0 {
		return nil, fmt.Errorf("redis Deadline is %v, want 0 or more", o.Deadline)
	}
	if o.PoolSize < 0 {
		return nil, fmt.Errorf("redis PoolSize is %d, want 0 or more", o.PoolSize)
	}
	if o.TLS != nil {
		if server.TLSConfig == nil {
			return nil, errors.New("redis TLS is set, want a URL that begins with rediss://")
		}
		name := server.TLSConfig.ServerName
		server.TLSConfig = o.TLS.Clone()
		server.TLSConfig.ServerName = cmp.Or(o.TLS.ServerName, name)
	}
	// A failed dial is logged by the library at each try. Its error comes back
	// from the call, which is enough.
	logging.Disable()
	return o.universal(server), nil
}

func (o Options) universal(server *redis.Options) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:     []string{server.Addr},
		DB:        server.DB,
		Username:  cmp.Or(o.Username, server.Username),
		Password:  cmp.Or(o.Password, server.Password),
		TLSConfig: server.TLSConfig,
		PoolSize:  o.PoolSize,
		// A charge that is sent twice is made twice, so nothing is repeated
		// behind our back; and a dead server is to cost one dial.
		MaxRetries:    -1,
		DialerRetries: 1,
		// The context of a call is its only deadline.
		ContextTimeoutEnabled: true,
		ReadTimeout:           -1,
		WriteTimeout:          -1,
		// What follows saves round trips on a new connection.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// server reads the URL.
func (o Options) server() (*redis.Options, error) {
	scheme, rest, _ := strings.Cut(o.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case o.URL == "":
		return nil, errors.New("it is missing")
	case scheme == "redis+cluster" || scheme == "redis+sentinel":
		return nil, fmt.Errorf("%s:// is not there yet; name one server by redis://, rediss:// or unix://", scheme)
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return nil, errors.New("it begins with none of redis://, rediss:// and unix://")
	case strings.Contains(host[strings.LastIndex(host, "@")+1:], ","):
		return nil, errors.New("several servers are not there yet; name one")
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, err
	}
	if u.RawQuery != "" && u.RawQuery != "db="+u.Query().Get("db") {
		return nil, errors.New("the only parameter is db")
	}
	return redis.ParseURL(o.URL)
}
