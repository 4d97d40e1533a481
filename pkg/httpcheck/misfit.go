package httpcheck

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

const misfitInterval = time.Minute

// misfit answers what is no check in our dialect, or from no caller of ours,
// and says so in the log.
func (h *Handler) misfit(w http.ResponseWriter, r *http.Request, status int, reason string) {
	if n := h.misfits.due(h.opts.Now()); n > 0 {
		h.opts.Log.LogAttrs(r.Context(), slog.LevelWarn, "checks over HTTP were not answered",
			slog.String("dialect", string(h.opts.Dialect)), slog.String("reason", reason), slog.Int64("checks", n))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	write(w, status, reason+"\n")
}

// misfits counts the checks that are answered so, between two log lines.
type misfits struct {
	checks atomic.Int64
	next   atomic.Int64 // ns since the epoch: not to be logged before
}

// due counts one check, and returns how many there were since the last time
// that it was due, or 0 if it is not.
func (m *misfits) due(now time.Time) int64 {
	m.checks.Add(1)
	next, at := m.next.Load(), now.UnixNano()
	if at < next || !m.next.CompareAndSwap(next, at+int64(misfitInterval)) {
		return 0
	}
	return m.checks.Swap(0)
}
