package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// An Object is an object of Kubernetes, as its JSON is.
type Object map[string]any

// Kind returns the kind of o.
func (o Object) Kind() string { return o.Text("kind") }

// Name returns the name of o.
func (o Object) Name() string { return o.Text("metadata", "name") }

// At returns what is at a path of fields, nil if nothing is.
func (o Object) At(path ...string) any {
	var at any = map[string]any(o)
	for _, field := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = fields[field]
	}
	return at
}

// Text returns the text at a path of fields, "" if there is none.
func (o Object) Text(path ...string) string {
	text, _ := o.At(path...).(string)
	return text
}

// A Refusal is how the API server says no.
type Refusal struct {
	Code    int // of HTTP
	Message string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Message, r.Code) }

// NotFound says that err is the API server's word for what does not exist.
func NotFound(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == http.StatusNotFound
}

// A Client talks to an API server. It is safe for concurrent use.
type Client struct {
	base  string // https://host:port
	token string
	http  *http.Client

	mu    sync.Mutex
	kinds map[string][]resource // by group and version
}

// Do sends body as JSON, unless it is nil, and decodes the answer into answer,
// unless that is nil. A path begins with /. The error is a Refusal if the
// server says no.
func (c *Client) Do(ctx context.Context, method, path string, body, answer any) error {
	stream, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(stream).Decode(answer); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return nil
}

// contentTypes are what a body of each method is.
var contentTypes = map[string]string{
	http.MethodPost: "application/json", http.MethodPut: "application/json", http.MethodDelete: "application/json",
	http.MethodPatch: "application/merge-patch+json",
	apply:            "application/apply-patch+yaml",
}

// apply stands for the method of a server-side apply, a PATCH of its own type.
const apply = "APPLY"

func (c *Client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("%s %s: write the body: %w", method, path, err)
		}
	}
	sent := strings.Replace(method, apply, http.MethodPatch, 1)
	req, err := http.NewRequestWithContext(ctx, sent, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", contentTypes[method])
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

func refusal(resp *http.Response) error {
	text, _ := io.ReadAll(resp.Body)
	var status Object
	if json.Unmarshal(text, &status) == nil && status.Text("message") != "" {
		return &Refusal{Code: resp.StatusCode, Message: status.Text("message")}
	}
	return &Refusal{Code: resp.StatusCode, Message: strings.TrimSpace(string(text))}
}

// Apply is a server-side apply of o, in namespace unless o says another. A
// field that the server does not know is refused. With dry, nothing is kept.
func (c *Client) Apply(ctx context.Context, namespace string, o Object, dry bool) error {
	path, err := c.path(ctx, namespace, o)
	if err != nil {
		return err
	}
	query := url.Values{"fieldManager": {"tests"}, "fieldValidation": {"Strict"}, "force": {"true"}}
	if dry {
		query.Set("dryRun", "All")
	}
	if err := c.Do(ctx, apply, path+"?"+query.Encode(), o, nil); err != nil {
		return fmt.Errorf("apply %s %s: %w", o.Kind(), o.Name(), err)
	}
	return nil
}

// List returns the objects at a path such as /api/v1/pods. What is after its ?
// selects among them.
func (c *Client) List(ctx context.Context, path string) ([]Object, error) {
	var list struct{ Items []Object }
	err := c.Do(ctx, http.MethodGet, path, nil, &list)
	return list.Items, err
}

// path is where o is, or will be.
func (c *Client) path(ctx context.Context, namespace string, o Object) (string, error) {
	of := "/apis/" + o.Text("apiVersion")
	if !strings.Contains(o.Text("apiVersion"), "/") {
		of = "/api/" + o.Text("apiVersion")
	}
	resources, err := c.resources(ctx, of)
	if err != nil {
		return "", fmt.Errorf("find %s of %s: %w", o.Kind(), o.Text("apiVersion"), err)
	}
	for _, r := range resources {
		if r.Kind != o.Kind() {
			continue
		}
		if own := o.Text("metadata", "namespace"); own != "" {
			namespace = own
		}
		if r.Namespaced {
			of += "/namespaces/" + namespace
		}
		return of + "/" + r.Name + "/" + o.Name(), nil
	}
	return "", fmt.Errorf("the API server knows no %s of %s", o.Kind(), o.Text("apiVersion"))
}

// A resource is how the objects of a kind are found.
type resource struct {
	Name, Kind string
	Namespaced bool
}

// Resources returns where the kinds of a group and version are, such as
// /apis/apps/v1, without those that are a part of another.
func (c *Client) resources(ctx context.Context, of string) ([]resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.kinds[of]; found != nil {
		return found, nil
	}
	var list struct{ Resources []resource }
	if err := c.Do(ctx, http.MethodGet, of, nil, &list); err != nil {
		return nil, err
	}
	var whole []resource
	for _, r := range list.Resources {
		if !strings.Contains(r.Name, "/") {
			whole = append(whole, r)
		}
	}
	if c.kinds == nil {
		c.kinds = map[string][]resource{}
	}
	c.kinds[of] = whole
	return whole, nil
}

// An event is what a watch says.
type event struct {
	Type   string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Object json.RawMessage
}

// watch calls do with what is at path and with each change of it, until ctx
// ends, or the server ends the watch.
func (c *Client) watch(ctx context.Context, path string, do func(event)) error {
	stream, err := c.open(ctx, http.MethodGet, path+"?watch=true", nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	for d := json.NewDecoder(stream); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			return err
		}
		do(e)
	}
}
