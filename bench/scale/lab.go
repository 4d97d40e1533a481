package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/stack"
)

const (
	startsIn = 15 * time.Minute
	endsIn   = 30 * time.Second
	patience = 10 * time.Second // of a request

	// storeDeadline is the longest with which a caller that is alone carries out
	// its own batch: a busy machine is no failure.
	storeDeadline = time.Second
)

// policyText has limits that are never reached, of buckets that are not full
// again as soon as they are charged; but "empty" is, by the first request.
const policyText = `domain: bench
rules:
  - {name: hot, descriptor: [generic_key=hot], limits: [{rate: 1000000000/1d}]}
  - {name: user, descriptor: [user], limits: [{rate: 1000/1d, burst: 1000000}]}
  - {name: empty, descriptor: [empty], limits: [{rate: 1/1d}]}
`

// A lab is the processes that are measured.
type lab struct {
	dir, program, server, policy string
	crowd                        int // keys of others

	started []*stack.Process
	stores  map[string][]*redisNode
	fleets  map[string][]*stack.Extauthz
	dialing sync.Mutex // replicas are asked side by side
	clients map[string]*bench.Client
	direct  map[string][]*redisstore.Store
}

func newLab(ctx context.Context, crowd int) (*lab, error) {
	dir, err := os.MkdirTemp("", "sluice-scale-")
	if err != nil {
		return nil, err
	}
	l := &lab{
		dir: dir, policy: filepath.Join(dir, "policy.yaml"), crowd: crowd,
		stores: map[string][]*redisNode{}, fleets: map[string][]*stack.Extauthz{}, clients: map[string]*bench.Client{}, direct: map[string][]*redisstore.Store{},
	}
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	if err := l.start(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) start(ctx context.Context) (err error) {
	if err = os.WriteFile(l.policy, []byte(policyText), 0o600); err != nil {
		return err
	}
	if l.server, err = stack.RedisPath(); err != nil {
		return err
	}
	if l.program, err = stack.BuildExtauthz(l.dir); err != nil {
		return err
	}
	if err = l.fleet(ctx, memory, 1, "--store", "memory"); err != nil {
		return err
	}
	if err = errors.Join(l.oneRedis(ctx), l.crowdedRedis(ctx)); err != nil {
		return err
	}
	for nodes := 1; nodes <= mostNodes; nodes++ {
		if err = l.cluster(ctx, nodes); err != nil {
			return err
		}
	}
	return nil
}

// oneRedis starts a server and replicas on it; one of them asks it about
// denials each time.
func (l *lab) oneRedis(ctx context.Context) error {
	nodes, err := l.nodes(ctx, 1, false)
	if err != nil {
		return err
	}
	url := nodes[0].URL
	l.stores[redis], l.stores[asking], l.stores[direct+redis] = nodes, nodes, nodes
	return errors.Join(
		l.fleet(ctx, redis, mostReplicas, "--redis-url", url),
		l.fleet(ctx, asking, 1, "--redis-url", url, "--deny-cache", "0"),
	)
}

// crowdedRedis starts a server that has many keys of others.
func (l *lab) crowdedRedis(ctx context.Context) error {
	nodes, err := l.nodes(ctx, 1, false)
	if err != nil {
		return err
	}
	if _, err := nodes[0].Do("DEBUG", "POPULATE", fmt.Sprint(l.crowd), "filler", "28"); err != nil {
		return err
	}
	l.stores[crowded] = nodes
	return l.fleet(ctx, crowded, 1, "--redis-url", nodes[0].URL)
}

func (l *lab) cluster(ctx context.Context, size int) error {
	nodes, err := l.nodes(ctx, size, true)
	if err != nil {
		return err
	}
	if err := join(ctx, nodes); err != nil {
		return err
	}
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	l.stores[clusterOf(size)], l.stores[direct+clusterOf(size)] = nodes, nodes
	return l.fleet(ctx, clusterOf(size), 1, "--redis-url", "redis+cluster://"+strings.Join(addrs, ","))
}

func clusterOf(nodes int) string { return fmt.Sprint(cluster, nodes) }

func (l *lab) nodes(ctx context.Context, n int, clustered bool) (nodes []*redisNode, err error) {
	for range n {
		node, err := startNode(ctx, l.server, l.dir, clustered)
		if node != nil {
			l.started = append(l.started, node.Process)
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// fleet starts n replicas.
func (l *lab) fleet(ctx context.Context, name string, n int, args ...string) error {
	args = append([]string{"--policy", l.policy, "--store-deadline", storeDeadline.String()}, args...)
	for range n {
		e, err := stack.StartExtauthz(ctx, l.program, 0, args...)
		if err != nil {
			return err
		}
		l.started = append(l.started, e.Process)
		l.fleets[name] = append(l.fleets[name], e)
	}
	return nil
}

// client returns the one that asks r of a replica, which is kept for its
// connections.
func (l *lab) client(fleet string, replica int, r bench.RLS) (*bench.Client, error) {
	l.dialing.Lock()
	defer l.dialing.Unlock()
	name := fmt.Sprint(fleet, replica, r)
	if l.clients[name] == nil {
		c, err := bench.Dial(bench.Target{Addr: l.fleets[fleet][replica].GRPC, Connections: 4}, r)
		if err != nil {
			return nil, err
		}
		l.clients[name] = c
	}
	return l.clients[name], nil
}

func (l *lab) close() {
	for _, c := range l.clients {
		_ = c.Close()
	}
	for _, list := range l.direct {
		for _, s := range list {
			_ = s.Close()
		}
	}
	for _, p := range l.started {
		_ = p.Stop(endsIn)
	}
	_ = os.RemoveAll(l.dir)
}
