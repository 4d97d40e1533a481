package response

import (
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

const exposeHeaders = "Access-Control-Expose-Headers"

// tell adds the headers that the rule's file asks for beside the rate limit's:
// the rule's name, and what makes a browser show ours to scripts.
func (resp *Response) tell(o limiter.Outcome, r Request) {
	if own := name(o, ruleField); own != "" {
		resp.add(own, text(o.Rule.Name))
	}
	if len(o.Rule.Headers.CORS) == 0 {
		return
	}
	if names := resp.exposed(); names != "" {
		resp.add(exposeHeaders, names)
	}
	if !resp.Allowed {
		resp.allowOrigin(o.Rule.Headers.CORS, r.Origin)
	}
}

// exposed lists the headers of resp that a browser would hide from scripts.
func (resp *Response) exposed() string {
	names := make([]string, 0, len(resp.Headers))
	for _, h := range resp.Headers {
		if h.Name != "content-type" {
			names = append(names, h.Name)
		}
	}
	return strings.Join(names, ", ")
}

// allowOrigin lets scripts of origin see a denial, if it is one of allowed.
// What is allowed comes from its upstream, whose word that is. Cookies make no
// difference: a denial tells them nothing that they are not asked for.
func (resp *Response) allowOrigin(allowed []string, origin string) {
	if slices.Contains(allowed, "*") {
		resp.add("Access-Control-Allow-Origin", "*")
		return
	}
	if slices.Contains(allowed, origin) {
		resp.add("Access-Control-Allow-Origin", origin)
		resp.add("Access-Control-Allow-Credentials", "true")
	}
	resp.add("Vary", "Origin")
}
