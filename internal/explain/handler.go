package explain

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// maxRequest bounds a request that comes over HTTP, in bytes.
	maxRequest = 256 << 10
	// maxReport bounds a report that is read over HTTP.
	maxReport = 64 << 20
	// patience is how long an explanation may take over HTTP.
	patience = 5 * time.Second
)

// Handler explains the requests that are posted to it as JSON, one a call, by
// what opts returns at that time. It answers a Report, or 400 and why the
// request cannot be explained. It wants the content type application/json,
// which no web page can send to another site unasked.
func Handler(opts func() Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			http.Error(w, "want the content type application/json", http.StatusUnsupportedMediaType)
			return
		}
		request, err := read(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			http.Error(w, shown(cut(err.Error())), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		report, err := Explain(ctx, opts(), request)
		answer(w, report, err)
	})
}

// read reads one request. A field that there is not is an error, lest a
// misspelt one be explained away.
func read(body io.Reader) (Request, error) {
	var r Request
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("read the request: %w", err)
	}
	if d.More() {
		return r, errors.New("read the request: more than one JSON object")
	}
	return r, nil
}

func answer(w http.ResponseWriter, report Report, err error) {
	var wrong RequestError
	switch {
	case errors.As(err, &wrong):
		http.Error(w, shown(cut(err.Error())), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, "no explanation", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = report.JSON(w) // who asked may be gone
}

// A Server is one whose admin port explains.
type Server struct {
	Addr  string      // host:port, or unix: and a path
	Token string      // what it wants to see; "" for none
	TLS   *tls.Config // nil is in plain text
}

// Ask has s explain r.
func Ask(ctx context.Context, s Server, r Request) (Report, error) {
	addr, scheme := s.Addr, "http://"
	if s.TLS != nil {
		scheme = "https://"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return Report{}, fmt.Errorf("write the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+hostOf(addr)+"/explain", bytes.NewReader(body))
	if err != nil {
		return Report{}, fmt.Errorf("ask %s: %w", addr, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	client := http.Client{Transport: s.transport(), Timeout: 2 * patience}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return Report{}, fmt.Errorf("ask %s: %w; is this the admin address of extauthz serve?", addr, err)
	}
	defer resp.Body.Close()
	return readReport(addr, resp)
}

func readReport(addr string, resp *http.Response) (report Report, err error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	if err != nil {
		return report, fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	why := shown(cut(strings.TrimSpace(string(text))))
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest:
		return report, requestError("%s", why)
	case http.StatusUnauthorized:
		return report, fmt.Errorf("ask %s: it answers 401: %s; explain shows it the token in --admin-token-file", addr, why)
	default:
		return report, fmt.Errorf("ask %s: it answers %d: %s; is this the admin address of extauthz serve?", addr, resp.StatusCode, why)
	}
	if err = json.Unmarshal(text, &report); err != nil {
		return report, fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	return report, nil
}

const unixPrefix = "unix:"

func hostOf(addr string) string {
	if strings.HasPrefix(addr, unixPrefix) {
		return "localhost"
	}
	return addr
}

// transport connects to s itself, whatever proxies there are.
func (s Server) transport() *http.Transport {
	path, isUnix := strings.CutPrefix(s.Addr, unixPrefix)
	return &http.Transport{TLSClientConfig: s.TLS, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		if isUnix {
			return d.DialContext(ctx, "unix", path)
		}
		return d.DialContext(ctx, network, address)
	}}
}
