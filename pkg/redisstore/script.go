package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
)

// What limits and buckets are is in refill.lua, sliding.lua and state.lua, on
// which the other scripts stand.
var (
	//go:embed lua/refill.lua
	refillLua string
	//go:embed lua/sliding.lua
	slidingLua string
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/undo.lua
	undoLua string

	takeScript = newScript(refillLua + slidingLua + stateLua + takeLua)
	undoScript = newScript(refillLua + slidingLua + stateLua + undoLua)
)

// A script is run by its hash; a server that does not know it is sent the text.
type script struct{ text, hash string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// job returns the job that makes the charges of c.
func (s *Store) job(c *call) *job {
	j := &job{slot: c.slot, script: takeScript, args: s.args(c, c.packed)}
	for _, g := range c.groups {
		if g.flags&told > 0 {
			j.texts = 2 * len(c.keys)
		}
	}
	return j
}

// args lays out the keys and the rest; lua/refill.lua, lua/state.lua and the
// script itself say how.
func (s *Store) args(c *call, rest []byte) []any {
	now := ""
	if s.now != nil {
		now = strconv.FormatInt(s.now().UnixMicro(), 10)
	}
	args := make([]any, 0, len(c.keys)+4)
	args = append(args, len(c.keys))
	args = append(args, c.keys...)
	return append(args, now, c.sets.packed, rest)
}
