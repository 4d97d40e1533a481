package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// explainOptions are the command line of explain, as it was written.
type explainOptions struct {
	tls    clientTLS
	server string
	json   bool

	peer, host, principal   string
	headers                 []string
	context, claims, stamps []string
	metadata                string
	descriptors             []string
	hits                    int64
}

func (o *explainOptions) addRequestFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.peer, "peer", "", "the `ADDRESS` of the direct peer, or unix (default: a peer without an address)")
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "a header line, `'NAME: VALUE'`; may be repeated")
	flags.StringVar(&o.host, "host", "", "the request's `HOST` (default: that of -H 'host: …')")
	flags.StringVar(&o.principal, "principal", "", "the `NAME` in the peer's certificate")
	flags.StringArrayVar(&o.context, "context", nil, "a context extension of the route, `KEY=VALUE`; may be repeated")
	flags.StringArrayVar(&o.claims, "claim", nil, "a claim of a verified token, `KEY=VALUE`, the value as JSON or as text; may be repeated")
	flags.StringVar(&o.metadata, "metadata", "", "the request's dynamic metadata, as a `JSON` object of filters' names")
	flags.StringArrayVar(&o.stamps, "stamp", nil, "a value of Envoy's initial_metadata, `KEY=VALUE`; may be repeated")
	flags.StringArrayVar(&o.descriptors, "descriptor", nil, "ask as Envoy's rate limit filter, with a descriptor `KEY=VALUE,...`; \\, is a comma; may be repeated")
	flags.Int64Var(&o.hits, "hits", 1, "with --descriptor, the `COST` of each")
}

// request returns what the command line describes.
func (o *explainOptions) request(args []string) (r explain.Request, err error) {
	if len(o.descriptors) > 0 {
		if len(args) > 0 {
			return r, fmt.Errorf("found %q and a descriptor, want one of the two", args[0])
		}
		if o.describes() {
			return r, errors.New("found a descriptor and what describes a request, such as --peer or --header; want descriptors alone: the rate limit service sees nothing else")
		}
		r.Hits = o.hits
		for _, text := range o.descriptors {
			r.Descriptors = append(r.Descriptors, descriptor(text))
		}
		return r, nil
	}
	if o.hits != 1 {
		return r, errors.New("--hits is for --descriptor: what a request costs is the policy's word")
	}
	r = explain.Request{Host: o.host, Peer: o.peer, Principal: o.principal}
	if r.Method, r.Path, err = requestLine(args); err != nil {
		return r, err
	}
	if r.Headers, err = headerLines(o.headers); err != nil {
		return r, err
	}
	if r.Context, err = pairs("context", o.context); err != nil {
		return r, err
	}
	if r.Stamps, err = pairs("stamp", o.stamps); err != nil {
		return r, err
	}
	r.Metadata, err = o.dynamic()
	return r, err
}

// describes says that a flag was given that says something of a request.
func (o *explainOptions) describes() bool {
	lists := slices.Concat(o.headers, o.context, o.claims, o.stamps)
	return o.peer != "" || o.host != "" || o.principal != "" || o.metadata != "" || len(lists) > 0
}

// requestLine reads a method and a path, in one argument or two.
func requestLine(args []string) (method, path string, err error) {
	words := strings.Fields(strings.Join(args, " "))
	switch len(words) {
	case 0:
		return "", "", errors.New("no request given, such as 'GET /api/x', and no --descriptor")
	case 1:
		return "GET", words[0], nil
	case 2:
		return words[0], words[1], nil
	default:
		return "", "", fmt.Errorf("found %d words, want a method and a path", len(words))
	}
}

func headerLines(lines []string) ([]explain.Header, error) {
	var all []explain.Header
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, errors.New("--header: found a line without a name and a colon, want 'NAME: VALUE'")
		}
		all = append(all, explain.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	return all, nil
}

// pairs reads KEY=VALUE texts of the flag name.
func pairs(name string, texts []string) (map[string]string, error) {
	all := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--%s: found a text without a key and =, want KEY=VALUE", name)
		}
		all[key] = value
	}
	return all, nil
}

// jwtFilter and jwtPayload are where verified claims are in dynamic metadata.
const (
	jwtFilter  = "envoy.filters.http.jwt_authn"
	jwtPayload = "jwt_payload"
)

// dynamic returns the dynamic metadata, the claims among it.
func (o *explainOptions) dynamic() (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	if o.metadata != "" {
		if err := json.Unmarshal([]byte(o.metadata), &all); err != nil {
			return nil, fmt.Errorf("--metadata: want a JSON object of objects, by filters' names: %w", err)
		}
	}
	texts, err := pairs("claim", o.claims)
	if err != nil || len(texts) == 0 {
		return all, err
	}
	claims := map[string]any{}
	for key, text := range texts {
		var value any = text
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value = text
		}
		claims[key] = value
	}
	if all[jwtFilter] == nil {
		all[jwtFilter] = map[string]any{}
	}
	all[jwtFilter][jwtPayload] = claims
	return all, nil
}

// descriptor reads entries that are divided by commas.
func descriptor(text string) explain.Descriptor {
	var d explain.Descriptor
	for _, part := range splitCommas(text) {
		e, _ := descriptors.Split(part)
		d = append(d, explain.Entry(e))
	}
	return d
}

// splitCommas splits s at its commas, of which \, is none.
func splitCommas(s string) []string {
	var parts []string
	part := ""
	for {
		before, after, found := strings.Cut(s, ",")
		escaped := found && strings.HasSuffix(before, `\`)
		if escaped {
			before = strings.TrimSuffix(before, `\`) + ","
		}
		part, s = part+before, after
		if escaped {
			continue
		}
		parts, part = append(parts, part), ""
		if !found {
			return parts
		}
	}
}
