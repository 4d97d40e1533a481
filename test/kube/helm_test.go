package kube_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/test/cluster"
	"github.com/sluice-mesh/sluice/test/stack"
	"go.yaml.in/yaml/v4"
)

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func chart(t *testing.T) string {
	t.Helper()
	return filepath.Join(root(t), "helm", "sluice")
}

// tool runs what hack/tool put into .tools and returns what it printed, and
// what it complained of.
func tool(t *testing.T, name string, stdin io.Reader, args ...string) (out, complaint string, err error) {
	t.Helper()
	home := filepath.Join(must(t, scratch), "home") // Helm's and nobody else's
	cmd := exec.CommandContext(t.Context(), filepath.Join(root(t), ".tools", name), args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG=/dev/null",
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	cmd.Stdin = stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s (hack/tool %s gets it): %v", name, name, err)
	}
	return stdout.String(), stderr.String(), err
}

// render returns the objects that the chart makes of values, as no cluster
// sees them. More arguments are Helm's.
func render(t *testing.T, values string, args ...string) []cluster.Object {
	t.Helper()
	return decode(t, rendered(t, values, args...))
}

func rendered(t *testing.T, values string, args ...string) string {
	t.Helper()
	out, complaint, err := template(t, values, args...)
	if err != nil {
		t.Fatalf("helm template of\n%s\nfails: %s", values, complaint)
	}
	return out
}

// template runs helm template.
func template(t *testing.T, values string, args ...string) (out, complaint string, err error) {
	t.Helper()
	args = append([]string{"template", "limiter", chart(t), "--namespace", "limits", "--values", valuesFile(t, values)}, args...)
	return tool(t, "helm", nil, args...)
}

// valuesFile writes values where Helm finds them.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// decode returns the objects in a text of YAML documents.
func decode(t *testing.T, text string) []cluster.Object {
	t.Helper()
	objects, err := documents(text)
	if err != nil {
		t.Fatalf("read what was rendered: %v\n%s", err, text)
	}
	return objects
}

func documents(text string) ([]cluster.Object, error) {
	var objects []cluster.Object
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
}

// read returns the text of a file of the checkout.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
