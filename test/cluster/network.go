package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A network maps the addresses of a cluster to those of this machine, and
// carries connections to Services on to a pod that is ready.
type network struct {
	client *Client // set before the first pod is seen
	second int     // 10.second.0.0/16 are its addresses
	lock   net.Listener

	mu        sync.Mutex
	last      int // pod
	listeners map[string]net.Listener
	carrying  sync.WaitGroup
}

// newNetwork takes a range of addresses that no other cluster on this machine has.
func newNetwork() (*network, error) {
	for range 100 {
		second := 100 + rand.IntN(100)
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.%d.255.254:1", second)); err == nil {
			return &network{second: second, lock: l, listeners: map[string]net.Listener{}}, nil
		}
	}
	return nil, errors.New("no range of loopback addresses is free for pods")
}

func (n *network) close() {
	n.mu.Lock()
	n.lock.Close()
	for _, l := range n.listeners {
		l.Close()
	}
	n.mu.Unlock()
	n.carrying.Wait()
}

// services is the range of the Services' addresses.
func (n *network) services() string { return fmt.Sprintf("10.%d.240.0/20", n.second) }

func (n *network) podIP() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.%d.%d.%d", n.second, n.last/250, 1+n.last%250)
}

// loopback is where an address of the cluster is here.
func loopback(ip string) string { return "127." + strings.TrimPrefix(ip, "10.") }

// service returns where a port of a Service is here: an address that stays, or,
// of a headless one, that of a pod that is ready.
func (n *network) service(ctx context.Context, namespace, name, number string) (string, error) {
	var service Object
	path := "/api/v1/namespaces/" + namespace + "/services/" + name
	if err := n.client.Do(ctx, http.MethodGet, path, nil, &service); err != nil {
		return "", err
	}
	if service.Text("spec", "clusterIP") == "None" {
		return n.ready(ctx, service, number)
	}
	at := net.JoinHostPort(loopback(service.Text("spec", "clusterIP")), number)
	return at, n.listen(at, service, number)
}

func (n *network) listen(at string, service Object, number string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil {
		return nil
	}
	l, err := net.Listen("tcp4", at)
	if err != nil {
		return err
	}
	n.listeners[at] = l
	n.carrying.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.carrying.Go(func() { n.carry(conn, service, number) })
		}
	})
	return nil
}

// carry connects a client to a pod that is ready now.
func (n *network) carry(client net.Conn, service Object, number string) {
	defer client.Close()
	at, err := n.ready(context.Background(), service, number)
	if err != nil {
		return
	}
	pod, err := net.Dial("tcp4", at)
	if err != nil {
		return
	}
	defer pod.Close()
	go func() {
		_, _ = io.Copy(pod, client)
		pod.Close()
	}()
	_, _ = io.Copy(client, pod)
}

// ready returns where one of a Service's ready pods listens, as the endpoint
// slices say.
func (n *network) ready(ctx context.Context, service Object, number string) (string, error) {
	name := service.Name()
	var slices struct {
		Items []struct {
			Ports []struct {
				Name string
				Port int
			}
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready *bool }
			}
		}
	}
	path := "/apis/discovery.k8s.io/v1/namespaces/" + service.Text("metadata", "namespace") + "/endpointslices?labelSelector=kubernetes.io/service-name=" + name
	if err := n.client.Do(ctx, http.MethodGet, path, nil, &slices); err != nil {
		return "", err
	}
	var found []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			for _, p := range slice.Ports {
				if p.Name == portName(service, number) {
					found = append(found, net.JoinHostPort(loopback(endpoint.Addresses[0]), strconv.Itoa(p.Port)))
				}
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no pod of Service %s is ready at port %s", name, number)
	}
	return found[rand.IntN(len(found))], nil
}

// portName returns the name of a port of a Service.
func portName(service Object, number string) string {
	ports, _ := service.At("spec", "ports").([]any)
	for _, p := range ports {
		if o := Object(p.(map[string]any)); fmt.Sprint(o["port"]) == number {
			return o.Text("name")
		}
	}
	return ""
}
