package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

// update says that the flag of doortest is set: the wanted output is rewritten.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// Each file in testdata is a policy.yaml, a request.json, and as want the
// explanation. With a file spent the request's rules were charged so many times
// before, and with a file store-down the store fails.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob(testdata) = %v, %v, want some cases", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, name)
		})
	}
}

// A scene is what a golden file sets up.
type scene struct {
	options explain.Options
	request explain.Request
}

func golden(t *testing.T, name string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, archive)
	report, err := explain.Explain(t.Context(), s.options, s.request)
	if err != nil {
		t.Fatalf("Explain(%+v) = %v, want no error", s.request, err)
	}
	got := text(t, report)
	if again := text(t, throughJSON(t, report)); again != got {
		t.Errorf("Text() after JSON = %s, want as before, %s", again, got)
	}
	want := file(archive, "want")
	if update() {
		want.Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("Text() of %s, -want +got:\n%s", name, diff)
	}
	if secret := file(archive, "secret"); secret != nil && strings.Contains(got+asJSON(t, report), strings.TrimSpace(string(secret.Data))) {
		t.Errorf("the explanation of %s has the secret in it, want it hidden:\n%s", name, got)
	}
}

func file(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

func read(t *testing.T, a *txtar.Archive) scene {
	t.Helper()
	var s scene
	if err := json.Unmarshal(file(a, "request.json").Data, &s.request); err != nil {
		t.Fatal(err)
	}
	clock := doortest.NewClock()
	s.options = explain.Options{
		Set: doortest.Load(t, string(file(a, "policy.yaml").Data)), Store: doortest.Memory(t, clock),
		Now: func() time.Time { return clock.Now },
	}
	if spent := file(a, "spent"); spent != nil {
		spend(t, s, string(spent.Data))
		clock.Now = clock.Now.Add(time.Second)
	}
	if file(a, "store-down") != nil {
		s.options.Store, s.options.Local = doortest.Broken{Err: errors.New("dial")}, s.options.Store
	}
	return s
}

// spend charges the request so many times.
func spend(t *testing.T, s scene, times string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(times))
	if err != nil {
		t.Fatal(err)
	}
	l := doortest.Limiter(t, limiter.Options{Store: s.options.Store})
	for range n {
		if d := l.Decide(t.Context(), match(t, s.options.Set, s.request)); !d.Allowed {
			return
		}
	}
}

func text(t *testing.T, r explain.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatalf("Text() = %v, want no error", err)
	}
	return b.String()
}

func asJSON(t *testing.T, r explain.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatalf("JSON() = %v, want no error", err)
	}
	return b.String()
}

func throughJSON(t *testing.T, r explain.Report) explain.Report {
	t.Helper()
	var again explain.Report
	if err := json.Unmarshal([]byte(asJSON(t, r)), &again); err != nil {
		t.Fatalf("Unmarshal(%s) = %v, want no error", asJSON(t, r), err)
	}
	return again
}
