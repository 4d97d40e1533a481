package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// An Image says which program a command of the image is, by the command's name
// without its folders. "" is the image's entrypoint.
type Image map[string]Program

// A Program of this machine stands for one in an image.
type Program struct {
	Path string
	// Args changes the arguments, for a program that has to be told the pod's
	// address: that it listens there and nowhere else. Nil leaves them.
	Args func(address string, args []string) []string
}

// A Node is scheduler, kubelet and network in one. It binds every pod to itself
// and runs its containers as processes. It is safe for concurrent use.
//
// A pod at 10.x.y.z listens at 127.x.y.z of this machine, and so does a Service:
// what a container is told (arguments and variables) of addresses, of names of
// Services and of paths of volumes is rewritten to what they are here.
type Node struct {
	client *Client
	dir    string
	images map[string]Image
	net    *network

	end     context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	pods map[string]*worker // by UID
}

const nodeName = "this-machine"

func startNode(ctx context.Context, client *Client, net *network, dir string, images map[string]Image) (*Node, error) {
	net.client = client
	// Without such an object, the pods on it would be endpoints of no Service.
	node := Object{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": nodeName, "labels": map[string]any{
		"kubernetes.io/hostname": nodeName, "topology.kubernetes.io/zone": "here", "kubernetes.io/os": "linux",
	}}}
	if err := client.Apply(ctx, "", node, false); err != nil {
		return nil, err
	}
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{client: client, dir: dir, images: images, net: net, end: end, pods: map[string]*worker{}}
	n.running.Go(func() { n.follow(own) })
	return n, nil
}

func (n *Node) close() {
	n.end()
	n.running.Wait()
}

// follow runs what the API server says, until ctx ends.
func (n *Node) follow(ctx context.Context) {
	for ctx.Err() == nil {
		// A watch ends by itself at times, and is asked for again.
		_ = n.client.watch(ctx, "/api/v1/pods", func(e event) {
			var p pod
			if json.Unmarshal(e.Object, &p) == nil && p.Metadata.UID != "" {
				n.see(ctx, e.Type, p)
			}
		})
		wait(ctx, 100*time.Millisecond)
	}
}

func (n *Node) see(ctx context.Context, what string, p pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.pods[p.Metadata.UID]
	ended := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
	switch {
	case what == "DELETED":
		if w != nil {
			w.end()
		}
	case p.Metadata.DeletionTimestamp != "":
		n.running.Go(func() { n.remove(ctx, w, p) })
	case p.Spec.NodeName == "":
		n.running.Go(func() { n.bind(ctx, p) })
	case w == nil && !ended:
		n.pods[p.Metadata.UID] = n.work(ctx, p)
	}
}

func (n *Node) bind(ctx context.Context, p pod) {
	binding := Object{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": p.Metadata.Name},
		"target": map[string]any{"kind": "Node", "name": nodeName},
	}
	// It may be bound or gone: the watch tells.
	_ = n.client.Do(ctx, http.MethodPost, p.path()+"/binding", binding, nil)
}

// remove ends the pod's processes and tells the API server that it is gone.
func (n *Node) remove(ctx context.Context, w *worker, p pod) {
	if w != nil {
		w.end()
		<-w.done
	}
	_ = n.client.Do(ctx, http.MethodDelete, p.path(), Object{
		"gracePeriodSeconds": 0, "preconditions": map[string]any{"uid": p.Metadata.UID},
	}, nil)
}

func (p pod) path() string {
	return "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
}

func (n *Node) work(ctx context.Context, p pod) *worker {
	own, end := context.WithCancel(ctx)
	w := &worker{
		node: n, pod: p, end: end, done: make(chan struct{}), ip: n.net.podIP(), began: time.Now(),
		dir: filepath.Join(n.dir, p.Metadata.UID), states: map[string]*state{},
	}
	n.running.Go(func() {
		defer close(w.done)
		defer os.RemoveAll(w.dir)
		w.run(own)
	})
	return w
}

// Output returns what the containers of a pod have printed, those of before a
// restart too.
func (n *Node) Output(namespace, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, w := range n.pods {
		if w.pod.Metadata.Namespace == namespace && strings.HasPrefix(w.pod.Metadata.Name, name) {
			fmt.Fprintf(&b, "--- pod %s\n%s", w.pod.Metadata.Name, w.output())
		}
	}
	return b.String()
}

// Address returns where a port of a Service is on this machine.
func (n *Node) Address(ctx context.Context, namespace, service string, number int) (string, error) {
	return n.net.service(ctx, namespace, service, fmt.Sprint(number))
}

// PodAddress returns where a pod listens on this machine, "" for one that does
// not run.
func (n *Node) PodAddress(namespace, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.pods {
		if w.pod.Metadata.Namespace == namespace && w.pod.Metadata.Name == name {
			return loopback(w.ip)
		}
	}
	return ""
}

// wait waits for d or the end of ctx, whichever is first.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
