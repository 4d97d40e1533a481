package doortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

var update = flag.Bool("update", false, "write the answers that come into testdata")

// A Door answers a request as it was read from a golden file.
type Door struct {
	Request proto.Message // an empty one
	Answer  func(ctx context.Context, req proto.Message) (proto.Message, error)
}

// Golden runs the files testdata/*.txtar. Each has a policy.yaml and then, in
// turns, a request and the response that it gets, both as JSON and compared as
// messages; "request +6s" comes 6 s after the one before it. With a file
// store-down the store fails, and the local one is empty. open makes a door of
// the file's policy, for a limiter that is its own. The flag -update rewrites
// the responses.
func Golden(t *testing.T, open func(set *policy.Set, l *limiter.Limiter) Door) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob() = %v, %v, want files", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, file, open)
		})
	}
}

func golden(t *testing.T, file string, open func(*policy.Set, *limiter.Limiter) Door) {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now := NewClock()
	door := open(Load(t, string(content(ar, "policy.yaml"))), Limiter(t, stores(t, ar, now)))
	var got proto.Message
	for i := range ar.Files {
		f := &ar.Files[i]
		switch kind, after, _ := strings.Cut(f.Name, " +"); kind {
		case "request":
			now.Now = now.Now.Add(duration(t, after))
			got = ask(t, door, f.Data)
		case "response":
			compare(t, f, got)
		}
	}
	if !*update {
		return
	}
	if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(ar *txtar.Archive, name string) []byte {
	for _, f := range ar.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func stores(t *testing.T, ar *txtar.Archive, now *Clock) limiter.Options {
	t.Helper()
	if content(ar, "store-down") == nil {
		return limiter.Options{Store: Memory(t, now)}
	}
	return limiter.Options{Store: Broken{Err: errors.New("dial 10.0.0.1:6379")}, Local: Memory(t, now)}
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ask(t *testing.T, door Door, data []byte) proto.Message {
	t.Helper()
	req := proto.Clone(door.Request)
	read(t, data, req)
	got, err := door.Answer(t.Context(), req)
	if err != nil {
		t.Fatalf("the answer to %s is %v, want no error", data, err)
	}
	return got
}

// compare compares got with the response in f, or writes it there.
func compare(t *testing.T, f *txtar.File, got proto.Message) {
	t.Helper()
	if *update {
		f.Data = write(t, got)
	}
	want := got.ProtoReflect().New().Interface()
	read(t, f.Data, want)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the answer differs from %s (-want +got):\n%s", f.Data, diff)
	}
}

func read(t *testing.T, data []byte, m proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(data, m); err != nil {
		t.Fatalf("Unmarshal(%s) = %v, want no error", data, err)
	}
}

func write(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

// A Broken is a store that never answers.
type Broken struct{ Err error }

// Take fails with Err.
func (b Broken) Take(context.Context, []bucket.Charge, []bucket.Result) error { return b.Err }
