package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// HTTP asks over HTTP/1.1, as a proxy asks a check over HTTP or a browser asks
// a proxy. In Path, Host and the values of Headers, {key} stands for the key of
// a request and {n} for its number. A status of 2xx is OK; 401, 403 and 429 are
// denials; any other is no answer. The zero value asks for GET /.
type HTTP struct {
	Method, Path, Host string
	Headers            []Entry
}

type httpDoor struct {
	HTTP
	path, host template
	values     []template
}

func (h HTTP) compile() (door, error) {
	h.Method, h.Path = cmp.Or(h.Method, http.MethodGet), cmp.Or(h.Path, "/")
	if h.Path[0] != '/' {
		return nil, fmt.Errorf("found the path %q, want one that begins with /", h.Path)
	}
	compiled := &httpDoor{HTTP: h, path: parseTemplate(h.Path), host: parseTemplate(h.Host)}
	for _, header := range h.Headers {
		compiled.values = append(compiled.values, parseTemplate(header.Value))
	}
	return compiled, nil
}

func (h *httpDoor) name() string { return "http" }

// dial makes one transport a connection.
func (h *httpDoor) dial(t Target) ([]asker, func() error, error) {
	scheme := "http://"
	if t.TLS != nil {
		scheme = "https://"
	}
	asks := make([]asker, t.Connections)
	transports := make([]http.Transport, t.Connections)
	for i := range asks {
		transports[i] = http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, TLSClientConfig: t.TLS, DisableCompression: true}
		asks[i] = h.over(&transports[i], scheme+t.Addr)
	}
	return asks, func() error {
		for i := range transports {
			transports[i].CloseIdleConnections()
		}
		return nil
	}, nil
}

func (h *httpDoor) over(transport http.RoundTripper, server string) asker {
	return func(ctx context.Context, d Draw) (Answer, error) {
		req, err := h.request(ctx, server, d)
		if err != nil {
			return "", err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return failed(err), err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return failed(err), err
		}
		return answerOf(resp.StatusCode)
	}
}

func (h *httpDoor) request(ctx context.Context, server string, d Draw) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, h.Method, server+h.path.fill(d), nil)
	if err != nil {
		return nil, err
	}
	req.Host = h.host.fill(d)
	for i, header := range h.Headers {
		req.Header.Add(header.Key, h.values[i].fill(d))
	}
	return req, nil
}

func answerOf(status int) (Answer, error) {
	switch {
	case status/100 == 2:
		return OK, nil
	case status == http.StatusTooManyRequests || status == http.StatusForbidden || status == http.StatusUnauthorized:
		return Denied, nil
	default:
		text := strconv.Itoa(status) + " " + http.StatusText(status)
		return Answer(text), errors.New("status " + text)
	}
}

// failed names what became of a request by gRPC's words, as the other doors do.
func failed(err error) Answer {
	if errors.Is(err, context.DeadlineExceeded) {
		return "DeadlineExceeded"
	}
	return "Unavailable"
}
