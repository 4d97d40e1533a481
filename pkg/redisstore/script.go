package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
)

// What limits and buckets are is in refill.lua, sliding.lua, leases.lua and
// state.lua, on which the other scripts stand. usual.lua is a short way through
// take.lua.
var (
	//go:embed lua/refill.lua
	refillLua string
	//go:embed lua/usual.lua
	usualLua string
	//go:embed lua/sliding.lua
	slidingLua string
	//go:embed lua/leases.lua
	leasesLua string
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/undo.lua
	undoLua string

	takeScript = newScript(refillLua + usualLua + slidingLua + leasesLua + stateLua + takeLua)
	undoScript = newScript(refillLua + slidingLua + leasesLua + stateLua + undoLua)
)

// A script is run by its hash; a server that does not know it is sent the text.
type script struct{ text, hash any }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// prepare returns the job that makes the charges of c.
func (s *Store) prepare(c *call) *job {
	texts := 0
	for i := range c.groups {
		if c.groups[i].flags&told > 0 {
			texts = 2 * len(c.keys.list)
		}
	}
	args := s.args(c.job.args[:0], c, &c.packed)
	if len(c.leases) > 0 {
		args = append(args, (*text)(&c.leases))
	}
	c.job = job{slot: c.slot, script: takeScript, args: args, texts: texts}
	return &c.job
}

// args lays out the keys and the rest; lua/refill.lua, lua/state.lua and the
// script itself say how. It refers to c, so that nothing is copied.
func (s *Store) args(args []any, c *call, rest *[]byte) []any {
	now := ""
	if s.now != nil {
		now = strconv.FormatInt(s.now().UnixMicro(), 10)
	}
	args = append(args, nil, nil, len(c.keys.list)) // nil for the script's name
	for i := range c.keys.list {
		args = append(args, &c.keys.list[i])
	}
	return append(args, now, (*text)(&c.sets.packed), (*text)(rest))
}
