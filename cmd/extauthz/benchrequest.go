package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// benchOptions are the command line of bench.
type benchOptions struct {
	run      bench.Options
	target   bench.Target
	tls      clientTLS
	json     bool
	allOK    bool
	progress bool

	authz       bench.Authz
	headers     []string
	context     []string
	domain      string
	descriptors []string
	hits        uint32
}

func (o *benchOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&o.run.Callers, "callers", "c", 1, "how many requests are under way at a time, at most")
	flags.IntVar(&o.target.Connections, "connections", 1, "how many connections the callers share")
	flags.Float64Var(&o.run.Rate, "rate", 0, "how many requests begin in a second (default: as fast as they are answered)")
	flags.DurationVarP(&o.run.Duration, "duration", "d", 0, "how long to ask (default 10s, or as long as --requests take)")
	flags.Int64VarP(&o.run.Requests, "requests", "n", 0, "end after so many requests")
	flags.DurationVar(&o.run.WarmUp, "warm-up", 0, "how long to ask before anything is counted")
	flags.DurationVar(&o.run.Timeout, "timeout", time.Second, "how long a request waits for its answer")
	flags.Uint64Var(&o.run.Keys, "keys", 1, "how many keys to ask for")
	flags.Float64Var(&o.run.Zipf, "zipf", 0, "ask for few keys often and for many seldom, by this exponent above 1 (default: for all equally often)")
	flags.Uint64Var(&o.run.Seed, "seed", 0, "choose the keys of another run with the same seed")
	flags.IntSliceVar(&o.run.PIDs, "pid", nil, "tell the CPU time of this process; may be repeated")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	flags.BoolVar(&o.allOK, "all-ok", false, "fail too if an answer is not OK")
	flags.BoolVar(&o.progress, "progress", false, "say each second how it goes, also if standard error is no terminal")

	flags.StringVar(&o.authz.Method, "method", "GET", "ext_authz, http: the request's method")
	flags.StringVar(&o.authz.Path, "path", "/", "ext_authz, http: the request's path")
	flags.StringVar(&o.authz.Host, "host", "bench", "ext_authz, http: the request's host")
	flags.StringVar(&o.authz.Peer, "peer", "203.0.113.7", "ext_authz: the direct peer's `ADDRESS`, or a network of which each key gets one")
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "ext_authz, http: a header line, `'NAME: VALUE'`; may be repeated")
	flags.StringArrayVar(&o.context, "context", nil, "ext_authz: a context extension of the route, `KEY=VALUE`; may be repeated")
	flags.StringVar(&o.domain, "domain", "", "rls: the descriptors' domain")
	flags.StringArrayVar(&o.descriptors, "descriptor", nil, "rls: a descriptor `KEY=VALUE,...`; \\, is a comma; may be repeated")
	flags.Uint32Var(&o.hits, "hits", 0, "rls: the request's hits_addend (default: none, which is 1)")
	o.tls.addFlags(flags)
}

// request returns what args and the flags say is asked.
func (o *benchOptions) request(args []string) (bench.Request, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("found %d arguments, want a door, ext_authz, rls or http, and an address", len(args))
	}
	if strings.Contains(args[1], "://") {
		return nil, fmt.Errorf("found the address %q, want host:port, and the rest in --path and --tls", args[1])
	}
	r, err := o.requestOf(args[0])
	if err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(args[1]); err != nil && !strings.HasPrefix(args[1], "unix:") {
		return nil, fmt.Errorf("found the address %q, want host:port or unix:PATH", args[1])
	}
	return r, nil
}

// requestOf returns what the flags say is asked of door.
func (o *benchOptions) requestOf(door string) (bench.Request, error) {
	switch door {
	case "ext_authz":
		return o.authzRequest()
	case "rls":
		return o.rlsRequest()
	case "http":
		return o.httpRequest()
	default:
		return nil, fmt.Errorf("found the door %q, want ext_authz, rls or http", door)
	}
}

func (o *benchOptions) authzRequest() (bench.Request, error) {
	err := o.noDescriptor()
	if err == nil {
		o.authz.Headers, err = entries(o.headers)
	}
	if err == nil {
		o.authz.Context, err = pairs("context", o.context)
	}
	return o.authz, err
}

func (o *benchOptions) httpRequest() (bench.Request, error) {
	err := o.noDescriptor()
	r := bench.HTTP{Method: o.authz.Method, Path: o.authz.Path, Host: o.authz.Host}
	if err == nil {
		r.Headers, err = entries(o.headers)
	}
	return r, err
}

func (o *benchOptions) noDescriptor() error {
	if o.domain != "" || len(o.descriptors) > 0 || o.hits > 0 {
		return errors.New("--domain, --descriptor and --hits are of rls; a route's domain is --context domain=…")
	}
	return nil
}

// entries reads header lines.
func entries(texts []string) ([]bench.Entry, error) {
	lines, err := headerLines(texts)
	var all []bench.Entry
	for _, line := range lines {
		all = append(all, bench.Entry{Key: line.Name, Value: line.Value})
	}
	return all, err
}

func (o *benchOptions) rlsRequest() (bench.Request, error) {
	if o.domain == "" || len(o.descriptors) == 0 {
		return nil, errors.New("rls wants --domain, and a --descriptor such as 'user={key}'")
	}
	r := bench.RLS{Domain: o.domain, Hits: o.hits}
	for _, text := range o.descriptors {
		var entries []bench.Entry
		for _, part := range splitCommas(text) {
			e, _ := descriptors.Split(part)
			entries = append(entries, bench.Entry(e))
		}
		r.Descriptors = append(r.Descriptors, entries)
	}
	return r, nil
}
