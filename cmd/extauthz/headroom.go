package main

import (
	"runtime"
	"strings"
)

// headroomBytes is how much garbage may gather at least before it is collected.
const headroomBytes = 16 << 20

// headroom makes the garbage collector wait until there is something to gather:
// a limiter keeps little, and it would be run for every few megabytes, dozens
// of times a second under load. The bytes are never touched, so the operating
// system never gives any for them. With GOGC somebody else has decided.
// It returns what ends it.
func headroom(environ []string) (end func()) {
	for _, variable := range environ {
		if strings.HasPrefix(variable, "GOGC=") {
			return func() {}
		}
	}
	bytes := make([]byte, headroomBytes)
	return func() { runtime.KeepAlive(bytes) }
}
