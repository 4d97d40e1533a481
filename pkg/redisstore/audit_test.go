package redisstore_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// audit walks the keys that begin with prefix: each has an expiry, and it is no later than the margin
// after the bucket is full.
func audit(t *testing.T, c *redis.Client, prefix string, margin time.Duration) {
	t.Helper()
	ctx := context.Background() // a test's own has ended when it cleans up
	keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		left, err := c.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			t.Fatalf("PTTL(%q) = %v", keys.Val(), err)
		}
		value, err := c.Get(ctx, keys.Val()).Result()
		if err == redis.Nil {
			continue // it has expired since
		}
		if err != nil {
			t.Fatalf("GET %q = %v", keys.Val(), err)
		}
		if most := untilFull(value) + margin; left <= 0 || left > most {
			t.Errorf("PTTL(%q) = %v, want more than 0 and at most %v", keys.Val(), left, most)
		}
	}
	if err := keys.Err(); err != nil {
		t.Fatalf("SCAN: %v", err)
	}
}

// untilFull reads the time from the last charge to full from the head of a
// value.
func untilFull(value string) time.Duration {
	var ms [8]byte
	if wide := value[0]&16 != 0; wide {
		copy(ms[1:], value[8:15])
	} else {
		copy(ms[4:], value[7:11])
	}
	return time.Duration(binary.BigEndian.Uint64(ms[:])) * time.Millisecond
}
