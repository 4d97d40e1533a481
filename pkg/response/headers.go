package response

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A field is one of the header names that a policy may change.
type field int

const (
	limit field = iota
	remaining
	reset
	retryAfter
	policyField
	ruleField
)

var ownNames = [...]string{
	limit: "X-RateLimit-Limit", remaining: "X-RateLimit-Remaining", reset: "X-RateLimit-Reset",
	retryAfter: "Retry-After", policyField: "RateLimit-Policy", ruleField: "",
}

// name returns the header's own name or the policy's for it, "" if it has
// neither.
func name(o limiter.Outcome, f field) string {
	if given := givenName(o, f); given != "" {
		return given
	}
	return ownNames[f]
}

func givenName(o limiter.Outcome, f field) string {
	h := o.Rule.Headers
	switch {
	case h == nil:
		return ""
	case f == limit:
		return h.Limit
	case f == remaining:
		return h.Remaining
	case f == reset:
		return h.Reset
	case f == retryAfter:
		return h.RetryAfter
	case f == policyField:
		return h.Policy
	default:
		return h.Rule
	}
}

// numbers are those of an outcome, as text: headers and metadata say the same.
type numbers struct{ limit, remaining, seconds string }

// numbersOf writes them into one text, of which each is a part.
func numbersOf(o limiter.Outcome) numbers {
	var space [64]byte
	b := strconv.AppendInt(space[:0], o.Limit.Burst, 10)
	limit := len(b)
	b = strconv.AppendInt(b, o.Remaining, 10)
	remaining := len(b)
	b = strconv.AppendInt(b, o.Seconds(), 10)
	text := string(b)
	return numbers{text[:limit], text[limit:remaining], text[remaining:]}
}

// limitHeaders appends to hs the headers of the families that the rule's file
// asks for.
func limitHeaders(hs []Header, o limiter.Outcome, n numbers, r Request) []Header {
	x, ietf := o.Families()
	if x && !r.leaves(o) {
		hs = append(hs, Header{name(o, limit), n.limit}, Header{name(o, remaining), n.remaining})
		if !o.Hopeless {
			hs = append(hs, Header{name(o, reset), n.seconds})
		}
	}
	if ietf {
		hs = append(hs, Header{name(o, policyField), ietfPolicy(o)}, Header{"RateLimit", ietfLimit(o)})
	}
	return hs
}

// leaves says that the X-RateLimit headers are left to who asks. Scripts that
// may see them must be told their names all the same.
func (r Request) leaves(o limiter.Outcome) bool {
	h := o.Rule.Headers
	return r.Limits && (h == nil || len(h.CORS) == 0 && h.Limit == "" && h.Remaining == "" && h.Reset == "")
}

// maxInteger is the largest integer of a structured field.
const maxInteger = 999_999_999_999_999

// quotaName names the limit to clients: by its rule and, if it has one, its own
// name.
func quotaName(o limiter.Outcome) string {
	if o.Limit.Name == "" {
		return o.Rule.Name
	}
	return o.Rule.Name + "/" + o.Limit.Name
}

// ietfPolicy writes the limit as draft-ietf-httpapi-ratelimit-headers has it.
// Its window is the time in which the whole burst comes back, so that a client
// that spreads q over w is never denied.
func ietfPolicy(o limiter.Outcome) string {
	b := append(quoted(quotaName(o)), ";q="...)
	b = strconv.AppendInt(b, min(o.Limit.Burst, maxInteger), 10)
	if w := o.Window(); w > 0 {
		b = strconv.AppendInt(append(b, ";w="...), w, 10)
	}
	return string(b)
}

func ietfLimit(o limiter.Outcome) string {
	b := append(quoted(quotaName(o)), ";r="...)
	b = strconv.AppendInt(b, min(o.Remaining, maxInteger), 10)
	if !o.Hopeless {
		b = strconv.AppendInt(append(b, ";t="...), o.Seconds(), 10)
	}
	return string(b)
}

// quoted writes s as a string of a structured field, which is printable ASCII.
// Other characters become a question mark each.
func quoted(s string) []byte {
	b := append(make([]byte, 0, len(s)+32), '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r > '~':
			b = append(b, '?')
		default:
			b = append(b, byte(r))
		}
	}
	return append(b, '"')
}

// contentType returns a body's type, plain text unless the rule says it.
func contentType(s string) string {
	if s == "" {
		return "text/plain"
	}
	return text(s)
}

// text returns s without control bytes and without what is not UTF-8: it may
// stand in a header and in a protobuf string.
func text(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f || s[i] >= utf8.RuneSelf {
			return strings.Map(printable, strings.ToValidUTF8(s, ""))
		}
	}
	return s
}

// printable drops the control characters of ASCII and of Latin-1, whose bytes
// some readers take for the former.
func printable(r rune) rune {
	if r < ' ' || (r >= 0x7f && r < 0xa0) {
		return -1
	}
	return r
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
