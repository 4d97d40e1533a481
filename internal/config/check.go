package config

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resolve fills in what follows from other settings, and returns all that is
// wrong with s.
func (s *Settings) resolve() Faults {
	c := checker{s: s}
	c.policy()
	c.store()
	c.redis()
	c.servers()
	c.http()
	c.admin()
	c.tls()
	c.logs()
	return c.faults
}

// doubts are settings that can be used, and do nothing.
func (s *Settings) doubts() []string {
	if len(s.HTTPCallers) == 0 || s.HTTPAddr != "" {
		return nil
	}
	return []string{"setting http-callers (from " + s.From("http-callers") + ") does nothing: without http-addr no checks are answered over HTTP"}
}

type checker struct {
	s      *Settings
	faults Faults
}

func (c *checker) want(ok bool, name, found, want string) {
	if !ok {
		c.faults = append(c.faults, Fault{Setting: name, Found: found, Want: want, From: c.s.From(name)})
	}
}

func (c *checker) policy() {
	c.want(len(c.s.Policy) > 0, "policy", "none", "a policy file or folder: --policy FILE")
	for _, p := range c.s.Policy {
		c.want(p != "", "policy", "an empty path", "a policy file or folder")
	}
}

func (c *checker) store() {
	s := c.s
	if s.Store == "" {
		s.Store = Memory
		if s.RedisURL != "" {
			s.Store = Redis
		}
	}
	c.want(s.Store == Memory || s.Store == Redis, "store", strconv.Quote(s.Store), "memory or redis")
	c.want(s.Store != Redis || s.RedisURL != "", "redis-url", "none", "the address of the server, since store is redis (from "+s.From("store")+")")
	c.want(s.Store != Memory || s.RedisURL == "", "store", "memory", "redis, since there is a redis-url (from "+s.From("redis-url")+")")
	c.duration("store-deadline", s.StoreDeadline, time.Millisecond, time.Minute)
	c.want(s.DenyCache == 0 || s.DenyCache >= 1<<20, "deny-cache", s.DenyCache.String(), "0 or at least 1MiB")
	c.want(s.MemoryLimit >= 1<<20, "memory-limit", s.MemoryLimit.String(), "1MiB or more")
	c.want(s.MemoryFull == Deny || s.MemoryFull == Fail, "memory-full", strconv.Quote(s.MemoryFull), "deny or on_error")
	c.want(goodPrefix(s.KeyPrefix), "key-prefix", strconv.Quote(s.KeyPrefix), "1 to 64 letters, digits and signs, without spaces and braces")
}

// goodPrefix says that p can begin a key of Redis: a brace would be taken for
// the part that names a slot.
func goodPrefix(p string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '{' || r == '}' }
	return p != "" && len(p) <= 64 && !strings.ContainsFunc(p, odd)
}

func (c *checker) servers() {
	s := c.s
	c.address("grpc-addr", s.GRPCAddr)
	c.want(s.MaxConnectionAge == 0 || s.MaxConnectionAge >= time.Second, "max-connection-age", s.MaxConnectionAge.String(), "0 or at least 1s")
	c.want(s.MaxMessageSize >= 1024, "max-message-size", strconv.Itoa(s.MaxMessageSize), "1024 or more")
	c.want(s.MaxStreams >= 1, "max-streams", "0", "1 or more")
	c.want(s.MaxHeaderSize >= 1024 && s.MaxHeaderSize <= 16<<20, "max-header-size", strconv.Itoa(s.MaxHeaderSize), "1024 to 16777216")
	c.duration("drain-delay", s.DrainDelay, 0, time.Hour)
	c.duration("drain-time", s.DrainTime, 0, time.Hour)
}

// apart wants two addresses to differ, unless they are any free port.
func (c *checker) apart(name, addr, other, otherAddr string) {
	same := addr == otherAddr && !strings.HasSuffix(addr, ":0")
	c.want(!same, name, strconv.Quote(addr), "another address than "+other)
}

func (c *checker) address(name, addr string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		c.want(path != "", name, strconv.Quote(addr), "a path after unix:")
		return
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	c.want(err == nil, name, strconv.Quote(addr), "host:port, :port or unix:/path")
}

func (c *checker) duration(name string, d, least, most time.Duration) {
	c.want(d >= least && d <= most, name, d.String(), fmt.Sprintf("%v to %v", least, most))
}

func (c *checker) logs() {
	s := c.s
	s.LogLevel = strings.ToLower(s.LogLevel)
	c.want(slices.Contains([]string{"debug", "info", "warn", "error"}, s.LogLevel), "log-level", strconv.Quote(s.LogLevel), "debug, info, warn or error")
	c.want(s.LogFormat == "text" || s.LogFormat == "json", "log-format", strconv.Quote(s.LogFormat), "text or json")
}

const leastSecret = 16

// readSecrets reads the files that hold secrets.
func (s *Settings) readSecrets() error {
	if err := s.readRedis(); err != nil {
		return err
	}
	if err := s.readAdminToken(); err != nil {
		return err
	}
	if s.HashKeyFile == "" {
		return nil
	}
	var err error
	s.HashKey, err = s.longSecret("hash-key-file", s.HashKeyFile)
	return err
}

// longSecret reads a secret that nobody shall guess.
func (s *Settings) longSecret(setting, file string) ([]byte, error) {
	key, err := readSecret(setting, file)
	if err != nil {
		return nil, err
	}
	if len(key) < leastSecret {
		return nil, Faults{{
			Setting: setting, From: s.From(setting),
			Found: fmt.Sprintf("%d bytes in %s", len(key), file), Want: fmt.Sprintf("at least %d", leastSecret),
		}}
	}
	return key, nil
}

// readSecret reads a file without the line end that editors leave.
func readSecret(setting, name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", setting, err)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}
