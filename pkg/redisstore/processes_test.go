package redisstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// callerURL has the test's binary be one of TestProcesses' processes.
const callerURL = "SLUICE_TEST_CALLER"

func TestMain(m *testing.M) {
	if url := os.Getenv(callerURL); url != "" {
		if err := callers(url, os.Getenv("SLUICE_TEST_TIME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// shared are the buckets that all processes charge. Once empty, they take so
// long to fill that they are never full again in this test.
func shared() (greedy, interval bucket.Charge, err error) {
	l := bucket.Limit{Tokens: 130, Per: 700 * time.Millisecond, Burst: 4000}
	greedy, interval = bucket.Charge{Key: tag0 + "greedy", Cost: 1}, bucket.Charge{Key: tag0 + "interval", Cost: 1}
	if greedy.Limits, err = bucket.NewLimits(l); err != nil {
		return
	}
	l.Refill = bucket.Interval
	interval.Limits, err = bucket.NewLimits(l)
	return
}

// callers charges the shared buckets from 32 callers for a time, and prints how
// often each had room.
func callers(url, lasts string) error {
	store, err := redisstore.New(redisstore.Options{URL: url, Deadline: patience})
	if err != nil {
		return err
	}
	defer store.Close()
	d, err := time.ParseDuration(lasts)
	if err != nil {
		return err
	}
	greedy, interval, err := shared()
	if err != nil {
		return err
	}
	var admitted [2]atomic.Int64
	var failed atomic.Value
	var wait sync.WaitGroup
	end := time.Now().Add(d)
	for range 32 {
		wait.Go(func() {
			results := make([]bucket.Result, 1)
			for i := 0; time.Now().Before(end); i = 1 - i {
				charge := [2]bucket.Charge{greedy, interval}[i]
				if err := store.Take(context.Background(), []bucket.Charge{charge}, results); err != nil {
					failed.Store(err)
					continue
				}
				if results[0].Allowed {
					admitted[i].Add(1)
				}
			}
		})
	}
	wait.Wait()
	if err, _ := failed.Load().(error); err != nil {
		fmt.Fprintln(os.Stderr, "a call failed:", err)
	}
	fmt.Println(admitted[0].Load(), admitted[1].Load())
	return nil
}

// TestProcesses has four processes of 32 callers each charge two buckets, and
// wants of the server's own numbers that what was admitted is to the token what
// the bucket held, and what came back since, less what is there.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			s := servers.Start(t, kind, servers.Options{})
			greedy, interval := processes(t, s.URL(), func() *servers.Server { return s }, nil)
			if greedy != 0 || interval != 0 {
				t.Errorf("4 processes × 32 callers admitted %d tokens too many under greedy, %d under interval; want 0", greedy, interval)
			}
		})
	}
}

// TestProcessesReshard is TestProcesses while the buckets' slot goes from one
// server to another and back. A charge may be lost with an answer; none is made
// up.
func TestProcessesReshard(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	moves := 0
	move := func() {
		from, to := c.Owner(t, 0), c.Primaries[moves%3]
		if moves++; from == to {
			return
		}
		c.Migrate(t, 0, from, to)
		for c.MoveKeys(t, 0, 1, from, to) > 0 {
		}
		c.Settle(t, 0, to)
	}
	greedy, interval := processes(t, c.URL(), func() *servers.Server { return c.Owner(t, 0) }, move)
	t.Logf("%d moves", moves)
	if greedy > 0 || interval > 0 || moves == 0 {
		t.Errorf("4 processes × 32 callers admitted %d tokens too many under greedy, %d under interval, during %d moves; want at most 0", greedy, interval, moves)
	}
}

// processes runs the callers, and meanwhile move again and again, and returns by
// how many tokens more was admitted than the buckets at last say.
func processes(t *testing.T, url string, at func() *servers.Server, move func()) (greedy, interval int64) {
	t.Helper()
	store := open(t, redisstore.Options{URL: url, Deadline: patience})
	g, i, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	drain := [2]bucket.Charge{g, i}
	drain[0].Cost, drain[1].Cost = 4000, 4000
	take(t, store, drain[:]...)
	firstG, firstI := stored(t, at(), g.Key), stored(t, at(), i.Key)
	lasts := "2s"
	if long {
		lasts = "10s"
	}
	done := make(chan struct{})
	var admitted [2]int64
	go func() {
		defer close(done)
		admitted = fork(t, url, lasts)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			if move == nil {
				<-done
				continue
			}
			move()
		}
	}
	lastG, lastI := stored(t, at(), g.Key), stored(t, at(), i.Key)
	t.Logf("admitted %d and %d in %v", admitted[0], admitted[1], time.Duration(lastG.at-firstG.at)*time.Microsecond)
	terms := g.Limits.Terms(0)
	back := (lastG.at - firstG.at) * terms.Step
	greedy = (admitted[0]+4000)*terms.Unit - back - (lastG.spent*terms.Unit - lastG.aux)
	// Whole periods, but for what a server's clock is set back by on the way.
	us := terms.PerMS * 1000
	periods, off := (lastI.at-lastI.aux-firstI.at+us/2)/us, (lastI.at-lastI.aux-firstI.at+us/2)%us-us/2
	t.Logf("the interval's periods are off by %d µs", off)
	interval = admitted[1] + 4000 - periods*terms.Tokens - lastI.spent
	return greedy / terms.Unit, interval
}

// fork runs four processes and returns what they admitted together.
func fork(t *testing.T, url, lasts string) (admitted [2]int64) {
	var outs [4]bytes.Buffer
	var wait sync.WaitGroup
	for i := range outs {
		wait.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), callerURL+"="+url, "SLUICE_TEST_TIME="+lasts)
			cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d = %v", i, err)
			}
		})
	}
	wait.Wait()
	for i := range outs {
		var greedy, interval int64
		if _, err := fmt.Fscan(&outs[i], &greedy, &interval); err != nil || greedy+interval == 0 {
			t.Errorf("process %d admitted %d and %d, %v, want some", i, greedy, interval, err)
		}
		admitted[0] += greedy
		admitted[1] += interval
	}
	return admitted
}

// A value of one limit, without a name, as it is stored.
type value struct{ at, spent, aux int64 }

func stored(t *testing.T, s *servers.Server, key string) value {
	t.Helper()
	b := []byte(s.Do(t, "GET", "sl:"+key))
	if len(b) != 28 {
		t.Fatalf("GET %q = %q, want a value of 28 bytes", key, b)
	}
	number := func(from, to int) int64 {
		var eight [8]byte
		copy(eight[8-(to-from):], b[from:to])
		return int64(binary.BigEndian.Uint64(eight[:]))
	}
	return value{at: number(0, 1)%16<<48 + number(1, 7), spent: number(20, 23), aux: number(23, 28)}
}
