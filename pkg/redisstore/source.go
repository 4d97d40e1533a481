package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A clusterSource asks a cluster's nodes.
type clusterSource struct {
	seeds  []string
	client func(addr string) (*redis.Client, error)
	last   []string // the primaries of the last answer
}

// look asks one server after the other, until one knows.
func (c *clusterSource) look(ctx context.Context, hint string) (*view, error) {
	var errs []error
	asked := map[string]bool{"": true}
	for _, addr := range append(append([]string{hint}, c.last...), c.seeds...) {
		if asked[addr] {
			continue
		}
		asked[addr] = true
		v, err := c.ask(ctx, addr)
		if err == nil {
			c.last = v.addrs
			return v, nil
		}
		errs = append(errs, err)
	}
	// The last error is of a server that was named to us.
	return nil, fmt.Errorf("no server knows the cluster: %w", errors.Join(errs[len(errs)-1]))
}

func (c *clusterSource) ask(ctx context.Context, addr string) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime/4)
	defer cancel()
	client, err := c.client(addr)
	if err != nil {
		return nil, err
	}
	ranges, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS, that shall replace it, is not in Redis 6
	if err != nil {
		return nil, err
	}
	return newView(addr, ranges)
}

func (c *clusterSource) close() error { return nil }

// newView reads the answer of the server at addr.
func newView(addr string, ranges []redis.ClusterSlot) (*view, error) {
	v := &view{owner: make([]uint16, slots)}
	places := map[string]uint16{}
	for _, r := range ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slots {
			continue
		}
		owner := beside(addr, r.Nodes[0].Addr)
		if places[owner] == 0 {
			v.addrs = append(v.addrs, owner)
			places[owner] = uint16(len(v.addrs))
		}
		for slot := r.Start; slot <= r.End; slot++ {
			v.owner[slot] = places[owner]
		}
	}
	if len(v.addrs) == 0 {
		return nil, errNobody
	}
	return v, nil
}

// beside returns other, named by the server at addr: one without a host is on
// the same.
func beside(addr, other string) string {
	host, port, err := net.SplitHostPort(other)
	if err == nil && (host == "" || host == "?") {
		host, _, _ = net.SplitHostPort(addr)
		return net.JoinHostPort(host, port)
	}
	return other
}

// A sentinelSource asks sentinels.
type sentinelSource struct {
	primary string
	clients []*redis.Client
}

// look asks all at once and believes the first majority, or else the largest
// part of those that answer.
func (s *sentinelSource) look(ctx context.Context, _ string) (*view, error) {
	type answer struct {
		addr string
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime/2)
	defer cancel()
	answers := make(chan answer, len(s.clients))
	for _, client := range s.clients {
		go func() {
			addr, err := s.ask(ctx, client)
			answers <- answer{addr, err}
		}()
	}
	votes, most, failed := map[string]int{}, "", error(nil)
	for range s.clients {
		a := <-answers
		if a.err != nil {
			failed = a.err
			continue
		}
		if votes[a.addr]++; votes[a.addr] > votes[most] {
			most = a.addr
		}
		if votes[most] > len(s.clients)/2 {
			break
		}
	}
	if most == "" {
		return nil, fmt.Errorf("no sentinel knows the primary: %w", failed)
	}
	return &view{addrs: []string{most}}, nil
}

func (s *sentinelSource) ask(ctx context.Context, client *redis.Client) (string, error) {
	parts, err := client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.primary).StringSlice()
	switch {
	case errors.Is(err, redis.Nil):
		return "", fmt.Errorf("it watches none that is called %q", s.primary)
	case err != nil:
		return "", err
	case len(parts) != 2:
		return "", errReply
	}
	return net.JoinHostPort(strings.Trim(parts[0], "[]"), parts[1]), nil
}

func (s *sentinelSource) close() error {
	var errs []error
	for _, client := range s.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
