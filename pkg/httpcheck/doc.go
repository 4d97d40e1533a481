// Package httpcheck is the door for proxies that ask over plain HTTP: Envoy's
// http_service, Istio, Traefik, Caddy and nginx. It turns such a check into
// attributes, and at the end the answer into an HTTP response. It makes no
// decision of its own, and serves no other page.
//
// # One dialect
//
// Each proxy has its own way to say which request it asks about, and passes on
// what a client wrote in the way of any other. So a Handler speaks one dialect:
//
//	dialect  method             path and query   host              the proxy's peer
//	envoy    the check's own    the check's own  Host              the caller
//	istio    the check's own    the check's own  Host              the caller
//	traefik  X-Forwarded-Method X-Forwarded-Uri  X-Forwarded-Host  X-Forwarded-For
//	caddy    X-Forwarded-Method X-Forwarded-Uri  X-Forwarded-Host  X-Forwarded-For
//	nginx    X-Original-Method  X-Original-URI   Host              X-Real-IP
//
// All other headers are the client's and mean nothing here. A check without
// the method or the path is answered 400 and logged: nginx sends them only if
// it is told to, and until then it would pass on a client's.
//
// The scheme is what X-Forwarded-Proto says, except with nginx, which passes on
// a client's. The time is ours. The size is that of the body that Envoy was told
// to send along (with_request_body), unless it sends a part only. No dialect
// tells the protocol.
//
// # Whose word
//
// A check comes from a proxy, and only from one that Options.Callers names.
// Anybody else is answered 403, since who may ask may say anything.
//
// Attributes.Source is the proxy's peer, as it is for a check over gRPC, so
// that one policy means the same at both doors: the peer is the client unless
// the policy trusts it, and an identity header is believed only from a peer
// that it trusts. To take the caller itself for the source would be simpler and
// wrong: a policy would have to trust the proxy to tell clients apart, and
// would then believe every header that the proxy passes on.
//
// The proxy names its peer in the dialect's header, or in Options.PeerHeader:
// of a list the last entry, which Traefik and Caddy write themselves, and which
// stands alone where nginx sets it. Where that header is absent the source is
// the caller; where it is no address there is no source.
//
// Envoy names its peer in no header of its own accord. Without a PeerHeader
// the caller is the source: a policy that trusts it walks X-Forwarded-For from
// there, and believes what Envoy was told to pass on (allowed_headers). Better
// is a header that Envoy stamps on each check and a client cannot touch
// (headers_to_add with %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%), named
// as PeerHeader. A policy's stamp is found by the same name.
//
// # Answers
//
// To allow is 200, never 204, which Envoy takes for a denial. A denial has the
// decision's own status, unless the proxy would take that for a failure: see
// Options.DenyStatus. A target that net/http does not read, as /100% is, is
// answered 400 before it comes here.
package httpcheck
