package config_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/config"
)

func TestLoadCallers(t *testing.T) {
	t.Parallel()
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::1/128")}
	for _, g := range []given{
		{args: []string{"--http-callers", "10.0.0.0/8,192.0.2.1", "--http-callers", "2001:db8::1"}},
		{environ: []string{"SLUICE_HTTP_CALLERS=10.0.0.0/8, 192.0.2.1, 2001:db8::1"}},
		{file: "http-callers: [10.0.0.0/8, 192.0.2.1, '2001:db8::1']"},
	} {
		s, _, err := g.load(t)
		if got := s.Callers(); err != nil || !slices.Equal(got, want) {
			t.Errorf("Load(%+v).Callers() = %v, %v, want %v", g, got, err, want)
		}
	}
	if s, _, err := (given{}).load(t); err != nil || s.Callers() != nil || s.HTTPDialect != "envoy" || s.HTTPAddr != "" {
		t.Errorf("Load() = callers %v, dialect %q, address %q, %v, want none, envoy, none", s.Callers(), s.HTTPDialect, s.HTTPAddr, err)
	}
}

// Networks that may ask where nothing answers are told of.
func TestLoadCallersOfNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--http-callers", "10.0.0.0/8"}, []string{"setting http-callers (from flag --http-callers) does nothing: without http-addr no checks are answered over HTTP"}},
		{[]string{"--http-callers", "10.0.0.0/8", "--http-addr", ":1"}, nil},
		{nil, nil},
	} {
		_, got, err := given{args: tt.args}.load(t)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("Load(%q) = %v, warnings (-want +got):\n%s", tt.args, err, diff)
		}
	}
}

func TestLoadHTTPFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string // of each fault: setting, found; nil for none
	}{
		{[]string{"--http-addr", ":1", "--http-dialect", "Nginx", "--http-deny-status", "401"}, nil},
		{[]string{"--http-addr", ":1", "--http-dialect", "istio", "--http-path-prefix", "/check", "--http-peer-header", "x-peer", "--http-deny-status", "403"}, nil},
		{[]string{"--http-addr", "9003"}, []string{`http-addr|"9003"`}},
		{[]string{"--http-addr", "127.0.0.1:9001"}, []string{`http-addr|"127.0.0.1:9001"`}},
		{[]string{"--http-addr", "127.0.0.1:9002"}, []string{`http-addr|"127.0.0.1:9002"`}},
		{[]string{"--http-dialect", "haproxy"}, []string{`http-dialect|"haproxy"`}},
		{[]string{"--http-callers", "10.0.0.0/8,all"}, []string{`http-callers|"all"`}},
		{[]string{"--http-peer-header", "x peer"}, []string{`http-peer-header|"x peer"`}},
		{[]string{"--http-path-prefix", "check"}, []string{`http-path-prefix|"check"`}},
		{[]string{"--http-path-prefix", "/check", "--http-dialect", "caddy"}, []string{`http-path-prefix|"/check"`}},
		{[]string{"--http-deny-status", "200"}, []string{"http-deny-status|200"}},
		{[]string{"--http-deny-status", "503"}, []string{"http-deny-status|503"}},
		{[]string{"--http-deny-status", "429", "--http-dialect", "nginx"}, []string{"http-deny-status|429"}},
	} {
		_, _, err := given{args: tt.args}.load(t)
		var faults config.Faults
		if (err != nil) != errors.As(err, &faults) {
			t.Errorf("Load(%q) = %v, want Faults or none", tt.args, err)
		}
		var got []string
		for _, f := range faults {
			got = append(got, f.Setting+"|"+f.Found)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Load(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}
