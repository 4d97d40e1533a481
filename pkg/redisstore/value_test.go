package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestValueSizes charges a full bucket, and then again a little later, at the
// edges of what the narrow form of a value holds. The second answer must be
// what package bucket says.
func TestValueSizes(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	epoch := time.UnixMicro(1_700_000_000_123_456)
	last := time.UnixMicro(1<<52 - 1)
	per := func(tokens int64, d time.Duration) bucket.Limit { return bucket.Limit{Tokens: tokens, Per: d} }
	named := func(l bucket.Limit) bucket.Limit { l.Name = "n"; return l }
	interval := func(l bucket.Limit) bucket.Limit { l.Refill = bucket.Interval; return l }
	aligned := func(l bucket.Limit) bucket.Limit { l.Refill = bucket.Aligned; return l }
	sliding := func(l bucket.Limit) bucket.Limit { l.Refill = bucket.Sliding; return l }
	for _, c := range []struct {
		name   string
		now    time.Time
		cost   int64
		limits []bucket.Limit
		size   int
	}{
		{"usual", epoch, 1, []bucket.Limit{per(100, time.Minute)}, 28},
		{"named", epoch, 1, []bucket.Limit{named(per(100, time.Minute))}, 32},
		{"two", epoch, 1, []bucket.Limit{per(100, time.Minute), interval(per(9, time.Second))}, 45},
		{"two, one named", epoch, 1, []bucket.Limit{per(100, time.Minute), named(per(9, time.Second))}, 53},
		{"sixteen", epoch, 1, sixteen(per(100, time.Minute)), 11 + 16*17},
		{"sixteen, wide and named", last.Add(time.Microsecond), 1, sixteen(named(per(100, time.Minute))), 15 + 16*33},
		{"epoch", time.UnixMicro(0), 1, []bucket.Limit{per(100, time.Minute)}, 28},
		{"at 2^52-1", last, 1, []bucket.Limit{per(100, time.Minute)}, 28},
		{"at 2^52", last.Add(time.Microsecond), 1, []bucket.Limit{per(100, time.Minute)}, 44},
		{"spent 2^24-1", epoch, 1<<24 - 1, []bucket.Limit{per(1<<25, day)}, 28},
		{"spent 2^24", epoch, 1 << 24, []bucket.Limit{per(1<<25, day)}, 44},
		{"tokens 2^32-1", epoch, 1, []bucket.Limit{per(1<<32-1, time.Second)}, 28},
		{"tokens 2^32", epoch, 1, []bucket.Limit{per(1<<32, time.Second)}, 44},
		{"period 2^32-1 ms", epoch, 1, []bucket.Limit{interval(per(2, (1<<32-1)*time.Millisecond))}, 28},
		{"period 2^32 ms", epoch, 1, []bucket.Limit{interval(per(2, (1<<32)*time.Millisecond))}, 44},
		{"full in 2^32-1 ms", epoch, 1, []bucket.Limit{per(1, (1<<32-1)*time.Millisecond)}, 28},
		{"full in 2^32 ms", epoch, 2, []bucket.Limit{per(2, (1<<32)*time.Millisecond)}, 44},
		{"100 years", epoch, 1, []bucket.Limit{per(1, 36500*day)}, 44},
		{"named, wide", epoch, 1, []bucket.Limit{named(per(1, 36500*day))}, 48},
		{"ticks of 1 ms", epoch, 1, []bucket.Limit{per(1_000_003, day)}, 28},
		{"aligned", epoch, 1, []bucket.Limit{aligned(per(100, time.Minute))}, 28},
		{"days of a zone", epoch, 1, []bucket.Limit{{Tokens: 9, Calendar: bucket.Day, Zone: time.UTC, Refill: bucket.Aligned}}, 28},
		{"sliding", epoch, 1, []bucket.Limit{sliding(per(100, time.Minute))}, 28 + 1 + 8 + 1},
		{"sliding, named", epoch, 1, []bucket.Limit{sliding(named(per(100, time.Minute)))}, 32 + 1 + 8 + 1},
		{"greedy and sliding", epoch, 1, []bucket.Limit{per(9, time.Minute), sliding(per(100, time.Minute))}, 45 + 1 + 8 + 1},
		{"two sliding", epoch, 1, []bucket.Limit{sliding(per(9, time.Minute)), sliding(per(100, time.Hour))}, 45 + 2*(1+8) + 1},
		{"sliding, 12 days", epoch, 1, []bucket.Limit{sliding(per(9, 12*day))}, 28 + 1 + 8 + 1},
		{"sliding, 13 days", epoch, 1, []bucket.Limit{sliding(per(9, 13*day))}, 44 + 1 + 14 + 1},
		{"sliding, spent 2^24-1", epoch, 1<<24 - 1, []bucket.Limit{sliding(per(1<<25, day))}, 28 + 1 + 8 + 1},
		{"sliding, spent 2^24", epoch, 1 << 24, []bucket.Limit{sliding(per(1<<25, day))}, 44 + 1 + 14 + 1},
		{"sliding at 2^52", last.Add(time.Microsecond), 1, []bucket.Limit{sliding(per(9, day))}, 44 + 1 + 14 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range servers.Kinds() {
				server := servers.Start(t, kind, servers.Options{Socket: true})
				var now clock
				store := openAt(t, server.URL(), &now)
				charge := bucket.Charge{Key: "k", Limits: limits(t, c.limits...), Cost: c.cost}
				var model bucket.Bucket
				for i, at := range []time.Time{c.now, c.now.Add(1500 * time.Microsecond)} {
					now.Store(at.UnixMicro())
					var want bucket.Result
					model, want = model.Take(charge.Limits, at, charge.Cost)
					if diff := cmp.Diff(want, take(t, store, charge)[0]); diff != "" {
						t.Errorf("%s: charge %d (-bucket +store):\n%s", kind.Name, i+1, diff)
					}
					if size := client(t, server).StrLen(t.Context(), "sl:k").Val(); i == 0 && size != int64(c.size) {
						t.Errorf("%s: the value takes %d bytes, want %d", kind.Name, size, c.size)
					}
					charge.Cost = 1
				}
				audit(t, client(t, server), "sl:", time.Minute)
			}
		})
	}
}

