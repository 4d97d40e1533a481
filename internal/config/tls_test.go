package config_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/config"
)

func TestLoadTLS(t *testing.T) {
	t.Parallel()
	s, _, err := given{
		args:    []string{"--grpc-tls-cert", "c", "--grpc-tls-key", "k", "--grpc-tls-client-ca", "a", "--http-addr", ":1"},
		environ: []string{"SLUICE_GRPC_TLS_CLIENT_SAN=spiffe://a/b, *.example", "SLUICE_HTTP_TLS_CERT=hc", "SLUICE_HTTP_TLS_KEY=hk"},
		file:    "tls-min-version: 1.3\nadmin-tls-cert: ac\nadmin-tls-key: ak\n",
	}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	got := []config.PortTLS{s.ForGRPC(), s.ForHTTP(), s.ForAdmin()}
	want := []config.PortTLS{
		{Setting: "grpc-tls", Cert: "c", Key: "k", ClientCA: "a", ClientSAN: []string{"spiffe://a/b", "*.example"}},
		{Setting: "http-tls", Cert: "hc", Key: "hk", ClientSAN: []string{}},
		{Setting: "admin-tls", Cert: "ac", Key: "ak", ClientSAN: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	if got := s.MinVersion(); got != tls.VersionTLS13 {
		t.Errorf("MinVersion() = %x, want %x", got, tls.VersionTLS13)
	}
}

// Half of what TLS needs must not end in a port in plain text.
func TestLoadTLSFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--grpc-tls-cert", "c"}, "grpc-tls-key (from the default): found none, want the key of grpc-tls-cert"},
		{[]string{"--grpc-tls-key", "k"}, "grpc-tls-cert (from the default): found none, want the certificate of grpc-tls-key"},
		{[]string{"--grpc-tls-client-ca", "a"}, "grpc-tls-cert (from the default): found none, want a certificate, since there is grpc-tls-client-ca"},
		{[]string{"--admin-tls-cert", "c", "--admin-tls-key", "k", "--admin-tls-client-san", "n"}, "admin-tls-client-ca (from the default): found none"},
		{[]string{"--http-tls-cert", "c", "--http-tls-key", "k"}, "http-addr (from the default): found none, want an address"},
		{[]string{"--tls-min-version", "1.1"}, `tls-min-version (from flag --tls-min-version): found "1.1", want 1.2 or 1.3`},
		{[]string{"--admin-hosts", "a:9002"}, `admin-hosts (from flag --admin-hosts): found "a:9002", want a name without port`},
		{[]string{"--admin-hosts", "*.example"}, `found "*.example"`},
		{[]string{"--admin-hosts", "http://a"}, `found "http://a"`},
		{[]string{"--max-header-size", "100"}, `max-header-size (from flag --max-header-size): found 100, want 1024`},
		{[]string{"--http-max-header-size", "100"}, `http-max-header-size (from flag --http-max-header-size): found 100, want 1024`},
	} {
		_, _, err := given{args: tt.args}.load(t)
		var faults config.Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Load(%q) = %v, want a fault with %q", tt.args, err, tt.want)
		}
	}
}

func TestLoadAdminToken(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "token", "0123456789abcdef\n")
	s, _, err := given{args: []string{"--admin-token-file", file}}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.AdminToken(); string(got) != "0123456789abcdef" || err != nil {
		t.Errorf("AdminToken() = %q, %v, want the file's, without its line end", got, err)
	}
	short := writeFile(t, "short", "s3cr3t")
	for name, want := range map[string]string{
		short:            "admin-token-file (from flag --admin-token-file): found 6 bytes in " + short + ", want at least 16",
		"/nowhere/token": "read admin-token-file: open /nowhere/token",
	} {
		if _, _, err := (given{args: []string{"--admin-token-file", name}}).load(t); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("Load(--admin-token-file %s) = %v, want %q", name, err, want)
		}
	}
}

// A setting that is a secret has a file to be in, and no flag.
func TestSecretsHaveFiles(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(flags)
	for _, name := range []string{"redis-password", "redis-sentinel-password", "hash-key", "admin-token"} {
		if flags.Lookup(name) != nil || flags.Lookup(name+"-file") == nil {
			t.Errorf("flags have --%s %v and --%s-file %v, want the second alone", name, flags.Lookup(name) != nil, name, flags.Lookup(name+"-file") != nil)
		}
	}
}
