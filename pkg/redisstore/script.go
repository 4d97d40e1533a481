package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// What buckets are is in state.lua, on which the other scripts stand.
var (
	//go:embed lua/state.lua
	stateText string
	//go:embed lua/take.lua
	takeLua string

	takeText = stateText + takeLua
	takeHash = hash(takeText)
)

// hash is the name that the server gives a script.
func hash(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// eval runs the script. It is sent again only after the answer that the server
// does not know it, which proves that it did not run.
func (s *Store) eval(ctx context.Context, c *call) ([]int64, error) {
	args := s.args(c)
	reply, err := s.run(ctx, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "EVAL", takeText
		return s.run(ctx, args)
	}
	return reply, err
}

func (s *Store) run(ctx context.Context, args []any) ([]int64, error) {
	cmd := redis.NewIntSliceCmd(ctx, args...)
	// Process returns the error of cmd.
	err := s.client.Process(ctx, cmd)
	return cmd.Val(), err
}

// args lays out the command; lua/state.lua and lua/take.lua say how.
func (s *Store) args(c *call) []any {
	now := ""
	if s.now != nil {
		now = strconv.FormatInt(s.now().UnixMicro(), 10)
	}
	args := make([]any, 0, len(c.keys)+6)
	args = append(args, "EVALSHA", takeHash, len(c.keys))
	args = append(args, c.keys...)
	return append(args, now, c.packedSets, c.packed)
}
