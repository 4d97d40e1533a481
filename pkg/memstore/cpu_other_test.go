//go:build !linux

package memstore_test

import "time"

func spent() time.Duration { return time.Since(epoch) }
