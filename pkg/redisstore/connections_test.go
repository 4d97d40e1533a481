package redisstore_test

import (
	"testing"

	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// The server is asked how many connections it has.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := servers.Start(t, servers.Redis, servers.Options{})
	store, err := redisstore.New(redisstore.Options{URL: s.URL(), Deadline: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if open, made := store.Connections(); open != 0 || made != 0 {
		t.Errorf("Connections() = %d, %d before any call, want none", open, made)
	}
	for i := range int64(2) {
		if err := store.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if open, made := store.Connections(); open != 1 || made != i+1 {
			t.Errorf("Connections() = %d, %d, want 1 of %d", open, made, i+1)
		}
		s.Do(t, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
	}
}
