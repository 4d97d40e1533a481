package main

import (
	"runtime"
	"testing"
)

// It is not to run beside others, whose memory would be counted too.
func TestHeadroom(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, tt := range []struct {
		environ []string
		most    bool
	}{{nil, true}, {[]string{"A=B", "GOGC=50"}, false}} {
		end := headroom(tt.environ)
		if grown := heap() >= before+headroomBytes/2; grown != tt.most {
			t.Errorf("headroom(%q) makes the heap look larger: %v, want %v", tt.environ, grown, tt.most)
		}
		end()
	}
}
