package policy

// A Rule is what later steps need to know of a rule: names and prepared
// answers. It never changes once the policy is compiled.
type Rule struct {
	Domain string // of its file
	Name   string // its only one in the file
	Shadow bool
	// Descriptor says that the rule limits descriptors, over RLS, and no
	// requests.
	Descriptor bool
	// OnError is what becomes of a request when the store does not answer.
	OnError OnError
	Deny    Deny
	Headers *Headers // its file's; never nil in a compiled policy
	// Leaf is what only a rule of a tree has; nil for others.
	Leaf *Leaf
}

// A Leaf is what a rule has besides that comes from a file of
// envoyproxy/ratelimit's format. Its Name there is the way to it, key by key,
// as metrics show it.
type Leaf struct {
	// Quota says that a denial by this rule denies the request only if all its
	// quotas deny.
	Quota bool
	// Replaces names the rules that do not hold for a request for which this
	// one does.
	Replaces []string
	// Metadata is passed on in answers to requests that the rule lets pass. It
	// is made of maps with text as keys, lists, text, numbers and truth values,
	// and is read only.
	Metadata map[string]any

	names []string // by which others may replace it
}

// OnError is what a rule wants when its store does not answer.
type OnError uint8

// What a rule wants when its store does not answer. The zero value is Local,
// the documented default.
const (
	Local OnError = iota
	Allow
	Deny503 // deny: 503, over RLS OVER_LIMIT
)

// Deny is the answer to a denied request.
type Deny struct {
	Status      int    // 400 to 599; 0 means 429
	ContentType string // "" with a body means text/plain
	// Body may have {path}, {rule}, {retry_after}, {retry_after_ms}, {method}
	// and {host}. Without one, the ContentType application/problem+json is
	// answered by a body that says which limits were exceeded.
	Body string
}

// Headers says which rate-limit headers an answer carries, under which names,
// and who may read them.
type Headers struct {
	Style                                       Style
	Limit, Remaining, Reset, RetryAfter, Policy string // "" means the style's own name
	Rule                                        string // of the header that names the rule; "" means none
	// CORS are the origins whose scripts may read our headers, and our
	// denials; "*" is every origin.
	CORS []string
}

// Style is a family of rate-limit headers.
type Style uint8

// The styles. The zero value is the documented default.
const (
	XRateLimit Style = iota
	IETF
	Both
	None
)
