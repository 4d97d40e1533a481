package memstore_test

import (
	"syscall"
	"time"
	"unsafe"
)

// spent is the processor time that this thread has used: what the machine does
// meanwhile for others does not count.
func spent() time.Duration {
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID
	var at syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		return time.Since(epoch)
	}
	return time.Duration(at.Nano())
}
