package httpcheck

import (
	"net/http"
	"strconv"

	"github.com/sluice-mesh/sluice/pkg/response"
)

// ownStatus is the header that has the decision's status where the answer has
// another.
const ownStatus = "X-Sluice-Status"

// answer says r in HTTP.
func (h *Handler) answer(w http.ResponseWriter, r response.Response) {
	hs := w.Header()
	for _, header := range r.Headers {
		hs.Set(header.Name, header.Value)
	}
	status := r.Status
	if !r.Allowed && !h.words.denials(status) {
		hs.Set(ownStatus, strconv.Itoa(status))
		status = h.words.instead
	}
	write(w, status, r.Body)
}

// write ends an answer. Without a body net/http would not say its length to
// all that ask.
func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // who asked may be gone
}
