package response_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

func TestForBody(t *testing.T) {
	t.Parallel()
	const evil = "/a\"b\\c\r\n<script>&\x00\x7f'"
	for name, tc := range map[string]struct {
		contentType, body string
		request           response.Request
		want              string
	}{
		"nothing to fill in": {"", "slow down", response.Request{Path: "/x"}, "slow down"},
		"all of them": {
			"text/plain", "{rule} {path} {method} {host} {retry_after}",
			response.Request{Path: "/x/y?z=1", Method: "POST", Host: "example.com:80"},
			"api /x/y POST example.com:80 2",
		},
		"B076 in milliseconds":      {"", "{retry_after_ms}", response.Request{}, "1100"},
		"other braces":              {"", "{a}{path{path}} {", response.Request{Path: "/x"}, "{a}{path/x} {"},
		"what is filled in is text": {"", "{path}", response.Request{Path: "/{rule}"}, "/{rule}"},
		"not decoded":               {"", "{path}", response.Request{Path: "/%41%0d%0a//..?a=b"}, "/%41%0d%0a//.."},
		"no path":                   {"", "<{path}>", response.Request{}, "<>"},
		"json": {
			"application/json", `{"errorMsg":"Too many requests","blockedUrl":"{path}"}`,
			response.Request{Path: evil},
			`{"errorMsg":"Too many requests","blockedUrl":"/a\"b\\c\r\n\u003cscript\u003e\u0026\u0000\u007f'"}`,
		},
		"json with parameters": {"Application/JSON; charset=utf-8", `{path}`, response.Request{Path: `/"`}, `/\"`},
		"problem+json":         {"application/problem+json", `{host}`, response.Request{Host: "a\"\xff"}, `a\"\ufffd`},
		"html":                 {"text/html; charset=utf-8", "<p>{path}</p>", response.Request{Path: evil}, "<p>/a&#34;b\\c&lt;script&gt;&amp;&#39;</p>"},
		"xhtml":                {"application/xhtml+xml", "{path}", response.Request{Path: "/<"}, "/&lt;"},
		"plain":                {"text/plain", "{path}", response.Request{Path: evil}, `/a"b\c<script>&'`},
		"not UTF-8":            {"", "{path}", response.Request{Path: "/a\xff\xc3b\u0085é"}, "/abé"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := policy.Rule{Name: "api", Deny: policy.Deny{ContentType: tc.contentType, Body: tc.body}}
			got := response.For(decision(t, rule, bucket.Result{RetryAfter: 1100 * time.Millisecond}), tc.request)
			if got.Body != tc.want {
				t.Errorf("For(%q, %+v) = body %q, want %q", tc.body, tc.request, got.Body, tc.want)
			}
		})
	}
}

func TestForContentType(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ contentType, body, want string }{
		{"", "", ""},
		{"text/html", "", ""},
		{"", "b", "content-type: text/plain\n"},
		{"text/html", "b", "content-type: text/html\n"},
		{"text/html\r\nx-evil: 1", "b", "content-type: text/htmlx-evil: 1\n"},
	} {
		rule := policy.Rule{Headers: &policy.Headers{Style: policy.None}, Deny: policy.Deny{ContentType: tc.contentType, Body: tc.body}}
		got := lines(response.For(decision(t, rule, hopeless), response.Request{}).Headers)
		if want := "x-envoy-ratelimited: true\n" + tc.want; got != want {
			t.Errorf("For(%q, %q) = headers %q, want %q", tc.contentType, tc.body, got, want)
		}
	}
}

func TestForNoWaitInBody(t *testing.T) {
	t.Parallel()
	rule := policy.Rule{Deny: policy.Deny{ContentType: "application/json", Body: `{"wait":{retry_after}}`}}
	if got, want := response.For(decision(t, rule, hopeless), response.Request{}).Body, `{"wait":0}`; got != want {
		t.Errorf("For(no wait helps) = body %q, want %q", got, want)
	}
}

