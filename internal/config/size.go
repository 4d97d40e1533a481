package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size, which settings have as a whole number of bytes, or of KiB,
// MiB or GiB: 64MiB.
type Bytes int64

var units = []struct {
	name string
	size Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns b in the largest unit that it is a whole number of.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Set reads b from text. With String and Type it makes b a flag.
func (b *Bytes) Set(text string) error {
	number, unit := text, Bytes(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.size
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return fmt.Errorf("%q is no size, want one such as 64MiB", text)
	}
	*b = Bytes(n) * unit
	return nil
}

// Type is the form of the flag's value.
func (b *Bytes) Type() string { return "size" }
