// Package response turns a decision into an answer: status, headers and body
// as plain values, which each door then says in its own words.
//
// It knows nothing of Envoy, gRPC or HTTP servers, and asks no store. Whatever
// a client wrote comes out harmless: no value holds a control byte, and what
// a body repeats is escaped for the body's type.
package response

import (
	"strconv"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A Request is what an answer may repeat of the request, as it came.
type Request struct {
	Path   string // the query, if there is one, is never repeated
	Method string
	Host   string
	// Origin is the page that a browser asks for. It is only ever compared.
	Origin string
	// GRPC says that the client speaks gRPC and reads grpc-status.
	GRPC bool
	// Limits says that who asks writes X-RateLimit headers by itself. Those of
	// these names may be left out of the answer then.
	Limits bool
	// Space, unless nil, holds the headers and the facts of the answer, which
	// is good until it holds those of another.
	Space *Space
}

// RequestOf is the request that a tells of.
func RequestOf(a *identity.Attributes) Request {
	return Request{Path: a.Path, Method: a.Method, Host: a.Host, Origin: a.Headers["origin"], GRPC: a.GRPC()}
}

// A Space is room for the headers and the facts of one answer.
type Space struct {
	headers [8]Header
	facts   [5]Header
}

// A Header is one header line.
type Header struct{ Name, Value string }

// Adds says that h adds to what the upstream says by the same name. Other
// headers replace that.
func (h Header) Adds() bool { return h.Name == exposeHeaders }

// A Response is the answer to one request.
type Response struct {
	Allowed bool
	// Status is the HTTP status, 200 when allowed.
	Status int
	// Code is the gRPC status code that says the same, 0 when allowed.
	Code int
	// Headers are for the client, in a fixed order, each name once.
	Headers []Header
	// Body is empty when allowed, and unless the rule has one.
	Body string
	// Metadata are facts about the decision for the proxy's logs and later
	// filters: rule, allowed, remaining, limit and retry_after, as far as
	// there is something to say.
	Metadata []Header
}

// The gRPC status codes that answers use.
const (
	codeOK                = 0
	codeUnknown           = 2
	codeInvalidArgument   = 3
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

const (
	statusOK              = 200
	statusTooManyRequests = 429
	statusUnavailable     = 503
)

// For returns the answer that d is worth. A denial by a limit is the rule's
// status (429 unless it says otherwise) and gRPC's RESOURCE_EXHAUSTED; a
// denial because the store is down is 503 and UNAVAILABLE, and says nothing of
// why; a missing identity is its own status, with gRPC's UNAUTHENTICATED for
// 401, PERMISSION_DENIED for 403, INVALID_ARGUMENT for 400, and otherwise the
// code that gRPC clients make of that status.
func For(d limiter.Decision, r Request) Response {
	resp := answer(&d, r)
	if rule := d.Rule(); rule != nil && rule.Headers != nil {
		resp.tell(limiter.Outcome{Rule: rule}, r)
	}
	return resp
}

func answer(d *limiter.Decision, r Request) Response {
	switch {
	case d.Allowed:
		return allow(d, r)
	case d.Reason == limiter.OverLimit:
		return deny(d, r)
	case d.Reason == limiter.Refused:
		return refuse(d, r)
	default:
		return unavailable(d, r)
	}
}

func allow(d *limiter.Decision, r Request) Response {
	resp := Response{Allowed: true, Status: statusOK}
	if d.Deciding < 0 {
		resp.Metadata = allowedAlone
		return resp
	}
	if d.Reason == limiter.Unlimited {
		resp.Metadata = []Header{{"rule", text(d.Applied[d.Deciding].Rule.Name)}, allowed}
		return resp
	}
	resp.say(d.Outcome(d.Deciding), r)
	return resp
}

// say adds what an outcome has to say, in headers, of which a denial adds a few
// more, and in metadata, and returns its numbers.
func (resp *Response) say(o limiter.Outcome, r Request) numbers {
	n, space := numbersOf(o), r.Space
	if space == nil {
		space = new(Space)
	}
	resp.Headers = limitHeaders(space.headers[:0], o, n, r)
	resp.Metadata = metadata(space.facts[:0], o, n)
	return n
}

func deny(d *limiter.Decision, r Request) Response {
	o := d.Outcome(d.Deciding)
	rule := o.Rule
	resp := Response{Status: rule.Deny.Status, Code: codeResourceExhausted}
	if resp.Status == 0 {
		resp.Status = statusTooManyRequests
	}
	if n := resp.say(o, r); !o.Hopeless {
		resp.add(name(o, retryAfter), n.seconds)
	}
	resp.limited(r)
	if resp.Body = denialBody(d, o, r, resp.Status); resp.Body != "" {
		resp.add("content-type", contentType(rule.Deny.ContentType))
	}
	return resp
}

func unavailable(d *limiter.Decision, r Request) Response {
	resp := Response{Status: statusUnavailable, Code: codeUnavailable, Metadata: deniedAlone}
	if d.Deciding >= 0 {
		resp.Metadata = []Header{{"rule", text(d.Applied[d.Deciding].Rule.Name)}, denied}
	}
	resp.limited(r)
	return resp
}

func refuse(d *limiter.Decision, r Request) Response {
	resp := Response{Status: d.Refusal.Status, Code: codeFor(d.Refusal.Status), Metadata: deniedAlone}
	if d.Refusal.Rule != nil {
		resp.Metadata = []Header{{"rule", text(d.Refusal.Rule.Name)}, denied}
	}
	resp.limited(r)
	return resp
}

// limited adds what keeps an Envoy between us and the client from trying
// again, and what tells a gRPC client why.
func (resp *Response) limited(r Request) {
	resp.add("x-envoy-ratelimited", "true")
	if r.GRPC {
		resp.add("grpc-status", strconv.Itoa(resp.Code))
	}
}

func (resp *Response) add(name, value string) {
	resp.Headers = append(resp.Headers, Header{name, value})
}

// codeFor returns the gRPC code of a refusal. Beyond the first three it is
// what a gRPC client makes of the HTTP status.
func codeFor(status int) int {
	switch status {
	case 401:
		return codeUnauthenticated
	case 403:
		return codePermissionDenied
	case 400:
		return codeInvalidArgument
	case 404:
		return codeUnimplemented
	case statusTooManyRequests:
		return codeResourceExhausted
	default:
		return codeUnknown
	}
}

var (
	allowed = Header{"allowed", "true"}
	denied  = Header{"allowed", "false"}

	allowedAlone = []Header{allowed}
	deniedAlone  = []Header{denied}
)

// metadata appends the facts of an outcome to m.
func metadata(m []Header, o limiter.Outcome, n numbers) []Header {
	verdict := allowed
	if !o.Allowed {
		verdict = denied
	}
	m = append(m, Header{"rule", text(o.Rule.Name)}, verdict, Header{"remaining", n.remaining}, Header{"limit", n.limit})
	if o.Allowed || o.Hopeless {
		return m
	}
	return append(m, Header{"retry_after", n.seconds})
}
