package rls

import (
	"math"
	"strings"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/response"
	"github.com/sluice-mesh/sluice/pkg/wire"
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

// append appends the RateLimitResponse that says the decision in Envoy's words:
// overall_code decides, and the statuses feed the headers that Envoy itself
// writes. The numbers are those of the fields.
func (a answering) append(b []byte, r *response.Response, descriptors int) []byte {
	b = wire.AppendUint(b, 1, uint64(code(!a.Allowed)))
	for i := range descriptors {
		var at int
		b, at = wire.Begin(b, 2)
		b = wire.End(a.standing(a.span(i)).append(b), at)
	}
	b = appendHeaders(b, r.Headers)
	if !a.Allowed {
		b = wire.AppendString(b, 5, r.Body)
	}
	return a.appendFields(b, r.Metadata)
}

func code(over bool) rlsv3.RateLimitResponse_Code {
	if over {
		return rlsv3.RateLimitResponse_OVER_LIMIT
	}
	return rlsv3.RateLimitResponse_OK
}

func (a answering) statuses(descriptors int) []*rlsv3.RateLimitResponse_DescriptorStatus {
	all := make([]*rlsv3.RateLimitResponse_DescriptorStatus, descriptors)
	for i := range all {
		all[i] = a.standing(a.span(i)).message()
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

// A standing is how one descriptor stands: its status, as values.
type standing struct {
	over      bool
	remaining uint32
	// limited says that limit is told; where it is not, Envoy writes no header.
	limited bool
	limit   limiter.Outcome
	// waits says that seconds are told.
	waits   bool
	seconds int64
}

// standing describes the rules from from up to to, those of one descriptor, by
// the one that decides among them. Without one it is not over.
func (a answering) standing(from, to int) (s standing) {
	if s.over = a.Unavailable(from, to); s.over {
		return s
	}
	place := a.Tightest(from, to)
	if place < 0 {
		place = a.shown(from, to)
	}
	if place < 0 {
		s.remaining = a.boundless(from, to)
		return s
	}
	o := a.Outcome(place)
	s.over = !o.Allowed && !a.Applied[place].Shadow
	s.limited, s.limit, s.remaining = true, o, clamp(o.Remaining)
	if s.waits = !o.Hopeless; s.waits {
		s.seconds = o.SecondsAt(a.now)
	}
	return s
}

// append appends the fields of a DescriptorStatus.
func (s standing) append(b []byte) []byte {
	b = wire.AppendUint(b, 1, uint64(code(s.over)))
	if s.limited {
		b = appendLimit(b, s.limit)
	}
	b = wire.AppendUint(b, 3, uint64(s.remaining))
	if !s.waits {
		return b
	}
	b, duration := wire.Begin(b, 4)
	b = wire.AppendUint(b, 1, uint64(s.seconds))
	return wire.End(b, duration)
}

// message is the status as a message.
func (s standing) message() *rlsv3.RateLimitResponse_DescriptorStatus {
	m := &rlsv3.RateLimitResponse_DescriptorStatus{Code: code(s.over), LimitRemaining: s.remaining}
	if s.limited {
		m.CurrentLimit = currentLimit(s.limit)
	}
	if s.waits {
		m.DurationUntilReset = &durationpb.Duration{Seconds: s.seconds}
	}
	return m
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
	l := &rlsv3.RateLimitResponse_RateLimit{Name: limitName(o), RequestsPerUnit: clamp(o.Limit.Burst)}
	var n time.Duration
	l.Unit, n = unit(o.Limit.Per)
	if n > 1 {
		l.UnitMultiplier = wrapperspb.UInt32(clamp(int64(n)))
	}
	return l
}

// appendLimit appends that as a field of a DescriptorStatus.
func appendLimit(b []byte, o limiter.Outcome) []byte {
	unit, n := unit(o.Limit.Per)
	b, limit := wire.Begin(b, 2)
	b = wire.AppendUint(b, 1, uint64(clamp(o.Limit.Burst)))
	b = wire.AppendUint(b, 2, uint64(unit))
	b = wire.AppendString(b, 3, limitName(o))
	if n > 1 {
		var multiplier int
		b, multiplier = wire.Begin(b, 4)
		b = wire.AppendUint(b, 1, uint64(clamp(int64(n))))
		b = wire.End(b, multiplier)
	}
	return wire.End(b, limit)
}

func limitName(o limiter.Outcome) string {
	if o.Rule.Leaf != nil {
		return unquoted(o.Limit.Name)
	}
	return unquoted(o.Rule.Name)
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

// appendHeaders drops what Envoy's rate limit filter writes by itself; what we
// add comes on top of that, and would be there twice. It drops what depends on
// an origin too, which descriptors do not tell.
func appendHeaders(b []byte, hs []response.Header) []byte {
	for _, h := range hs {
		if envoys(h.Name) {
			continue
		}
		var header int
		b, header = wire.Begin(b, 3)
		b = wire.AppendString(b, 1, h.Name)
		b = wire.AppendString(b, 2, h.Value)
		b = wire.End(b, header)
	}
	return b
}

func envoys(name string) bool {
	for _, own := range [...]string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-envoy-ratelimited", "grpc-status", "vary"} {
		if strings.EqualFold(name, own) {
			return true
		}
	}
	return false
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

// appendFields appends what is said of a decision as dynamic metadata, and what
// the rules pass on.
func (a answering) appendFields(b []byte, facts []response.Header) []byte {
	b, dynamic := wire.Begin(b, 6)
	for _, f := range facts {
		b = wire.AppendFact(b, f.Name, f.Value)
	}
	if passed := a.passed(); passed != nil {
		more, err := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{"metadata": structpb.NewStructValue(passed)}})
		if err == nil { // always: it was read as what a Struct can hold
			b = append(b, more...)
		}
	}
	return wire.End(b, dynamic)
}
