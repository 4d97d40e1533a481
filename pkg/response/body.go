package response

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// problemType is the media type of problem details.
const problemType = "application/problem+json"

// A problem is the problem type "quota-exceeded", which the draft of the
// RateLimit fields defines.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies"` // as RateLimit-Policy names them
}

// denialBody returns the rule's body, filled in, or the one that its content
// type stands for; "" if it wants none.
func denialBody(d *limiter.Decision, o limiter.Outcome, r Request, status int) string {
	if o.Rule.Deny.Body != "" {
		return body(o, r)
	}
	if mediaType(o.Rule.Deny.ContentType) != problemType {
		return ""
	}
	p := problem{
		Type:   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: status,
	}
	for _, i := range d.Lacking() {
		p.Violated = append(p.Violated, quotaName(d.Outcome(i)))
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "" // never: text and numbers can be written
	}
	return string(text)
}

// body fills in the rule's body. Other words in braces stay as they are: a
// JSON text is full of them.
func body(o limiter.Outcome, r Request) string {
	var b strings.Builder
	escape := escaper(o.Rule.Deny.ContentType)
	for rest := o.Rule.Deny.Body; ; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		word, tail, closed := strings.Cut(after, "}")
		value, known := placeholder(word, o, r)
		if !closed || !known {
			b.WriteByte('{')
			rest = after
			continue
		}
		b.WriteString(escape(value))
		rest = tail
	}
}

// placeholder returns what stands for {word}. A wait is 0 where none
// would help, so that a body of JSON stays one.
func placeholder(word string, o limiter.Outcome, r Request) (string, bool) {
	switch word {
	case "path":
		path, _, _ := strings.Cut(r.Path, "?")
		return path, true
	case "rule":
		return o.Rule.Name, true
	case "retry_after":
		return decimal(o.Seconds()), true
	case "retry_after_ms":
		return decimal(o.Milliseconds()), true
	case "method":
		return r.Method, true
	case "host":
		return r.Host, true
	default:
		return "", false
	}
}

// escaper returns what makes a client's text harmless in a body of the given
// type. The result is always valid UTF-8.
func escaper(contentType string) func(string) string {
	switch mediaType := mediaType(contentType); {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return jsonEscape
	case mediaType == "text/html" || mediaType == "text/xml" || mediaType == "application/xml" || strings.HasSuffix(mediaType, "+xml"):
		return func(s string) string { return html.EscapeString(text(s)) }
	default:
		return text
	}
}

// mediaType returns the type without its parameters, in lower case.
func mediaType(contentType string) string {
	bare, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(bare))
}

// jsonEscape returns s as it stands between the quotes of a JSON string, safe
// inside HTML too.
func jsonEscape(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return "" // never: every string can be written
	}
	return escapeControls(string(quoted[1 : len(quoted)-1]))
}

// escapeControls escapes the control characters that JSON lets pass, in text
// that is JSON otherwise.
func escapeControls(s string) string {
	var b strings.Builder
	for _, r := range s {
		if printable(r) < 0 {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
