package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A secret on a command line is everybody's to read, so these settings have a
// variable and a key, but no flag.
var secretKeys = []string{"redis-password", "redis-sentinel-password"}

func addRedisFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("redis-url", d.RedisURL, "Redis or Valkey: the `URL` redis://host:port/db, unix:///path, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary/db, with rediss for redis by TLS; a password is better in SLUICE_REDIS_PASSWORD or --redis-password-file")
	fs.String("redis-username", d.RedisUsername, "be this `USER` of Redis")
	fs.String("redis-password-file", d.RedisPasswordFile, "read the password of Redis from this `FILE`")
	fs.String("redis-sentinel-username", d.RedisSentinelUsername, "be this `USER` of the sentinels")
	fs.String("redis-sentinel-password-file", d.RedisSentinelPasswordFile, "read the password of the sentinels from this `FILE`")
	fs.String("redis-tls-ca", d.RedisTLSCA, "trust a Redis whose certificate is signed by one in this `FILE` (default the system's)")
	fs.String("redis-tls-cert", d.RedisTLSCert, "show Redis the certificate in this `FILE`; one that is renewed is shown from the next connection on")
	fs.String("redis-tls-key", d.RedisTLSKey, "the `FILE` with the key of --redis-tls-cert")
	fs.String("redis-tls-server-name", d.RedisTLSServerName, "want this `NAME` in the certificate of Redis (default the host of its address)")
}

// redisSchemes are how a redis-url may begin; those of one s are by TLS.
var redisSchemes = []string{"redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"}

// redis looks at what can be told without a look at the URL's details, which
// are the store's to judge.
func (c *checker) redis() {
	s := c.s
	c.onlyOne("redis-password", s.RedisPassword, s.RedisPasswordFile)
	c.onlyOne("redis-sentinel-password", s.RedisSentinelPassword, s.RedisSentinelPasswordFile)
	c.want((s.RedisTLSCert == "") == (s.RedisTLSKey == ""), "redis-tls-cert", strconv.Quote(s.RedisTLSCert), "a certificate and its key, redis-tls-key")
	if s.RedisURL == "" {
		return
	}
	const forms = "redis://, rediss://, unix://, redis+cluster:// or redis+sentinel:// and an address"
	scheme, rest, ok := strings.Cut(s.RedisURL, "://")
	switch {
	case !ok:
		// What it is instead may be a password.
		c.want(false, "redis-url", "something that is no URL", forms)
	case !slices.Contains(redisSchemes, scheme):
		c.want(false, "redis-url", "the scheme "+strconv.Quote(scheme), forms)
	default:
		c.want(rest[strings.LastIndexByte(rest, '@')+1:] != "", "redis-url", scheme+":// without an address", forms)
		byTLS := strings.HasPrefix(scheme, "rediss")
		c.want(byTLS || !s.redisTLS(), "redis-url", scheme+"://, with redis-tls settings too", "rediss for redis")
		sentinel := strings.HasSuffix(scheme, "sentinel")
		c.want(sentinel || s.RedisSentinelUsername+s.RedisSentinelPassword+s.RedisSentinelPasswordFile == "", "redis-url", scheme+"://, with redis-sentinel settings too", "redis+sentinel://")
	}
}

// onlyOne wants a secret to be set, or a file that holds it.
func (c *checker) onlyOne(secret, value, file string) {
	both := value != "" && file != ""
	c.want(!both, secret+"-file", "a file, with "+secret+" set too (from "+c.s.From(secret)+")", "only one of them")
}

func (s *Settings) redisTLS() bool {
	return s.RedisTLSCA+s.RedisTLSCert+s.RedisTLSServerName != ""
}

// readRedis reads the files that the settings of Redis name.
func (s *Settings) readRedis() error {
	for _, f := range []struct {
		setting, name string
		into          *string
	}{
		{"redis-password-file", s.RedisPasswordFile, &s.RedisPassword},
		{"redis-sentinel-password-file", s.RedisSentinelPasswordFile, &s.RedisSentinelPassword},
	} {
		if f.name == "" {
			continue
		}
		text, err := readSecret(f.setting, f.name)
		if err != nil {
			return err
		}
		*f.into = string(text)
	}
	if !s.redisTLS() {
		return nil
	}
	s.RedisTLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.RedisTLSServerName}
	return errors.Join(s.readCA(), s.readCertificate())
}

func (s *Settings) readCA() error {
	if s.RedisTLSCA == "" {
		return nil
	}
	text, err := os.ReadFile(s.RedisTLSCA)
	if err != nil {
		return fmt.Errorf("read redis-tls-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return Faults{{Setting: "redis-tls-ca", From: s.From("redis-tls-ca"), Found: "no certificate in " + s.RedisTLSCA, Want: "certificates in PEM"}}
	}
	s.RedisTLS.RootCAs = roots
	return nil
}

func (s *Settings) readCertificate() error {
	if s.RedisTLSCert == "" {
		return nil
	}
	return ShowCertificate(s.RedisTLS, "read redis-tls-cert", s.RedisTLSCert, s.RedisTLSKey)
}

// ShowCertificate has c show servers the certificate in these files. They are
// read for each connection, so that it can be renewed, and once now, to see that
// they can be: errors begin with what.
func ShowCertificate(c *tls.Config, what, cert, key string) error {
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		return &pair, nil
	}
	_, err := c.GetClientCertificate(nil)
	return err
}
