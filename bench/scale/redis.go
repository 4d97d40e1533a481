package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/test/resp"
	"github.com/sluice-mesh/sluice/test/stack"
)

// A redisNode is one server.
type redisNode struct {
	*stack.Redis
	*resp.Conn
	bus string // where the others of a Cluster speak to it; "" outside of one
}

func startNode(ctx context.Context, path, dir string, clustered bool) (*redisNode, error) {
	n := new(redisNode)
	args := []string{"--enable-debug-command", "yes"}
	if clustered {
		bus, err := stack.FreePort()
		if err != nil {
			return nil, err
		}
		n.bus = strconv.Itoa(bus)
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", n.bus, "--cluster-config-file", "nodes-"+n.bus)
	}
	var err error
	if n.Redis, err = stack.StartRedisPort(ctx, path, dir, args...); err != nil {
		return nil, err
	}
	n.Conn, err = resp.Dial(n.Addr)
	return n, err
}

func (n *redisNode) version() (string, error) {
	text, err := n.Do("INFO", "server")
	_, version, _ := strings.Cut(text, "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	return version, err
}

// join makes one Cluster of nodes, each with as many slots as the others, and
// waits until all know it.
func join(ctx context.Context, nodes []*redisNode) error {
	const slots = 16384
	_, port, err := net.SplitHostPort(nodes[0].Addr)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		for _, command := range []string{
			fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1),
			fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", (i*slots+len(nodes)-1)/len(nodes), ((i+1)*slots+len(nodes)-1)/len(nodes)-1),
			fmt.Sprintf("CLUSTER MEET 127.0.0.1 %s %s", port, nodes[0].bus),
		} {
			if _, err := n.Do(strings.Fields(command)...); err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
		}
	}
	for _, n := range nodes {
		if err := n.knows(ctx, len(nodes)); err != nil {
			return err
		}
	}
	return nil
}

// knows waits until n says that the Cluster is well, and so large.
func (n *redisNode) knows(ctx context.Context, size int) error {
	for {
		info, err := n.Do("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", size)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Cluster of %d nodes is not well: %w", size, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A count is what a server says that it has done so far, or what it has done
// between two such.
type count struct {
	cpu            float64 // µs, of the main thread
	reads, scripts float64
	in, out        float64 // bytes
	memory, keys   float64
}

func (n *redisNode) count() (count, error) {
	text, err := n.Do("INFO", "everything")
	number := func(name string) float64 {
		_, rest, _ := strings.Cut(text, "\n"+name)
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		x, _ := strconv.ParseFloat(rest[:max(end, 0)], 64)
		return x // 0 for what has not happened
	}
	return count{
		cpu:   1e6 * (number("used_cpu_user_main_thread:") + number("used_cpu_sys_main_thread:")),
		reads: number("total_reads_processed:"), scripts: number("cmdstat_evalsha:calls="),
		in: number("total_net_input_bytes:"), out: number("total_net_output_bytes:"),
		memory: number("used_memory:"), keys: number("db0:keys="),
	}, err
}

// plus adds times × o to c.
func (c count) plus(o count, times float64) count {
	return count{
		c.cpu + times*o.cpu, c.reads + times*o.reads, c.scripts + times*o.scripts, c.in + times*o.in, c.out + times*o.out,
		c.memory + times*o.memory, c.keys + times*o.keys,
	}
}
