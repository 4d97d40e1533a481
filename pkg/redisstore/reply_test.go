package redisstore_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// FuzzReply reads what a server that is not well may answer for buckets of
// every mode, and for two more requests that ask the same: that is an error, or
// results that there can be.
func FuzzReply(f *testing.F) {
	charges := requestsOfEveryMode(f)
	now := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC).UnixMicro()
	for _, list := range [][]any{
		{},
		{now},
		{int64(1) << 62},
		{int64(1)<<53 - 1},
		{int64(1) << 53},
		{int64(-1)},
		{now, int64(1), int64(1)},
		{now, "text", nil},
		usualReply(now), usualReply(-now), usualReply(1 << 62),
		append(usualReply(now), "", "", "", "", "", "", "", "", "", ""),
	} {
		f.Add(packed(list), false)
		f.Add(packed(list), true)
	}
	f.Fuzz(func(t *testing.T, reply []byte, told bool) {
		list := unpacked(reply)
		results := resultsFor(charges)
		if err := redisstore.ReadReply(list, told, charges, results); err != nil {
			return
		}
		charges := slices.Concat(charges...)
		for i, r := range slices.Concat(results...) {
			burst := charges[i].Limits.Terms(min(max(r.Limit, 0), charges[i].Limits.Len()-1)).Burst
			switch {
			case r.Err != nil && !errors.As(r.Err, new(*redisstore.Error)):
				t.Errorf("ReadReply(%v) has the error %v for charge %d, want an *Error", list, r.Err, i)
			case r.Limit < 0 || r.Limit >= charges[i].Limits.Len() || r.Remaining < 0 || r.Remaining > burst:
				t.Errorf("ReadReply(%v) = %+v for charge %d, want 0 to %d left", list, r, i, burst)
			case r.FullIn < 0 || r.RetryAfter < 0 && r.RetryAfter != bucket.Never || r.Allowed && r.RetryAfter != 0:
				t.Errorf("ReadReply(%v) = %+v for charge %d, want no time below 0", list, r, i)
			}
		}
	})
}

// everyMode is a charge for each way in which tokens come back.
func everyMode(t testing.TB) []bucket.Charge {
	t.Helper()
	list := [][]bucket.Limit{
		{{Tokens: 10, Per: time.Minute}, {Tokens: 100, Per: time.Hour, Refill: bucket.Interval}},
		{{Tokens: 1_000_003, Per: 24 * time.Hour}},
		{{Tokens: 10, Per: time.Minute, Refill: bucket.Aligned}},
		{{Tokens: 10, Per: time.Minute, Refill: bucket.Sliding}},
		{{Tokens: 10, Calendar: bucket.Month, Zone: time.UTC, Refill: bucket.Aligned}},
	}
	charges := make([]bucket.Charge, len(list))
	for i, limits := range list {
		ls, err := bucket.NewLimits(limits...)
		if err != nil {
			t.Fatal(err)
		}
		charges[i] = bucket.Charge{Key: string(rune('a' + i)), Limits: ls, Cost: int64(i)}
	}
	return charges
}

// requestsOfEveryMode are a request for everyMode, and two for one of them.
func requestsOfEveryMode(t testing.TB) [][]bucket.Charge {
	t.Helper()
	every := everyMode(t)
	return [][]bucket.Charge{every, every[2:3], every[2:3]}
}

// usualReply is the script's to requestsOfEveryMode.
func usualReply(now int64) []any {
	var list []any
	for _, n := range []int64{
		now,
		1, 3, 0, 5, 1000, // two limits
		1, 1, 0,
		0, 10, 0,
		1, 2, 0, 2, 500, 1, 1000, 1, // a log of two entries
		3,        // none of ours
		17, 9, 0, // one of two
	} {
		list = append(list, n)
	}
	return list
}

// The kinds of items of a packed reply.
const (
	number = iota
	text
	nothing
	nested
)

// packed writes a reply as bytes; unpacked reads any bytes as one.
func packed(list []any) []byte {
	var b []byte
	for _, item := range list {
		switch item := item.(type) {
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, number), uint64(item))
		case string:
			b = append(append(b, text, byte(len(item))), item...)
		default:
			b = append(b, nothing)
		}
	}
	return b
}

func unpacked(b []byte) []any {
	list := []any{}
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch {
		case kind%4 == number && len(b) >= 8:
			list = append(list, int64(binary.BigEndian.Uint64(b)))
			b = b[8:]
		case kind%4 == text && len(b) > 0:
			n := min(int(b[0]), len(b)-1)
			list = append(list, string(b[1:1+n]))
			b = b[1+n:]
		case kind%4 == nested:
			list = append(list, []any{int64(len(b))})
		default:
			list = append(list, nil)
		}
	}
	return list
}

// TestUsualReply shows that what FuzzReply begins with is a reply as it is.
func TestUsualReply(t *testing.T) {
	t.Parallel()
	charges := requestsOfEveryMode(t)
	results := resultsFor(charges)
	list := unpacked(packed(usualReply(time.Now().UnixMicro())))
	if err := redisstore.ReadReply(list, false, charges, results); err != nil {
		t.Fatalf("ReadReply(%v) = %v, want results", list, err)
	}
	got := slices.Concat(results...)
	for i, want := range map[int]int64{0: 7, 1: 1_000_002, 2: 0, 3: 8, 5: 1, 6: 1} {
		if got[i].Err != nil || got[i].Remaining != want {
			t.Errorf("ReadReply(%v) = %+v for charge %d, want %d left", list, got[i], i, want)
		}
	}
	if !got[5].Allowed || got[6].Allowed {
		t.Errorf("ReadReply(%v) allows %v and %v of two that ask the same, want the first alone", list, got[5].Allowed, got[6].Allowed)
	}
	if got := causeOf(got[4].Err); got != "foreign" {
		t.Errorf("ReadReply(%v) has cause %q for charge 4, want foreign", list, got)
	}
}
