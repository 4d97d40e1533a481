package config

import "github.com/spf13/pflag"

const fileFlag = "config"

// AddFlags adds a flag for each setting to fs, and --config for the file.
func AddFlags(fs *pflag.FlagSet) {
	fs.StringP(fileFlag, "c", "", "read settings from this `FILE`: .yaml, .json or .toml")
	addPolicyFlags(fs)
	addStoreFlags(fs)
	addServerFlags(fs)
	addHTTPFlags(fs)
	addAdminFlags(fs)
	addTLSFlags(fs)
}

func addPolicyFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.StringArrayP("policy", "p", d.Policy, "policy `PATH`, a file or folder; may be repeated")
	fs.String("domain", d.Domain, "`DOMAIN` whose rules answer requests that name none (default: the only one that has rules for them)")
	fs.Bool("merge-domains", d.MergeDomains, "make one policy of the files in envoyproxy/ratelimit's format that have one domain, instead of refusing them")
	fs.String("log-level", d.LogLevel, "log from this `LEVEL` up: debug, info, warn or error")
	fs.String("log-format", d.LogFormat, "log as this `FORMAT`: text or json")
}

func addStoreFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("store", d.Store, "keep buckets in this `STORE`: memory or redis (default memory, or redis with --redis-url)")
	addRedisFlags(fs)
	fs.Duration("store-deadline", d.StoreDeadline, "a store that has not answered after this `TIME` has failed: on_error decides")
	fs.Var(&d.DenyCache, "deny-cache", "remember denials by Redis in memory of this `SIZE` until the next token is there, for a second at most; 0 for not at all")
	fs.Var(&d.MemoryLimit, "memory-limit", "the most memory that the memory store uses, a `SIZE` such as 64MiB, which holds about 700,000 callers")
	fs.String("memory-full", d.MemoryFull, "what becomes of a new caller beyond that, this `WORD`: deny, as one who has spent all; or on_error, as if the store had failed")
	fs.String("key-prefix", d.KeyPrefix, "begin all keys in Redis with this `TEXT`")
	fs.String("hash-key-file", d.HashKeyFile, "hash identities with the secret in this `FILE`; all replicas need the same")
}

func addServerFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("grpc-addr", d.GRPCAddr, "serve ext_authz, RLS, gRPC health and reflection at this `ADDRESS`: host:port or unix:path")
	fs.Bool("reflection", d.Reflection, "let gRPC clients ask what services there are")
	fs.Duration("max-connection-age", d.MaxConnectionAge, "ask a client to open another connection after this `TIME`, so that load spreads over new replicas; 0 for never")
	fs.Int("max-message-size", d.MaxMessageSize, "refuse a gRPC message of more `BYTES`")
	fs.Uint32("max-streams", d.MaxStreams, "the most `REQUESTS` under way on one gRPC connection")
	fs.Int("max-header-size", d.MaxHeaderSize, "refuse a gRPC request with headers of more `BYTES` (those that it asks about are in the message)")
	fs.Duration("drain-delay", d.DrainDelay, "when told to end, go on for this `TIME` with health saying NOT_SERVING, for load balancers to notice")
	fs.Duration("drain-time", d.DrainTime, "when told to end, give requests under way this much `TIME`")
}
