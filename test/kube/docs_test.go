package kube_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a block of YAML in a page, and how far it is indented.
var block = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// blocks returns the blocks of YAML in the pages on Kubernetes that have a line
// which begins so, by page and number.
func blocks(t *testing.T, line string) map[string]string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "kubernetes", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, page := range pages {
		name := filepath.Base(page)
		for i, found := range block.FindAllStringSubmatch(read(t, "docs", "kubernetes", name), -1) {
			if text := strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n"); strings.Contains(text, "\n"+line) {
				all[fmt.Sprintf("%s-%d", name, i+1)] = text
			}
		}
	}
	return all
}

// documented returns the values that the pages on Kubernetes show.
func documented(t *testing.T) map[string]string {
	t.Helper()
	all := blocks(t, "integrations:")
	pages := strings.Join(slices.Sorted(maps.Keys(all)), " ")
	wantAll(t, pages, []string{"contour.md", "emissary.md", "envoy-gateway.md", "istio.md", "kgateway.md", "traefik.md"})
	return all
}

// TestDocumentedObjects has the API server look at the objects that the pages
// want from their readers.
func TestDocumentedObjects(t *testing.T) {
	t.Parallel()
	c := must(t, kubernetes)
	if err := define(); err != nil {
		t.Fatal(err)
	}
	all := blocks(t, "apiVersion:")
	if len(all) == 0 {
		t.Fatal("no page shows an object")
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range decode(t, text) {
				namespace(t, c, o.Text("metadata", "namespace"))
				if err := c.Apply(t.Context(), "limits", o, true); err != nil {
					t.Errorf("dry run: %v", err)
				}
			}
		})
	}
}