func TestForQuotesNames(t *testing.T) {
	t.Parallel()
	rule := policy.Rule{Name: "a\"b\\c\r\né", Headers: &policy.Headers{Style: policy.IETF}}
	got := lines(response.For(decision(t, rule, room), response.Request{}).Headers)
	want := `RateLimit-Policy: "a\"b\\c???";q=20;w=40` + "\n" + `RateLimit: "a\"b\\c???";r=7;t=26` + "\n"
	if got != want {
		t.Errorf("For(rule %q) = headers %q, want %q", rule.Name, got, want)
	}
}

// Whatever a client and a policy write, no header has a control byte, every
// text is UTF-8, and a JSON body stays one with the path inside it.
func FuzzFor(f *testing.F) {
	f.Add("/a?b", "GET", "h", "application/json", "api")
	f.Add("/\r\nx: 1", "G\x00T", "\xff", "text/html", "a\"\r\nb")
	f.Add("/\u2028\u0085</script>", "", "h\x7f", "text/plain\r\nset-cookie: a=b", "\xc3\x28")
	f.Fuzz(func(t *testing.T, path, method, host, contentType, name string) {
		rule := policy.Rule{
			Name: name, Headers: &policy.Headers{Style: policy.Both},
			Deny: policy.Deny{ContentType: contentType, Body: `{"p":"{path}","m":"{method}","h":"{host}","r":"{rule}","s":{retry_after}}`},
		}
		r := response.For(decision(t, rule, lacking), response.Request{Path: path, Method: method, Host: host, GRPC: true})
		for _, h := range append(r.Headers, r.Metadata...) {
			if strings.ContainsFunc(h.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) || !utf8.ValidString(h.Value) {
				t.Errorf("For(%q) has header %+v, want no control byte", path, h)
			}
		}
		harmless(t, r.Body)
		rule.Deny.ContentType = "application/json"
		r = response.For(decision(t, rule, lacking), response.Request{Path: path})
		harmless(t, r.Body)
		var got struct{ P string }
		if err := json.Unmarshal([]byte(r.Body), &got); err != nil {
			t.Fatalf("For(%q) = body %q, want JSON: %v", path, r.Body, err)
		}
		if want, _, _ := strings.Cut(path, "?"); strings.ToValidUTF8(want, "\ufffd") != got.P && utf8.ValidString(want) {
			t.Errorf("For(%q) = path %q in the body, want %q", path, got.P, want)
		}
	})
}

// The problem type quota-exceeded names every rule that had no room, as
// RateLimit-Policy would, and none that had.
func TestForProblem(t *testing.T) {
	t.Parallel()
	deny := policy.Deny{ContentType: "application/problem+json", Status: 403}
	d := decision(t, policy.Rule{Name: "first", Deny: deny}, lacking)
	for _, more := range []struct {
		name   string
		shadow bool
		result bucket.Result
	}{{"room", false, room}, {"second", false, hopeless}, {"shadow", true, lacking}, {"down", false, bucket.Result{Err: errors.New("timeout")}}} {
		next := decision(t, policy.Rule{Name: more.name}, more.result)
		next.Applied[0].Shadow = more.shadow
		d.Applied, d.Results = append(d.Applied, next.Applied...), append(d.Results, next.Results...)
	}
	got := response.For(d, response.Request{})
	want := map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "Request cannot be satisfied as assigned quota has been exceeded",
		"status": 403.0, "violated-policies": []any{"first", "second"},
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
		t.Fatalf("Unmarshal(%s) = %v, want no error", got.Body, err)
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("For() body (-want +got):\n%s", diff)
	}
	if last := got.Headers[len(got.Headers)-1]; last != (response.Header{Name: "content-type", Value: "application/problem+json"}) {
		t.Errorf("For() has %v last, want the problem's content type", last)
	}
}

func harmless(t *testing.T, body string) {
	t.Helper()
	if strings.ContainsFunc(body, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) || !utf8.ValidString(body) {
		t.Errorf("For() = body %q, want UTF-8 and no control character", body)
	}
}