func sixteen(l bucket.Limit) []bucket.Limit {
	list := make([]bucket.Limit, 16)
	for i := range list {
		list[i] = l
	}
	return list
}

// TestAux lets an interval's period run until its µs no longer fit the narrow
// form.
func TestAux(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		var now clock
		store := openAt(t, server.URL(), &now)
		charge := bucket.Charge{Key: "k", Cost: 1, Limits: limits(t, bucket.Limit{Tokens: 9, Per: 30 * 24 * time.Hour, Refill: bucket.Interval})}
		var model bucket.Bucket
		for _, c := range []struct{ at, size int64 }{{0, 28}, {1<<40 - 1, 28}, {1 << 40, 44}, {1<<40 + 1, 44}} {
			now.Store(c.at)
			var want bucket.Result
			model, want = model.Take(charge.Limits, time.UnixMicro(c.at), 1)
			if diff := cmp.Diff(want, take(t, store, charge)[0]); diff != "" {
				t.Errorf("%s: charge at %d µs (-bucket +store):\n%s", kind.Name, c.at, diff)
			}
			if size := client(t, server).StrLen(t.Context(), "sl:k").Val(); size != c.size {
				t.Errorf("%s: the value of %d µs takes %d bytes, want %d", kind.Name, c.at, size, c.size)
			}
		}
	}
}

// TestForeign finds values under a bucket's key that are no bucket.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
			admin := client(t, server)
			admin.RPush(t.Context(), "sl:list", "a")
			admin.HSet(t.Context(), "sl:hash", "a", "b")
			keys := []string{"list", "hash"}
			for i, value := range foreignValues() {
				keys = append(keys, fmt.Sprint("text", i))
				admin.Set(t.Context(), "sl:"+keys[len(keys)-1], value, 0)
			}
			for i, key := range keys {
				wantForeign(t, store, admin, key, one(t).Limits, int64(19-i))
			}
		})
	}
}

// wantForeign charges the bucket under key with one that is well, and has left
// tokens after it.
func wantForeign(t *testing.T, store *redisstore.Store, admin *redis.Client, key string, ls *bucket.Limits, left int64) {
	t.Helper()
	before := admin.Dump(t.Context(), "sl:"+key).Val()
	well := bucket.Charge{Key: "well", Limits: limits(t, bucket.Limit{Tokens: 100, Per: 1000 * time.Hour}), Cost: 1}
	left += 80
	got := take(t, store, bucket.Charge{Key: key, Limits: ls, Cost: 1}, well)
	if causeOf(got[0].Err) != "foreign" {
		t.Errorf("Take(%q) = %+v, want an Err with cause foreign", key, got[0])
	}
	if got[1].Err != nil || !got[1].Allowed || got[1].Remaining != left {
		t.Errorf("Take(%q, well) = %+v for well, want %d left", key, got[1], left)
	}
	if after := admin.Dump(t.Context(), "sl:"+key).Val(); after != before {
		t.Errorf("the value of %q has changed from %q to %q, want it left alone", key, before, after)
	}
}

// good is the value of a bucket, which was full again long ago.
const good = "\x80\x06\x0a\x24\x18\x1e\x40\x00\x00\x03\xe8" + "\x00\x00\x00\x03\xe8\x00\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00"

// goodLog is that of a sliding limit, with one token taken at the last charge.
var goodLog = "\xc0" + good[1:11] + "\x04" + good[12:] + "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x01"

// goodLease is that of a greedy limit, with one token leased for an hour.
var goodLease = "\xc0" + good[1:11] + "\x05" + good[12:] + "\x01" + "\x00\xd6\x93\xa4\x00\x00\x00\x01" + "\x01"

