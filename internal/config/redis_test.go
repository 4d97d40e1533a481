package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/test/servers"
)

func TestLoadRedis(t *testing.T) {
	t.Parallel()
	c := servers.NewCertificates(t)
	s, _, err := given{args: []string{
		"--redis-url", "rediss+sentinel://h:1/primary", "--redis-username", "u", "--redis-sentinel-username", "v",
		"--redis-sentinel-password-file", writeFile(t, "password", "hush\n"),
		"--redis-tls-ca", c.CAFile, "--redis-tls-cert", c.CertFile, "--redis-tls-key", c.KeyFile, "--redis-tls-server-name", "n",
	}}.load(t)
	if err != nil {
		t.Fatalf("Load = %v, want no error", err)
	}
	if s.RedisUsername != "u" || s.RedisSentinelUsername != "v" || s.RedisSentinelPassword != "hush" {
		t.Errorf("Load users = %q, %q with %q, want u, v with hush", s.RedisUsername, s.RedisSentinelUsername, s.RedisSentinelPassword)
	}
	if s.RedisTLS == nil || s.RedisTLS.RootCAs == nil || s.RedisTLS.ServerName != "n" {
		t.Fatalf("Load.RedisTLS = %+v, want the roots and the name n", s.RedisTLS)
	}
	if pair, err := s.RedisTLS.GetClientCertificate(nil); err != nil || len(pair.Certificate) == 0 {
		t.Errorf("GetClientCertificate() = %v, %v, want a certificate", pair, err)
	}
	_, _, err = given{args: []string{"--redis-tls-ca", c.KeyFile}}.load(t)
	var faults config.Faults
	if !errors.As(err, &faults) || !strings.Contains(err.Error(), "found no certificate in "+c.KeyFile) {
		t.Errorf("Load(a key as the authority) = %v, want a fault", err)
	}
}
