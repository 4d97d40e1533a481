// Package cases_test holds Sluice to what has gone wrong in the field with
// limiters like it: each file in testdata is one such case, from the text of a
// policy to the answers at a door.
//
// A case's steps are lines. Words are divided by spaces, and one with spaces
// stands in single quotes:
//
//	at 2027-01-31T23:59:58Z       the clock stands there now
//	+6s                           or moves
//	reload second.yaml            another policy holds, as after an edit
//	10.0.0.5 GET /x 'x-user: a' claim:plan=gold => 2AD rule=api status=429 'retry-after: 2' !etag
//	rls edge site user=u1@2/HOUR hits=6 => AD statuses=AD
//
// The first kind of request has a peer ("-" for none), a method, a path, and
// then headers and claims; {n} in it is 1, 2 and so on. The second has a domain
// and descriptors, whose entries are joined by commas. Behind the arrow are the
// answers wanted, A or D with how often, and then what the last of them must
// have: headers, none of a header, a status, facts of its dynamic metadata.
package cases_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/sluice-mesh/sluice/pkg/authz"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

func TestCases(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, ar *txtar.Archive) {
		clock := doortest.NewClock()
		newScene(t, ar, clock, doortest.Memory(t, clock)).play(t)
	})
}

// each calls play for each case.
func each(t *testing.T, play func(*testing.T, *txtar.Archive)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob() = %v, %v, want files", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, ar)
		})
	}
}

// A scene is a case under way.
type scene struct {
	files map[string]string
	clock *doortest.Clock
	set   *policy.Set
	authz *authz.Server
	rls   *rls.Server
}

func newScene(t *testing.T, ar *txtar.Archive, clock *doortest.Clock, store limiter.Store) *scene {
	t.Helper()
	s := &scene{files: make(map[string]string), clock: clock}
	for _, f := range ar.Files {
		s.files[f.Name] = string(f.Data)
	}
	s.set = doortest.Load(t, s.files["policy.yaml"])
	o := limiter.Options{Store: store}
	if _, down := s.files["store-down"]; down {
		o.Local, o.Store = store, doortest.Broken{Err: errors.New("dial 10.0.0.1:6379: refused")}
	}
	l := doortest.Limiter(t, o)
	policies := func() *policy.Set { return s.set }
	var err1, err2 error
	s.authz, err1 = authz.New(authz.Options{Policies: policies, Limiter: l})
	s.rls, err2 = rls.New(rls.Options{Policies: policies, Limiter: l})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return s
}

func (s *scene) play(t *testing.T) {
	t.Helper()
	asked := false
	for line := range strings.Lines(s.files["steps"]) {
		words := split(t, line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case s.stage(t, words):
		default:
			s.ask(t, strings.TrimSpace(line), words)
			asked = true
		}
	}
	if !asked {
		t.Error("no step asks anything")
	}
}

// stage does a step that asks nothing. It is false for one that does.
func (s *scene) stage(t *testing.T, words []string) bool {
	t.Helper()
	var err error
	switch {
	case words[0] == "at":
		s.clock.Now, err = time.Parse(time.RFC3339, words[1])
	case words[0] == "reload":
		s.set = doortest.Load(t, s.files[words[1]])
	case words[0][0] == '+':
		var d time.Duration
		d, err = time.ParseDuration(words[0])
		s.clock.Now = s.clock.Now.Add(d)
	default:
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// split divides a line into words.
func split(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		end := " "
		if rest[0] == '\'' {
			rest, end = rest[1:], "'"
		}
		word, tail, closed := strings.Cut(rest, end)
		if end == "'" && !closed {
			t.Fatalf("no closing quote in %q", line)
		}
		words, rest = append(words, word), tail
	}
	return words
}
