// Package config is the settings of extauthz: one struct, one default for each
// and one place where they are read. A flag goes before a SLUICE_… variable,
// that before the settings file, and that before the default.
//
// It reads settings, and the small secret files that settings name. It knows
// nothing of what they are for: the other packages take values. The policy is
// not a setting, only its path is.
package config

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// The stores that Settings.Store may name.
const (
	Memory = "memory"
	Redis  = "redis"
)

// Settings are the settings of extauthz serve. Each is named after the key
// that it has on the command line and in the settings file; its variable is
// the same in capitals: store-deadline is SLUICE_STORE_DEADLINE.
type Settings struct {
	// Policy are the policy files and folders. At least one.
	Policy []string `mapstructure:"policy"`
	// Domain answers the requests that name none. "" leaves it to the only
	// policy that has rules for them.
	Domain string `mapstructure:"domain"`
	// MergeDomains makes one policy of the files in envoyproxy/ratelimit's
	// format that have one domain.
	MergeDomains bool `mapstructure:"merge-domains"`

	// Store is Memory or Redis, never "" once loaded: unset, it is Redis if
	// RedisURL is set.
	Store string `mapstructure:"store"`
	// RedisURL may hold a password: never log it.
	RedisURL      string `mapstructure:"redis-url"`
	RedisUsername string `mapstructure:"redis-username"`
	// RedisPassword is what redis-password or the file redis-password-file
	// says. It has no flag: the command line is everybody's to read.
	RedisPassword     string `mapstructure:"redis-password"`
	RedisPasswordFile string `mapstructure:"redis-password-file"`
	// The user of the sentinels is another than that of Redis; "" for none.
	RedisSentinelUsername     string `mapstructure:"redis-sentinel-username"`
	RedisSentinelPassword     string `mapstructure:"redis-sentinel-password"`
	RedisSentinelPasswordFile string `mapstructure:"redis-sentinel-password-file"`
	// RedisTLS is what the redis-tls settings say, nil without any.
	RedisTLS           *tls.Config `mapstructure:"-"`
	RedisTLSCA         string      `mapstructure:"redis-tls-ca"`
	RedisTLSCert       string      `mapstructure:"redis-tls-cert"`
	RedisTLSKey        string      `mapstructure:"redis-tls-key"`
	RedisTLSServerName string      `mapstructure:"redis-tls-server-name"`

	// RedisPoolSize is 0 where the store shall choose. It has no key.
	RedisPoolSize int `mapstructure:"-"`

	StoreDeadline time.Duration `mapstructure:"store-deadline"`
	// DenyCache is the most memory for denials that are remembered for a
	// moment, so that Redis need not be asked again. 0 is none.
	DenyCache Bytes `mapstructure:"deny-cache"`
	// MemoryLimit is the most memory that the memory store uses.
	MemoryLimit Bytes `mapstructure:"memory-limit"`
	// MemoryFull is what becomes of a new caller beyond MemoryLimit: Deny, or
	// Fail for what on_error says.
	MemoryFull string `mapstructure:"memory-full"`
	KeyPrefix  string `mapstructure:"key-prefix"`
	// HashKey is what the file hash-key-file holds, nil without one.
	HashKey     []byte `mapstructure:"-"`
	HashKeyFile string `mapstructure:"hash-key-file"`

	GRPCAddr   string `mapstructure:"grpc-addr"`
	Reflection bool   `mapstructure:"reflection"`
	// MaxConnectionAge is how long a client may keep a connection before it
	// is asked to open another. 0 is for ever.
	MaxConnectionAge time.Duration `mapstructure:"max-connection-age"`
	MaxMessageSize   int           `mapstructure:"max-message-size"` // bytes
	MaxStreams       uint32        `mapstructure:"max-streams"`      // of one connection
	MaxHeaderSize    int           `mapstructure:"max-header-size"`  // bytes of one gRPC request
	DrainDelay       time.Duration `mapstructure:"drain-delay"`
	DrainTime        time.Duration `mapstructure:"drain-time"`

	// HTTPAddr is "" where no checks over HTTP shall be answered.
	HTTPAddr string `mapstructure:"http-addr"`
	// HTTPDialect is the proxy's name: envoy, istio, traefik, caddy or nginx.
	HTTPDialect string `mapstructure:"http-dialect"`
	// HTTPCallers are networks, and addresses, which are networks of one.
	// None is loopback.
	HTTPCallers    []string `mapstructure:"http-callers"`
	HTTPPeerHeader string   `mapstructure:"http-peer-header"`
	HTTPPathPrefix string   `mapstructure:"http-path-prefix"`
	// HTTPDenyStatus is 0 where the dialect shall choose.
	HTTPDenyStatus    int `mapstructure:"http-deny-status"`
	HTTPMaxHeaderSize int `mapstructure:"http-max-header-size"` // bytes of one check

	Admin `mapstructure:",squash"`
	TLS   `mapstructure:",squash"`

	LogLevel  string `mapstructure:"log-level"`
	LogFormat string `mapstructure:"log-format"`

	from map[string]string
}

// What becomes of a new caller when the memory store is full.
const (
	Deny = "deny"
	Fail = "on_error"
)

// Default returns the settings that hold where nothing else is said.
func Default() Settings {
	return Settings{
		StoreDeadline: 25 * time.Millisecond,
		DenyCache:     16 << 20,
		MemoryLimit:   64 << 20,
		MemoryFull:    Deny,
		KeyPrefix:     "sl:",

		GRPCAddr:         "127.0.0.1:9001",
		Reflection:       true,
		MaxConnectionAge: 30 * time.Minute,
		MaxMessageSize:   4 << 20,
		MaxStreams:       1024,
		MaxHeaderSize:    64 << 10,
		DrainTime:        20 * time.Second,

		HTTPDialect:       "envoy",
		HTTPMaxHeaderSize: 1 << 20,

		Admin: Admin{AdminAddr: "127.0.0.1:9002", Pprof: true},
		TLS:   TLS{TLSMinVersion: "1.2"},

		LogLevel:  "info",
		LogFormat: "text",
	}
}

// From says where the setting called name was found: a flag, a variable, the
// settings file, or the default.
func (s Settings) From(name string) string {
	if from, ok := s.from[name]; ok {
		return from
	}
	return "the default"
}

// Level returns LogLevel for slog; it is info where that is no level.
func (s Settings) Level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return l
}
