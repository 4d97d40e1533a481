//go:build compose

package compose_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// While Redis is stopped each rule goes by its on_error; once it is back, both
// replicas share again.
func TestRedisStops(t *testing.T) {
	from := func(i int) caller { return caller{address: fmt.Sprintf("198.51.103.%d", i)} }
	if a := from(1).ask(t, "POST", "/login"); a.status != 200 {
		t.Fatalf("POST /login before = %d, want 200", a.status)
	}
	up.ask(t, "stop", "-t", "2", "redis")
	t.Cleanup(func() { up.ask(t, "start", "redis") })
	eventually(t, "POST /login is refused, as on_error: deny says", func() bool { return from(2).ask(t, "POST", "/login").status == 503 })
	// One of the replicas counts it, or both in turn: on_error is local.
	got := many(t, 40, "GET", "/hello", func(int) caller { return from(3) })
	if len(got) != 2 || got[200] < 5 || got[200] > 10 || got[200]+got[429] != 40 {
		t.Errorf("40 × GET /hello without Redis: answers by status %v, want 5 to 10 of 200, and 429", got)
	}
	eventually(t, "Prometheus sees both replicas without their store", func() bool {
		return cmp.Equal(query(t, `sum(sluice_store_breaker_open)`), []string{"2"})
	})
	shown(t, func(title string) bool { return slices.Contains(failing, title) })

	up.ask(t, "start", "redis")
	up.await(t, map[string]int{"redis": 1})
	eventually(t, "Prometheus sees both replicas with their store", func() bool {
		return cmp.Equal(query(t, `sum(sluice_store_breaker_open)`), []string{"0"})
	})
	if diff := cmp.Diff(tally{200: 3, 429: 47}, many(t, 50, "POST", "/login", func(int) caller { return from(4) })); diff != "" {
		t.Errorf("50 × POST /login with Redis again: answers by status (-want +got):\n%s", diff)
	}
}

// A replica that is killed under load costs no request: each gets Sluice's
// word, from the other replica. Limits stay exact.
func TestReplicaIsKilled(t *testing.T) {
	const before, after = 400, 1200
	replicas := up.containers(t, "extauthz")
	t.Cleanup(func() {
		up.engine(t, append([]string{"start"}, replicas...)...)
		up.await(t, map[string]int{"extauthz": 2})
	})
	var next, seen atomic.Int64
	var killed sync.WaitGroup
	kill := sync.OnceFunc(func() {
		killed.Go(func() {
			if _, err := up.docker("kill", "--signal", "KILL", replicas[0]); err != nil {
				t.Error(err)
			}
		})
	})
	got := many(t, before+after, "GET", "/hello", func(i int) caller {
		if seen.Add(1) == before {
			kill()
		}
		n := next.Add(1)
		return caller{address: fmt.Sprintf("203.0.%d.%d", n/250, n%250+1)} // each the first of its address
	})
	killed.Wait()
	if diff := cmp.Diff(tally{200: before + after}, got); diff != "" {
		t.Errorf("%d × GET /hello, a replica killed after %d: answers by status (-want +got):\n%s", before+after, before, diff)
	}
	if diff := cmp.Diff(tally{200: 5, 429: 35}, many(t, 40, "GET", "/hello", func(int) caller { return caller{address: "198.51.104.1"} })); diff != "" {
		t.Errorf("40 × GET /hello with one replica: answers by status (-want +got):\n%s", diff)
	}
	eventually(t, "Prometheus sees one replica", func() bool { return cmp.Equal(query(t, `sum(up{job="sluice"})`), []string{"1"}) })
}

// One that is told to end drains, and costs no request either.
func TestReplicaIsStopped(t *testing.T) {
	replicas := up.containers(t, "extauthz")
	t.Cleanup(func() {
		up.engine(t, append([]string{"start"}, replicas...)...)
		up.await(t, map[string]int{"extauthz": 2})
	})
	stopped := make(chan error, 1)
	go func() {
		_, err := up.docker("stop", "-t", "30", replicas[1])
		stopped <- err
	}()
	n := 0
	for done := false; !done; {
		select {
		case err := <-stopped:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		got := many(t, 50, "GET", "/hello", func(int) caller {
			n := next.Add(1)
			return caller{address: fmt.Sprintf("203.1.%d.%d", n/250%250, n%250+1)}
		})
		if diff := cmp.Diff(tally{200: 50}, got); diff != "" {
			t.Errorf("50 × GET /hello, after %d, while a replica drains: answers by status (-want +got):\n%s", n, diff)
		}
		n += 50
	}
	t.Logf("%d requests while it drained", n)
}

// next numbers the requests of TestReplicaIsStopped.
var next atomic.Int64
