package rls

import (
	"io"
	"net/http"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// maxJSON bounds a request over HTTP.
const maxJSON = 4 << 20

// ServeHTTP answers a request that comes as JSON in a POST by a response in
// JSON: with 200, or 429 where the request is over a limit. What is no request
// gets 400, and so does one that gets an error over gRPC.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method "+r.Method+": want POST with a RateLimitRequest in JSON", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
	if err != nil {
		http.Error(w, "read the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	req := new(rlsv3.RateLimitRequest)
	if err := protojson.Unmarshal(body, req); err != nil {
		http.Error(w, "this is no RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	resp, err := s.ShouldRateLimit(r.Context(), req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answerJSON(w, resp)
}

func answerJSON(w http.ResponseWriter, resp *rlsv3.RateLimitResponse) {
	text, err := protojson.Marshal(resp)
	if err != nil {
		http.Error(w, "write the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // who asked may be gone
}
