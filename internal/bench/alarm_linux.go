package bench

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm wakes one caller. It is a timer of the kernel's that Go waits for as
// for a connection: Go's own may ring a millisecond late on an idle machine,
// which would be counted as latency, and a thread that sleeps in the kernel
// keeps a processor from others.
type alarm struct {
	timer int         // its descriptor
	file  *os.File    // the same; nil where the system gave none
	stop  func() bool // looking for the end of its context
}

// newAlarm returns an alarm, to be closed, that rings at the end of ctx at the
// latest.
func newAlarm(ctx context.Context) *alarm {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &alarm{stop: func() bool { return true }}
	}
	a := &alarm{timer: timer, file: os.NewFile(uintptr(timer), "timerfd")}
	a.stop = context.AfterFunc(ctx, func() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) })
	return a
}

// wait waits until t or the end of ctx.
func (a *alarm) wait(ctx context.Context, t time.Time) {
	left := time.Until(t)
	switch {
	case left <= 0 || ctx.Err() != nil:
		return
	case a.file == nil || unix.TimerfdSettime(a.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil) != nil:
		sleep(ctx, left)
		return
	}
	var rings [8]byte
	_, _ = a.file.Read(rings[:]) // an error is the end of ctx
}

// close gives the timer back. Nobody may wait.
func (a *alarm) close() {
	a.stop()
	if a.file != nil {
		_ = a.file.Close()
	}
}