func foreignValues() []string {
	with := func(i int, b string) string { return good[:i] + b + good[i+len(b):] }
	withLease := func(i int, b string) string { return goodLease[:i] + b + goodLease[i+len(b):] }
	withLog := func(i int, b string) string { return goodLog[:i] + b + goodLog[i+len(b):] }
	return []string{
		goodLog[:27] + "\x01", // so many limits, and there it ends
		goodLog[:37], goodLog + "\x01", "\x80" + goodLog[1:], "\xd0" + goodLog[1:], "\xe0" + goodLog[1:],
		withLog(28, "\x00"), withLog(28, "\x02"), // so many entries
		withLog(29, "\x00\x00\x0f\x42\x40"),                      // an entry a period old
		withLog(34, "\x00\x00\x00"), withLog(34, "\x00\x00\x02"), // tokens that are not spent in sum
		withLog(37, "\x00"), withLog(37, "\x02"), withLog(37, "\x11"), // so many limits
		withLog(11, "\x03"), // no limit that slides
		goodLease[:37], goodLease + "\x01", "\x80" + goodLease[1:],
		withLease(11, "\x04"), withLease(11, "\x07"), // a mode that has another log, no mode
		withLease(28, "\x00"), withLease(28, "\x02"), // so many leases
		withLease(29, "\x00\x00\x00\x00\x00"), withLease(29, "\x00\xd6\x93\xa4\x01"), // one that has ended, one of more than an hour
		withLease(34, "\x00\x00\x00"), // without a token
		"", "1", "hello", "1234567890123456789012345678", good[:27], good + "\x00", good[:11],
		with(0, "\x00"), with(0, "\xc0"), // neither flag
		with(0, "\x90"), with(0, "\xa0"), // wide, named: another length
		with(11, "\x05"), with(11, "\x04"), // no mode; one that has a log
		with(12, "\x00\x00\x00\x00"),                                  // a period of 0
		with(23, "\x00\x00\x0f\x42\x40"),                              // aux is a whole period
		"\x91" + string(make([]byte, 43)),                             // wide, and bits of at
		"\x90\x20\x00\x00\x00\x00\x00\x00" + string(make([]byte, 36)), // at is 2^53
	}
}

// TestForeignGood shows that what TestForeign bends is a bucket as it is.
func TestForeignGood(t *testing.T) {
	t.Parallel()
	server := servers.Start(t, servers.Redis, servers.Options{Socket: true})
	store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
	for _, value := range []string{good, goodLog, goodLease} {
		client(t, server).Set(t.Context(), "sl:k", value, 0)
		if got := take(t, store, bucket.Charge{Key: "k", Limits: one(t).Limits, Cost: 1})[0]; got.Err != nil || got.Remaining != 9 {
			t.Errorf("Take(%q, a bucket long full) = %+v, want 9 left", value, got)
		}
	}
}

// TestMemory weighs the buckets of one and of two greedy limits under keys of
// 29 bytes. The server's tables double as they fill: half full, they take 8
// bytes more for each of their two entries than when full. 60,000 keys fill
// them well.
func TestMemory(t *testing.T) {
	t.Parallel()
	day := bucket.Limit{Tokens: 100, Per: 24 * time.Hour}
	hour := bucket.Limit{Tokens: 50, Per: time.Hour}
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			weigh(t, servers.Start(t, kind, servers.Options{Socket: true}), limits(t, day), 170)
			weigh(t, servers.Start(t, kind, servers.Options{Socket: true}), limits(t, day, hour), 205)
		})
	}
}

// weigh fills the server with buckets under ls, which take so many bytes each
// at most.
func weigh(t *testing.T, server *servers.Server, ls *bucket.Limits, most float64) {
	t.Helper()
	const keys = 60_000
	admin := client(t, server)
	fill(t, server, ls, 1) // the script is in memory before
	admin.FlushAll(t.Context())
	before := usedMemory(t, admin)
	fill(t, server, ls, keys)
	each := float64(usedMemory(t, admin)-before) / keys
	t.Logf("greedy limits: %d, bytes a bucket: %.1f", ls.Len(), each)
	if each > most {
		t.Errorf("a bucket of %d limits takes %.1f bytes, want at most %v", ls.Len(), each, most)
	}
	if n := admin.DBSize(t.Context()).Val(); n != keys {
		t.Errorf("DBSIZE = %d, want %d", n, keys)
	}
	audit(t, admin, "sl:", 2*time.Second)
}

// fill charges so many buckets, by a Store that is closed then, so that its
// buffers on the server do not weigh.
func fill(t *testing.T, server *servers.Server, ls *bucket.Limits, keys int) {
	t.Helper()
	store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
	defer store.Close()
	const batch = 50
	for i := 0; i < keys; i += batch {
		charges := make([]bucket.Charge, min(batch, keys))
		for j := range charges {
			charges[j] = bucket.Charge{Key: fmt.Sprintf("{k3v9x2ab}4:edge3:api%05d", i+j), Limits: ls, Cost: 1}
		}
		take(t, store, charges...)
	}
}

func usedMemory(t *testing.T, admin *redis.Client) int64 {
	t.Helper()
	n, err := admin.InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatalf("INFO memory = %v", err)
	}
	var used int64
	if _, err := fmt.Sscan(n["Memory"]["used_memory"], &used); err != nil {
		t.Fatalf("used_memory is %q", n["Memory"]["used_memory"])
	}
	return used
}
