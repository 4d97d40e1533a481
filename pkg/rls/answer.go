package rls

import (
	"math"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// The lengths of a unit that Envoy counts by.
const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 30 * day
	year  = 365 * day
)

// answering is what an answer is made of. ends[i] is where the rules of
// descriptor i end in the decision; it is nil without any.
type answering struct {
	*limiter.Decision
	ends []int
	now  func() time.Time
}

// answer says the decision in Envoy's words: overall_code decides, and the
// statuses feed the headers that Envoy itself writes.
func (a answering) answer(r response.Response, descriptors int) *rlsv3.RateLimitResponse {
	resp := &rlsv3.RateLimitResponse{
		OverallCode:          rlsv3.RateLimitResponse_OK,
		Statuses:             a.statuses(descriptors),
		ResponseHeadersToAdd: headers(r.Headers),
		DynamicMetadata:      fields(r.Metadata),
	}
	if passed := a.passed(); passed != nil {
		resp.DynamicMetadata.Fields["metadata"] = structpb.NewStructValue(passed)
	}
	if !a.Allowed {
		resp.OverallCode = rlsv3.RateLimitResponse_OVER_LIMIT
		resp.RawBody = []byte(r.Body)
	}
	return resp
}

func (a answering) statuses(descriptors int) []*rlsv3.RateLimitResponse_DescriptorStatus {
	all := make([]*rlsv3.RateLimitResponse_DescriptorStatus, descriptors)
	for i := range all {
		all[i] = a.status(a.span(i))
	}
	return all
}

// span returns where the rules of descriptor i begin and end.
func (a answering) span(i int) (from, to int) {
	if i >= len(a.ends) {
		return 0, 0
	}
	if i > 0 {
		from = a.ends[i-1]
	}
	return from, a.ends[i]
}

// status describes the rules from from up to to, those of one descriptor, by
// the one that decides among them. Without one it is OK, and Envoy writes no
// header of it.
func (a answering) status(from, to int) *rlsv3.RateLimitResponse_DescriptorStatus {
	s := &rlsv3.RateLimitResponse_DescriptorStatus{Code: rlsv3.RateLimitResponse_OK}
	if a.Unavailable(from, to) {
		s.Code = rlsv3.RateLimitResponse_OVER_LIMIT
		return s
	}
	place := a.Tightest(from, to)
	if place < 0 {
		place = a.shown(from, to)
	}
	if place < 0 {
		s.LimitRemaining = a.boundless(from, to)
		return s
	}
	o := a.Outcome(place)
	if !o.Allowed && !a.Applied[place].Shadow {
		s.Code = rlsv3.RateLimitResponse_OVER_LIMIT
	}
	s.CurrentLimit = currentLimit(o)
	s.LimitRemaining = clamp(o.Remaining)
	if !o.Hopeless {
		s.DurationUntilReset = &durationpb.Duration{Seconds: o.SecondsAt(a.now())}
	}
	return s
}

// shown returns the place of a rule in shadow that is shown all the same, -1
// for none: a tree's are.
func (a answering) shown(from, to int) int {
	for i := from; i < min(to, len(a.Results)); i++ {
		if p := &a.Applied[i]; p.Rule.Leaf != nil && p.Shadow && !p.Unlimited && a.Results[i].Err == nil {
			return i
		}
	}
	return -1
}

// boundless is what remains where no limit is told: everything, if a rule says
// that there is none.
func (a answering) boundless(from, to int) uint32 {
	for i := from; i < min(to, len(a.Results)); i++ {
		if a.Applied[i].Unlimited {
			return math.MaxUint32
		}
	}
	return 0
}

// currentLimit describes a limit by its burst and its period. A period that is
// no whole number of seconds has no unit in Envoy's terms.
func currentLimit(o limiter.Outcome) *rlsv3.RateLimitResponse_RateLimit {
	name := o.Rule.Name
	if o.Rule.Leaf != nil {
		name = o.Limit.Name
	}
	l := &rlsv3.RateLimitResponse_RateLimit{Name: unquoted(name), RequestsPerUnit: clamp(o.Limit.Burst)}
	var n time.Duration
	l.Unit, n = unit(o.Limit.Per)
	if n > 1 {
		l.UnitMultiplier = wrapperspb.UInt32(clamp(int64(n)))
	}
	return l
}

var units = [...]struct {
	length time.Duration
	unit   rlsv3.RateLimitResponse_RateLimit_Unit
}{
	{year, rlsv3.RateLimitResponse_RateLimit_YEAR},
	{month, rlsv3.RateLimitResponse_RateLimit_MONTH},
	{week, rlsv3.RateLimitResponse_RateLimit_WEEK},
	{day, rlsv3.RateLimitResponse_RateLimit_DAY},
	{time.Hour, rlsv3.RateLimitResponse_RateLimit_HOUR},
	{time.Minute, rlsv3.RateLimitResponse_RateLimit_MINUTE},
	{time.Second, rlsv3.RateLimitResponse_RateLimit_SECOND},
}

// unit returns the largest unit that per is a whole number of, and the number.
func unit(per time.Duration) (rlsv3.RateLimitResponse_RateLimit_Unit, time.Duration) {
	for _, u := range units {
		if per >= u.length && per%u.length == 0 {
			return u.unit, per / u.length
		}
	}
	return rlsv3.RateLimitResponse_RateLimit_UNKNOWN, 0
}

// headers drops what Envoy's rate limit filter writes by itself; what we add
// comes on top of that, and would be there twice. It drops what depends on an
// origin too, which descriptors do not tell.
func headers(hs []response.Header) []*corev3.HeaderValue {
	var added []*corev3.HeaderValue
	for _, h := range hs {
		if !envoys(h.Name) {
			added = append(added, &corev3.HeaderValue{Key: h.Name, Value: h.Value})
		}
	}
	return added
}

func envoys(name string) bool {
	switch strings.ToLower(name) {
	case "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-envoy-ratelimited", "grpc-status", "vary":
		return true
	default:
		return false
	}
}

// unquoted drops from a rule's name what would break out of the quotes that
// Envoy puts it in, unescaped.
func unquoted(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, name)
}

func clamp(n int64) uint32 {
	return uint32(min(max(n, 0), math.MaxUint32))
}

// fields writes what is said of a decision as dynamic metadata.
func fields(facts []response.Header) *structpb.Struct {
	texts := make([]structpb.Value_StringValue, len(facts))
	values := make([]structpb.Value, len(facts))
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(facts))}
	for i, f := range facts {
		texts[i].StringValue = f.Value
		values[i].Kind = &texts[i]
		s.Fields[f.Name] = &values[i]
	}
	return s
}
