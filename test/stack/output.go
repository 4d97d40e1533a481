package stack

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// Output is lines that a process prints. The zero value is ready, and it is
// safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed at the next write; nil when nobody waits
	ended   bool
}

// Write adds to the output.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wake()
	return o.text.Write(b)
}

// String returns everything so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Follow calls do with every whole line from now on, in order, and returns
// when the process has ended or ctx has.
func (o *Output) Follow(ctx context.Context, do func(line string)) {
	o.mu.Lock()
	from := o.text.Len()
	o.mu.Unlock()
	_, _ = o.await(ctx, from, func(line string) bool {
		do(line)
		return false
	})
}

var errEnded = errors.New("it ended")

// await returns the first line for which is says true. It begins after the
// first seen bytes.
func (o *Output) await(ctx context.Context, seen int, is func(line string) bool) (string, error) {
	for {
		text, more, ended := o.since(seen)
		for {
			line, rest, whole := strings.Cut(text, "\n")
			if !whole {
				break
			}
			if is(line) {
				return line, nil
			}
			seen += len(text) - len(rest)
			text = rest
		}
		if ended {
			return "", errEnded
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// since returns what came after the first n bytes, and a channel that is
// closed when there is more.
func (o *Output) since(n int) (text string, more <-chan struct{}, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.text.String()[n:], o.changed, o.ended
}

func (o *Output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wake()
}

// wake tells whoever waits. The caller holds the lock.
func (o *Output) wake() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}
