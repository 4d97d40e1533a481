package response

import (
	"encoding/json"
	"html"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

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

// placeholder returns what stands for {word}. {retry_after} is 0 where no wait
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
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	switch {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return jsonEscape
	case mediaType == "text/html" || mediaType == "text/xml" || mediaType == "application/xml" || strings.HasSuffix(mediaType, "+xml"):
		return func(s string) string { return html.EscapeString(text(s)) }
	default:
		return text
	}
}

// jsonEscape returns s as it stands between the quotes of a JSON string, safe
// inside HTML too.
func jsonEscape(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return "" // never: every string can be written
	}
	return string(quoted[1 : len(quoted)-1])
}
