package kube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-mesh/sluice/test/cluster"
	"github.com/sluice-mesh/sluice/test/stack"
)

// A kind is an API version and a kind.
type kind struct{ apiVersion, kind string }

func kindOf(o cluster.Object) kind { return kind{o.Text("apiVersion"), o.Kind()} }

// group and version; core has the version alone.
func (k kind) split() (group, version string) {
	group, version, ok := strings.Cut(k.apiVersion, "/")
	if !ok {
		return "", group
	}
	return group, version
}

// file is the name under which kubeconform looks for the schema of k.
func (k kind) file() string {
	group, version := k.split()
	if group == "" {
		group = version
	}
	return strings.ToLower(k.kind) + "-" + group + "-" + version + ".json"
}

// schemaLocation is how kubeconform forms that name.
const schemaLocation = "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"

// schemas are JSON schemas in a folder, one for each kind that was asked for:
// what a version of Kubernetes accepts, and what the definitions of custom
// resources say. An unknown field is refused.
type schemas struct {
	dir string

	mu      sync.Mutex
	api     map[string]map[string]any // OpenAPI's definitions
	builtin map[kind]string           // names in them
	custom  map[kind]any
	written map[kind]bool
}

func newSchemas(t *testing.T, version string) *schemas {
	t.Helper()
	s := &schemas{dir: t.TempDir(), builtin: map[kind]string{}, custom: custom(t), written: map[kind]bool{}}
	var api struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal([]byte(read(t, ".tools", "kube-openapi", version+".json")), &api); err != nil {
		t.Fatal(err)
	}
	s.api = api.Definitions
	for name, d := range s.api {
		shut(d)
		names, _ := d["x-kubernetes-group-version-kind"].([]any)
		for _, n := range names {
			s.builtin[named(n.(map[string]any))] = name
		}
	}
	return s
}

// write writes the schema of a kind. Of one that is unknown there will be none,
// which kubeconform reports.
func (s *schemas) write(t *testing.T, k kind) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	schema := s.custom[k]
	if name, ok := s.builtin[k]; ok {
		used := map[string]any{}
		reach(s.api, name, used)
		schema = map[string]any{"$ref": "#/definitions/" + name, "definitions": used}
	}
	if schema == nil || s.written[k] {
		return
	}
	s.written[k] = true
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, k.file()), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// named is the kind that an OpenAPI definition says it is of.
func named(n map[string]any) kind {
	k := kind{n["version"].(string), n["kind"].(string)}
	if group := n["group"].(string); group != "" {
		k.apiVersion = group + "/" + k.apiVersion
	}
	return k
}

// reach adds the definition called name to used, and all that it refers to.
func reach(definitions map[string]map[string]any, name string, used map[string]any) {
	if used[name] != nil {
		return
	}
	used[name] = definitions[name]
	var visit func(any)
	visit = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if ref, ok := node["$ref"].(string); ok {
				reach(definitions, strings.TrimPrefix(ref, "#/definitions/"), used)
			}
			for _, child := range node {
				visit(child)
			}
		case []any:
			for _, child := range node {
				visit(child)
			}
		}
	}
	visit(definitions[name])
}

// custom returns the schemas of all custom resources in .tools/crds.
func custom(t *testing.T) map[kind]any {
	t.Helper()
	found := map[kind]any{}
	crds, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		versions, _ := crd.At("spec", "versions").([]any)
		for _, v := range versions {
			version := cluster.Object(v.(map[string]any))
			schema, ok := version.At("schema", "openAPIV3Schema").(map[string]any)
			if !ok {
				continue
			}
			if properties, ok := schema["properties"].(map[string]any); ok {
				for _, implied := range []string{"apiVersion", "kind", "metadata"} {
					properties[implied] = map[string]any{}
				}
			}
			shut(schema)
			k := kind{crd.Text("spec", "group") + "/" + version.Text("name"), crd.Text("spec", "names", "kind")}
			found[k] = schema
		}
	}
	return found
}

// definitions returns all custom resource definitions in .tools/crds.
func definitions() ([]cluster.Object, error) {
	root, err := stack.Root()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, ".tools", "crds", "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no definitions in .tools/crds (hack/tool crds gets them): %w", err)
	}
	var crds []cluster.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := documents(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, o := range objects {
			if o.Kind() == "CustomResourceDefinition" {
				crds = append(crds, o)
			}
		}
	}
	return crds, nil
}

// shut makes of an OpenAPI schema a JSON schema that refuses what it does not
// name.
func shut(node map[string]any) {
	if node["format"] == "int-or-string" || node["x-kubernetes-int-or-string"] == true {
		delete(node, "type")
		delete(node, "format")
	}
	if node["nullable"] == true && node["type"] != nil {
		node["type"] = []any{node["type"], "null"}
	}
	open := node["additionalProperties"] != nil || node["x-kubernetes-preserve-unknown-fields"] == true
	properties, _ := node["properties"].(map[string]any)
	if properties != nil && node["type"] != nil && !open {
		node["additionalProperties"] = false
	}
	for _, child := range properties {
		shut(child.(map[string]any))
	}
	for _, field := range []string{"items", "additionalProperties"} {
		if child, ok := node[field].(map[string]any); ok {
			shut(child)
		}
	}
}
