package authz_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-mesh/sluice/pkg/limiter"
)

var update = flag.Bool("update", false, "write the answers that come into testdata")

// A golden file has a policy.yaml and then, in turns, a request and the
// response that it gets. "request +6s" comes 6 s after the one before it. With
// a file store-down no store answers.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob() = %v, %v, want files", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, now := open(t, ar)
	var got *authv3.CheckResponse
	for i := range ar.Files {
		f := &ar.Files[i]
		switch kind, after, _ := strings.Cut(f.Name, " +"); kind {
		case "request":
			now.now = now.now.Add(duration(t, after))
			req := new(authv3.CheckRequest)
			read(t, f.Data, req)
			if got, err = s.Check(t.Context(), req); err != nil {
				t.Fatalf("Check(%v) = %v, want no error", req, err)
			}
		case "response":
			if *update {
				f.Data = write(t, got)
			}
			want := new(authv3.CheckResponse)
			read(t, f.Data, want)
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("Check() number %d of the file (-want +got):\n%s", i, diff)
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, ar *txtar.Archive) (authv3.AuthorizationServer, *clock) {
	t.Helper()
	now := newClock()
	o := limiter.Options{Store: memory(t, now)}
	yaml := ""
	for _, f := range ar.Files {
		switch f.Name {
		case "policy.yaml":
			yaml = string(f.Data)
		case "store-down":
			o.Store, o.Local = broken{errors.New("dial 10.0.0.1:6379")}, memory(t, now)
		}
	}
	return server(t, load(t, yaml), o), now
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
