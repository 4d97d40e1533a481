package cases_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor  = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// Whatever a text of this repository links to is there, and has the heading.
func TestLinks(t *testing.T) {
	t.Parallel()
	texts := markdown(t)
	count := 0
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			count++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if anchor != "" && !hasHeading(texts[to], anchor) {
				t.Errorf("%s links to %s, where no heading is called so", name, m[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("the texts have %d links to each other, want 100 or more", count)
	}
}

// markdown are all texts, by name, without what stands in blocks of code.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			texts[name] = codeBlock.ReplaceAllString(read(t, name), "")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// hasHeading says that a heading of text has this anchor, as GitHub makes it.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return true
		}
	}
	return false
}
