package policy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// The oracle is a real Envoy; escapes in upper case are our own addition.
func TestNormalPathIsEnvoys(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/envoy_paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		raw, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		want = escape.ReplaceAllStringFunc(want, strings.ToUpper)
		if got := policy.NormalPath(raw); got != want {
			t.Errorf("NormalPath(%q) = %q, want %q", raw, got, want)
		}
		pairs++
	}
	if pairs < 300 {
		t.Errorf("testdata/envoy_paths.txt has %d pairs, want at least 300", pairs)
	}
}

func TestNormalPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ target, want string }{
		{"", "/"},
		{"*", "*"},
		{"*?x", "*"},
		{"?x=1", "/"},
		{"#f", "/"},
		{"/a#f", "/a"},
		{"/a?x#f", "/a"},
		{"/a#f?x", "/a"},
		{"http://h/a/../b?x", "/b"},
		{"HTTPS://h:443", "/"},
		{"http://h?x=/a", "/"},
		{`http://h\a`, "/a"},
		{"a/b", "/a/b"},
		{"example.com:443", "/example.com:443"},
		{"://h/a", "/:/h/a"},
		{"1x://h/a", "/1x:/h/a"},
		{"//h/a", "/h/a"},
		{"//", "/"},
		{`\`, "/"},
		{`\\\a`, "/a"},
		{"/a//../b", "/a/b"},
		{"/%41", "/A"},
		{"/%2f%5c", "/%2F%5C"},
		{"/a b", "/a%20b"},
		{"/\x00\x7f\xff", "/%00%7F%FF"},
		{"/é", "/%C3%A9"},
		{"/a/.%2e;x/b", "/b"},
		{"/a/%2e%2e", "/"},
		{"/;x/..;y", "/"},
		{"/a;x/", "/a;x/"},
	} {
		if got := policy.NormalPath(test.target); got != test.want {
			t.Errorf("NormalPath(%q) = %q, want %q", test.target, got, test.want)
		}
	}
}

func TestNormalPathOfNormalPathAllocatesNothing(t *testing.T) {
	for _, path := range []string{"/", "*", "/api/v1/users/42", "/.well-known/x", "/a/...", "/a%2Fb;c=d/", "/a?q=%41//../"} {
		if got := testing.AllocsPerRun(100, func() { policy.NormalPath(path) }); got != 0 {
			t.Errorf("allocations of NormalPath(%q) = %v, want 0", path, got)
		}
	}
}

// A path takes one pass and a constant number of allocations, however long and
// twisted it is.
func TestNormalPathOfLongPaths(t *testing.T) {
	for _, part := range []string{"/a", "/..", "//", "/a/..", `\`, "%41", "%", "%%34", ";", "/..;x", "/.", "é"} {
		path := "/" + strings.Repeat(part, 100_000/len(part))
		if got := testing.AllocsPerRun(1, func() { policy.NormalPath(path) }); got > 12 {
			t.Errorf("allocations of NormalPath of 100 kB of %q = %v, want at most 12", part, got)
		}
	}
}

func BenchmarkNormalPath(b *testing.B) {
	for _, bench := range []struct{ name, path string }{
		{"normal", "/api/v1/users/42?page=1"},
		{"twisted", "/api//v1/./x/../users/%34%32?page=1"},
		{"100kB", "/" + strings.Repeat("/a/..", 20_000)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policy.NormalPath(bench.path)
			}
		})
	}
}
