package cases_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// An answer is what a door said, in the words of a case.
type answer struct {
	allowed bool
	facts   map[string]string // status, rule and the like; headers as "name:"
	body    string
}

// ask puts a question as often as answers are wanted, and compares them.
func (s *scene) ask(t *testing.T, line string, words []string) {
	t.Helper()
	arrow := slices.Index(words, "=>")
	if arrow < 0 || arrow+1 == len(words) {
		t.Fatalf("%s: want => and answers", line)
	}
	want := letters(t, words[arrow+1])
	var got strings.Builder
	var last answer
	for n := range len(want) {
		question := make([]string, arrow)
		for i, w := range words[:arrow] {
			question[i] = strings.ReplaceAll(w, "{n}", strconv.Itoa(n+1))
		}
		if question[0] == "rls" {
			last = s.askRLS(t, question[1:])
		} else {
			last = s.askAuthz(t, question)
		}
		got.WriteByte("DA"[index(last.allowed)])
	}
	if got.String() != want {
		t.Errorf("%s: got %s, want %s", line, got.String(), want)
	}
	for _, w := range words[arrow+2:] {
		last.wants(t, line, w)
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// letters writes out 3A2D as AAADD.
func letters(t *testing.T, short string) string {
	t.Helper()
	var b strings.Builder
	digits := ""
	for _, r := range short {
		if r != 'A' && r != 'D' {
			digits += string(r)
			continue
		}
		n := 1
		if digits != "" {
			var err error
			if n, err = strconv.Atoi(digits); err != nil {
				t.Fatal(err)
			}
		}
		b.WriteString(strings.Repeat(string(r), n))
		digits = ""
	}
	return b.String()
}

// wants compares a with one word behind the answers.
func (a *answer) wants(t *testing.T, line, word string) {
	t.Helper()
	if part, body := strings.CutPrefix(word, "body="); body {
		if !strings.Contains(a.body, part) || part == "" && a.body != "" {
			t.Errorf("%s: body %q, want %q in it", line, a.body, part)
		}
		return
	}
	name, value, header := strings.Cut(word, ": ")
	switch {
	case header:
		name = strings.ToLower(name) + ":"
	case word[0] == '!':
		name, value = strings.ToLower(word[1:])+":", ""
	default:
		name, value, _ = strings.Cut(word, "=")
	}
	if got := a.facts[name]; got != value {
		t.Errorf("%s: %s %q, want %q", line, name, got, value)
	}
}

func (s *scene) askAuthz(t *testing.T, words []string) answer {
	t.Helper()
	if len(words) < 3 {
		t.Fatalf("%q: want a peer, a method and a path", words)
	}
	http := &authv3.AttributeContext_HttpRequest{Method: words[1], Path: words[2], Host: "example.com", Headers: map[string]string{}}
	attrs := &authv3.AttributeContext{Source: &authv3.AttributeContext_Peer{Address: peer(words[0])}, Request: &authv3.AttributeContext_Request{Http: http}}
	claims := map[string]any{}
	for _, w := range words[3:] {
		if name, value, ok := strings.Cut(w, ":"); ok && name != "claim" {
			http.Headers[name] = strings.TrimSpace(value)
		} else {
			name, value, _ = strings.Cut(value, "=")
			claims[name] = value
		}
	}
	if len(claims) > 0 {
		attrs.MetadataContext = payload(t, claims)
	}
	resp, err := s.authz.Check(t.Context(), &authv3.CheckRequest{Attributes: attrs})
	if err != nil {
		t.Fatalf("Check(%q) = %v, want no error", words, err)
	}
	return ofCheck(resp)
}

func peer(addr string) *corev3.Address {
	if addr == "-" {
		return nil
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: addr}}}
}

// payload is what the filter that verifies tokens leaves of one.
func payload(t *testing.T, claims map[string]any) *corev3.Metadata {
	t.Helper()
	fields, err := structpb.NewStruct(map[string]any{"idp": claims})
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.filters.http.jwt_authn": fields}}
}

func ofCheck(resp *authv3.CheckResponse) answer {
	a := answer{allowed: resp.GetStatus().GetCode() == 0, facts: facts(resp.GetDynamicMetadata())}
	a.body = resp.GetDeniedResponse().GetBody()
	if !a.allowed {
		a.facts["status"] = strconv.Itoa(int(resp.GetDeniedResponse().GetStatus().GetCode()))
	}
	for _, h := range append(resp.GetOkResponse().GetResponseHeadersToAdd(), resp.GetDeniedResponse().GetHeaders()...) {
		a.header(h.GetHeader())
	}
	return a
}

func facts(metadata *structpb.Struct) map[string]string {
	all := make(map[string]string)
	for name, v := range metadata.GetFields() {
		all[name] = v.GetStringValue()
	}
	return all
}

// header adds a header, and shows one that is there twice.
func (a *answer) header(h *corev3.HeaderValue) {
	name := strings.ToLower(h.GetKey()) + ":"
	if before, twice := a.facts[name]; twice {
		a.facts[name] = before + " twice"
		return
	}
	a.facts[name] = h.GetValue()
}

func (s *scene) askRLS(t *testing.T, words []string) answer {
	t.Helper()
	req := &rlsv3.RateLimitRequest{Domain: words[0]}
	for _, w := range words[1:] {
		if hits, ok := strings.CutPrefix(w, "hits="); ok {
			req.HitsAddend = uint32(parse(t, hits))
			continue
		}
		req.Descriptors = append(req.Descriptors, descriptor(t, w))
	}
	resp, err := s.rls.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatalf("ShouldRateLimit(%q) = %v, want no error", words, err)
	}
	return ofRLS(resp)
}

// descriptor reads user=u1,site*3@2/HOUR: entries, and hits and a limit of their
// own.
func descriptor(t *testing.T, word string) *rlcommonv3.RateLimitDescriptor {
	t.Helper()
	d := new(rlcommonv3.RateLimitDescriptor)
	entries, limit, own := strings.Cut(word, "@")
	entries, hits, counted := strings.Cut(entries, "*")
	if counted {
		d.HitsAddend = wrapperspb.UInt64(parse(t, hits))
	}
	for entry := range strings.SplitSeq(entries, ",") {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &rlcommonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	if own {
		n, unit, _ := strings.Cut(limit, "/")
		d.Limit = &rlcommonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: uint32(parse(t, n)), Unit: typev3.RateLimitUnit(typev3.RateLimitUnit_value[unit]),
		}
	}
	return d
}

func parse(t *testing.T, number string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ofRLS(resp *rlsv3.RateLimitResponse) answer {
	a := answer{allowed: resp.GetOverallCode() == rlsv3.RateLimitResponse_OK, facts: facts(resp.GetDynamicMetadata()), body: string(resp.GetRawBody())}
	var current, left []string
	for _, s := range resp.GetStatuses() {
		a.facts["statuses"] += "DA"[index(s.GetCode() == rlsv3.RateLimitResponse_OK):][:1]
		current = append(current, strconv.FormatUint(uint64(s.GetCurrentLimit().GetRequestsPerUnit()), 10)+"/"+s.GetCurrentLimit().GetUnit().String())
		left = append(left, strconv.FormatUint(uint64(s.GetLimitRemaining()), 10))
	}
	a.facts["current"], a.facts["left"] = strings.Join(current, ","), strings.Join(left, ",")
	for _, h := range resp.GetResponseHeadersToAdd() {
		a.header(h)
	}
	return a
}
