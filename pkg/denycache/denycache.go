// Package denycache stands before a store that is far away and remembers its
// denials for a moment: who is over a limit stays so until the next token is
// there, and need not be asked about until then.
//
// What is remembered is a whole request: its buckets, their limits and the
// costs. Another cost, or a limit that has changed, is another request. It is
// remembered until the first of the buckets that lack tokens may have them,
// counted from before the store was asked, and for a second at most. So a
// denial is never answered when the tokens are there, unless somebody else gave
// them back: that shows within the second, and at once if it was through the
// same Cache. What is remembered of the buckets that did have room is as old.
//
// Requests that only look at a bucket, give tokens back, may owe them or have a
// lease pass by: that has to be told to the store whatever is remembered. What a
// lease gives back shows within the second.
package denycache

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	// DefaultMaxBytes is the most memory that a Cache takes unless Options say.
	DefaultMaxBytes = 16 << 20
	// Longest is how long a denial is remembered at most.
	Longest = time.Second

	// tick is the least step of a store's clock.
	tick   = time.Microsecond
	shards = 64
	marks  = 4096
)

// A Store is what is asked.
type Store interface {
	// Take makes the charges of one request.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// Options say what a Cache stands before. Only Store is required.
type Options struct {
	Store Store
	// MaxBytes is about the most memory that denials may take. What does not
	// fit is forgotten, the older half first. 0 means DefaultMaxBytes.
	MaxBytes int64
}

// A Cache is a Store before another. It is safe for concurrent use.
type Cache struct {
	store  Store
	seed   maphash.Seed
	texts  sync.Pool // of *[]byte
	shards [shards]shard
	began  time.Time
	// marks say until when, counted from began, denials are remembered whose
	// first key falls to each: most requests are none of them, and need not be
	// written down to know that.
	marks [marks]atomic.Int64
	// cleared counts how often all was forgotten: what was asked before that
	// is not remembered after.
	cleared atomic.Int64
	hits    atomic.Int64
}

// New returns an empty Cache. It does not own the store.
func New(o Options) (*Cache, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("denycache: Options.Store is required")
	case o.MaxBytes < 0:
		return nil, errors.New("denycache: Options.MaxBytes is negative, want 0 for the default or more")
	case o.MaxBytes == 0:
		o.MaxBytes = DefaultMaxBytes
	}
	c := &Cache{store: o.Store, seed: maphash.MakeSeed(), began: time.Now()}
	c.texts.New = func() any { return new([]byte) }
	for i := range c.shards {
		c.shards[i].most = o.MaxBytes / shards
	}
	return c, nil
}

// Remembered is how many requests were answered without the store.
func (c *Cache) Remembered() int64 { return c.hits.Load() }

// Clear forgets all denials, those of calls under way too.
func (c *Cache) Clear() {
	c.cleared.Add(1)
	for i := range c.shards {
		c.shards[i].clear()
	}
}

// Take answers a denial that is remembered, and else asks the store.
func (c *Cache) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	switch kindOf(charges) {
	case passesBy:
		return c.store.Take(ctx, charges, results)
	case givesBack:
		err := c.store.Take(ctx, charges, results)
		c.Clear()
		return err
	}
	asked, mark := time.Now(), &c.marks[maphash.String(c.seed, charges[0].Key)%marks]
	if c.answer(mark, charges, asked, results) {
		c.hits.Add(1)
		return nil
	}
	cleared := c.cleared.Load()
	if err := c.store.Take(ctx, charges, results); err != nil {
		return err
	}
	if lasts, denied := lasting(charges, results); denied && lasts > 0 {
		c.remember(mark, charges, denial{results: results, until: asked.Add(lasts), told: time.Now()}, cleared)
	}
	return nil
}

// answer sets results, if charges are denied still.
func (c *Cache) answer(mark *atomic.Int64, charges []bucket.Charge, now time.Time, results []bucket.Result) bool {
	if int64(now.Sub(c.began)) >= mark.Load() {
		return false
	}
	text := c.texts.Get().(*[]byte)
	defer c.texts.Put(text)
	*text = appendRequest((*text)[:0], charges)
	return c.shard(*text).answer(*text, now, results)
}

// remember keeps d, unless all was forgotten since it was cleared that often.
func (c *Cache) remember(mark *atomic.Int64, charges []bucket.Charge, d denial, cleared int64) {
	text := c.texts.Get().(*[]byte)
	defer c.texts.Put(text)
	*text = appendRequest((*text)[:0], charges)
	c.shard(*text).put(*text, d, func() bool { return c.cleared.Load() == cleared })
	until := int64(d.until.Sub(c.began))
	for before := mark.Load(); before < until && !mark.CompareAndSwap(before, until); {
		before = mark.Load()
	}
}

func (c *Cache) shard(request []byte) *shard { return &c.shards[maphash.Bytes(c.seed, request)%shards] }

// A kind says what becomes of a request here.
type kind uint8

const (
	remembers kind = iota // its denial
	passesBy
	givesBack
)

func kindOf(charges []bucket.Charge) (k kind) {
	if len(charges) == 0 {
		return passesBy
	}
	for i := range charges {
		switch {
		case charges[i].Cost < 0:
			return givesBack
		case charges[i].Cost == 0 || charges[i].Lease != nil || charges[i].Limits.Debt():
			k = passesBy
		}
	}
	return k
}

// lasting returns how long results are what the store would answer: until the
// first of the buckets that lack a token has it, which under a rate of 0 is
// never. One that lacks several tells of more left with each that comes, so it
// has no such time.
func lasting(charges []bucket.Charge, results []bucket.Result) (d time.Duration, denied bool) {
	if !lacks(results) {
		return 0, false
	}
	d = Longest
	var few [16]bucket.Sum
	sums := bucket.Sums(few[:0], charges)
	for i := range results {
		r := &results[i]
		switch {
		case r.Err != nil:
			return 0, false
		case r.Allowed:
			continue
		case r.RetryAfter != bucket.Never && sums[i].Cost-r.Remaining == 1:
			d = min(d, r.RetryAfter-tick)
		case r.RetryAfter != bucket.Never || !charges[i].Limits.Closed():
			return 0, false
		}
		denied = denied || !charges[i].Shadow
	}
	return d, denied
}

// lacks says that there is a denial in results.
func lacks(results []bucket.Result) bool {
	for i := range results {
		if !results[i].Allowed {
			return true
		}
	}
	return false
}

// appendRequest appends charges, each field after its length or of one length.
func appendRequest(b []byte, charges []bucket.Charge) []byte {
	for i := range charges {
		c := &charges[i]
		shadow := byte(0)
		if c.Shadow {
			shadow = 1
		}
		b = append(b, shadow)
		b = binary.AppendVarint(b, c.Cost)
		b = appendText(b, c.Key)
		b = appendText(b, c.Limits.Print())
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
