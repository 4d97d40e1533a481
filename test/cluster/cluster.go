// Package cluster starts a Kubernetes on this machine: a real etcd, API server
// and controller manager, on loopback. In place of scheduler, kubelet, network
// and container images there is one Node, which runs the containers of pods as
// processes of this machine.
//
// So what Helm and the controllers do is the real thing, and what a pod says of
// itself (arguments, variables, files, probes) is what its program really gets.
// What a container keeps apart (its root file system, its user) is not there.
// What is installed into the cluster is none of its business.
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

// Options say what a cluster is made of.
type Options struct {
	// Dir is an empty folder for all its files. Required.
	Dir string
	// APIServer and ControllerManager are the programs. Required.
	APIServer, ControllerManager string
	// Images says which program is run for an image, by the image's name without
	// its tag. A pod with another image waits for ever, as one does whose image
	// cannot be pulled.
	Images map[string]Image
}

// A Cluster is running.
type Cluster struct {
	*Client
	// Kubeconfig is a file with the rights of an administrator.
	Kubeconfig string
	Node       *Node

	net      *network
	programs []*stack.Process // in the order of their start
}

// Start starts a cluster and waits until it is ready. Whoever calls it calls
// Close, unless there is an error.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Kubeconfig: filepath.Join(o.Dir, "kubeconfig")}
	if err := c.start(ctx, o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	var err error
	if c.net, err = newNetwork(); err != nil {
		return err
	}
	etcd, err := c.startEtcd(ctx, o)
	if err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, o, etcd); err != nil {
		return err
	}
	manager, err := stack.Start("kube-controller-manager", o.ControllerManager,
		"--kubeconfig="+c.Kubeconfig, "--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=false",
		"--service-account-private-key-file="+filepath.Join(o.Dir, "accounts.key"), "--root-ca-file="+filepath.Join(o.Dir, "certificates", "apiserver.crt"),
		"--controllers="+controllers, "--horizontal-pod-autoscaler-sync-period=1s")
	if err != nil {
		return err
	}
	c.programs = append(c.programs, manager)
	c.Node, err = startNode(ctx, c.Client, c.net, filepath.Join(o.Dir, "pods"), o.Images)
	return err
}

// controllers are those that installing and upgrading need. There are no
// machines, clouds and volumes to be looked after.
const controllers = "deployment-controller,replicaset-controller,statefulset-controller,job-controller,disruption-controller," +
	"garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,endpointslice-controller,horizontal-pod-autoscaler-controller"

func (c *Cluster) startEtcd(ctx context.Context, o Options) (string, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("etcd (hack/deps installs it) %w", stack.ErrNoPart)
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	p, err := stack.Start("etcd", path, "--data-dir", filepath.Join(o.Dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
	if err != nil {
		return "", err
	}
	c.programs = append(c.programs, p)
	_, err = p.Await(ctx, "ready to serve client requests")
	return clients, err
}

func (c *Cluster) startAPIServer(ctx context.Context, o Options, etcd string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	token := rand.Text()
	accounts, tokens := filepath.Join(o.Dir, "accounts.key"), filepath.Join(o.Dir, "tokens.csv")
	if err := errors.Join(
		writeKey(accounts),
		os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600),
	); err != nil {
		return err
	}
	p, err := stack.Start("kube-apiserver", o.APIServer,
		"--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
		"--cert-dir="+filepath.Join(o.Dir, "certificates"), "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+accounts,
		"--service-account-signing-key-file="+accounts, "--service-cluster-ip-range="+c.net.services(), "--endpoint-reconciler-type=none")
	if err != nil {
		return err
	}
	c.programs = append(c.programs, p)
	c.Client = &Client{base: fmt.Sprintf("https://127.0.0.1:%d", ports[0]), token: token}
	authority := filepath.Join(o.Dir, "certificates", "apiserver.crt")
	if err := c.awaitReady(ctx, p, authority); err != nil {
		return err
	}
	return os.WriteFile(c.Kubeconfig, fmt.Appendf(nil, kubeconfig, authority, c.base, token), 0o600)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {certificate-authority: %s, server: "%s"}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: here, context: {cluster: here, user: admin}}]
current-context: here
`

// awaitReady asks until the API server says that it is ready: it prints no line
// that would say so.
func (c *Cluster) awaitReady(ctx context.Context, p *stack.Process, authority string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.trust(authority)
		if err == nil {
			err = c.Do(ctx, http.MethodGet, "/readyz", nil, nil)
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("%w; it said:\n%s", p.Err(), p.Output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; it said:\n%s", p.Name, err, p.Output.String())
		}
	}
}

// trust has the client trust the certificate that the API server made for
// itself, once it is there.
func (c *Cluster) trust(file string) error {
	if c.http != nil {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate yet", file)
	}
	c.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		MaxIdleConns:    16,
	}}
	return nil
}

// Output returns the last lines of what the programs of the cluster printed.
func (c *Cluster) Output() string {
	var b strings.Builder
	for _, p := range c.programs {
		fmt.Fprintf(&b, "--- %s\n%s\n", p.Name, tail(p.Output.String(), 4096))
	}
	return b.String()
}

// Close ends the cluster and all processes of its pods.
func (c *Cluster) Close() {
	if c.Node != nil {
		c.Node.close()
	}
	for i := len(c.programs) - 1; i >= 0; i-- {
		// Their state is thrown away: nothing is lost if they are killed.
		_ = c.programs[i].Stop(2 * time.Second)
	}
	if c.net != nil {
		c.net.close()
	}
	if c.Client != nil && c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// freePorts returns n ports of loopback that were free just now. etcd and the
// API server have no way to be told a port that is held for them.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// writeKey writes a private key, by which the API server signs what it says of
// service accounts.
func writeKey(file string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return os.WriteFile(file, text, 0o600)
}
