package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
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

// request returns what args and flags, which are o's, say is asked.
func (o *benchOptions) request(args []string, flags *pflag.FlagSet) (bench.Request, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("found %d arguments, want a door, ext_authz, rls or http, and an address", len(args))
	}
	r, err := o.requestOf(args[0])
	if err == nil {
		err = heeds(args[0], flags)
	}
	if err == nil {
		err = o.keyed()
	}
	if err == nil {
		err = canAsk(args[0], args[1])
	}
	return r, err
}

// canAsk returns an error unless door can be asked at addr.
func canAsk(door, addr string) error {
	_, _, err := net.SplitHostPort(addr)
	socket := strings.HasPrefix(addr, "unix:")
	switch {
	case strings.Contains(addr, "://"):
		return fmt.Errorf("found the address %q, want host:port, and the rest in --path and --tls", addr)
	case door == "http" && (socket || err != nil):
		return fmt.Errorf("found the address %q, want host:port", addr)
	case !socket && err != nil:
		return fmt.Errorf("found the address %q, want host:port or unix:PATH", addr)
	}
	return nil
}

// flagDoors are the flags that not every door heeds, and the doors that do.
var flagDoors = map[string][]string{
	"method": {"ext_authz", "http"}, "path": {"ext_authz", "http"}, "host": {"ext_authz", "http"}, "header": {"ext_authz", "http"},
	"peer": {"ext_authz"}, "context": {"ext_authz"},
	"domain": {"rls"}, "descriptor": {"rls"}, "hits": {"rls"},
}

// heeds returns an error if one of flags was given that says nothing to door.
func heeds(door string, flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		doors := flagDoors[f.Name]
		switch {
		case err != nil || doors == nil || slices.Contains(doors, door):
		case f.Name == "domain" && door == "ext_authz":
			err = errors.New("--domain is for rls; a route's domain is --context domain=…")
		default:
			err = fmt.Errorf("--%s is for %s, not for %s", f.Name, strings.Join(doors, " and "), door)
		}
	})
	return err
}

// keyed returns an error if there are several keys and no place for them, so
// that all requests would be alike.
func (o *benchOptions) keyed() error {
	places := slices.Concat([]string{o.authz.Path, o.authz.Host}, o.headers, o.descriptors)
	placed := func(text string) bool { return strings.Contains(text, "{key}") }
	if o.run.Keys <= 1 || slices.ContainsFunc(places, placed) || strings.Contains(o.authz.Peer, "/") {
		return nil
	}
	return fmt.Errorf("found %d keys and no {key} in the request, which would always be the same; want it in --path, --host, --header or --descriptor, or a network in --peer", o.run.Keys)
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
	var err error
	if o.authz.Headers, err = entries(o.headers); err == nil {
		o.authz.Context, err = pairs("context", o.context)
	}
	return o.authz, err
}

func (o *benchOptions) httpRequest() (bench.Request, error) {
	headers, err := entries(o.headers)
	return bench.HTTP{Method: o.authz.Method, Path: o.authz.Path, Host: o.authz.Host, Headers: headers}, err
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
