// Package ratelimit is the environment of envoyproxy/ratelimit: its variables
// with their defaults, read into values, and its statistics with their names.
//
// It starts nothing and reads no files. What a variable asks for that is not
// needed here, or not to be had, it says in a note.
package ratelimit

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Settings are what the environment says. Each field is named after its
// variable.
type Settings struct {
	Host, GRPCHost, DebugHost string
	Port, GRPCPort, DebugPort int
	GRPCUDS                   string
	MaxConnectionAge          time.Duration
	ConnectionAgeGrace        time.Duration
	ServerTLS                 bool
	ServerTLSCert             string
	ServerTLSKey              string
	ClientTLSCACert           string
	ClientTLSSAN              string

	// AdminHosts are names by which the debug port may be asked, beside
	// localhost and addresses; "*" is any.
	AdminHosts []string

	LogLevel, LogFormat string

	// XDS says that limits come over xDS, and not from files.
	XDS                 bool
	XDSServer           XDSServer
	RuntimeRoot         string
	RuntimeSubdirectory string
	RuntimeAppDirectory string
	IgnoreDotfiles      bool
	MergeDomains        bool
	HealthyWhenLoaded   bool
	HealthByRedis       bool

	// Redis is nil where buckets are kept in memory.
	Redis     *Redis
	KeyPrefix string
	// LocalCache is the most memory for denials that are remembered; nil where
	// nothing is said.
	LocalCache *int64
	OnError    policy.OnError

	Shadow, Quota bool
	Metadata      bool
	Headers       bool
	LimitHeader   string
	Remaining     string
	Reset         string

	Statsd         bool
	StatsdHost     string
	StatsdPort     int
	FlushInterval  time.Duration
	ExtraTags      []string
	Prometheus     bool
	PrometheusAddr string
	PrometheusPath string
	NearLimitRatio float64

	statsDisabled bool
}

// XDSServer is where limits come from over xDS.
type XDSServer struct {
	URL           string
	NodeID        string
	NodeMetadata  string
	Headers       map[string]string
	RetryInterval time.Duration
	TLS           bool
	ClientCert    string
	ClientKey     string
	CACert        string
	SAN           string
	Backoff       Backoff
	MaxMessage    int // bytes; 0 means what gRPC allows
}

// Backoff is how long to wait between tries.
type Backoff struct {
	Initial, Max time.Duration
	Factor       float64 // by how much of a wait it may differ
	Jitter       bool    // whether it may
}

// Folder is where files are read from.
func (s *Settings) Folder() string {
	return filepath.Join(s.RuntimeRoot, s.RuntimeSubdirectory, s.RuntimeAppDirectory)
}

// FolderHint says what to do about Folder, if it is not there.
func (s *Settings) FolderHint() string {
	return fmt.Sprintf("make that folder, or name another: it is RUNTIME_ROOT (%s), RUNTIME_SUBDIRECTORY (%s) and RUNTIME_APPDIRECTORY (%s), joined",
		s.RuntimeRoot, s.RuntimeSubdirectory, s.RuntimeAppDirectory)
}

// Addresses are where it listens.
func (s *Settings) Addresses() (grpc, http, debug string) {
	grpc = address(s.GRPCHost, s.GRPCPort)
	if s.GRPCUDS != "" {
		grpc = "unix:" + s.GRPCUDS
	}
	return grpc, address(s.Host, s.Port), address(s.DebugHost, s.DebugPort)
}

func address(host string, port int) string { return net.JoinHostPort(host, fmt.Sprint(port)) }

// Load reads environ, lines of NAME=value. The notes are for the log: a
// variable that is not known, or that is not needed. The error joins all that
// cannot be used.
func Load(environ []string) (Settings, []Note, error) {
	l := loader{values: map[string]string{}}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		l.values[name] = value
	}
	for _, v := range variables {
		if value, ok := l.values[v.name]; ok && (value != "" || v.empty) {
			l.read(v, value)
		} else if v.standard != "" {
			l.read(v, v.standard)
		}
	}
	l.finish()
	l.strangers(environ)
	return l.s, l.notes, errors.Join(l.errs...)
}

// A Note is something to be logged about a variable.
type Note struct {
	Variable string
	Text     string
	// Warning says that something is not as the variable asks for.
	Warning bool
}

type loader struct {
	values map[string]string
	s      Settings
	redis  Redis
	notes  []Note
	errs   []error
}

func (l *loader) note(name, text string)    { l.notes = append(l.notes, Note{name, text, false}) }
func (l *loader) warning(name, text string) { l.notes = append(l.notes, Note{name, text, true}) }

// fault keeps what is wrong with a variable. Its value is not shown where it
// may be a secret.
func (l *loader) fault(name, found, want string) {
	l.errs = append(l.errs, fmt.Errorf("%s: found %s, want %s", name, found, want))
}

func (l *loader) read(v variable, value string) {
	switch {
	case v.unneeded != "":
		l.note(v.name, v.unneeded)
		return
	case v.missing != "" && isFalse(value):
		l.note(v.name, "it is as if it were not set: "+v.missing)
		return
	case v.missing != "":
		l.warning(v.name, v.missing)
		return
	}
	if want := v.into(l, value); want != "" {
		found := fmt.Sprintf("%q", value)
		if v.secret {
			found = "a value that is not shown"
		}
		l.fault(v.name, found, want)
	}
}

func isFalse(value string) bool {
	b, err := strconv.ParseBool(value)
	return err == nil && !b
}

// finish makes of the single variables what they mean together.
func (l *loader) finish() {
	l.finishRedis()
	_, said := l.values["USE_STATSD"]
	if l.s.Prometheus && !said {
		l.s.Statsd = false
	}
	if l.s.statsDisabled {
		l.s.Statsd, l.s.Prometheus = false, false
	}
	if l.s.ServerTLS && (l.s.ServerTLSCert == "" || l.s.ServerTLSKey == "") {
		l.fault("GRPC_SERVER_USE_TLS", "true without files", "GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY too")
	}
	if l.s.LimitHeader == "" || l.s.Remaining == "" || l.s.Reset == "" {
		l.fault("LIMIT_…_HEADER", "no name", "a header's name")
	}
}
