//go:build compose

package compose_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// An inspection is what the engine says of a container.
type inspection struct {
	Config     struct{ User string }
	HostConfig struct {
		ReadonlyRootfs bool
		CapDrop        []string
		SecurityOpt    []string
	}
	NetworkSettings struct {
		Ports map[string][]struct{ HostIP, HostPort string }
	}
}

func (c *composition) inspect(t *testing.T, service string) []inspection {
	t.Helper()
	var all []inspection
	ids := c.containers(t, service)
	if len(ids) == 0 {
		t.Fatalf("%s has no container, want one", service)
	}
	if err := json.Unmarshal([]byte(c.engine(t, append([]string{"inspect"}, ids...)...)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPorts(t *testing.T) {
	for service, want := range map[string][]string{
		"envoy": {"10000/tcp"}, "prometheus": {"9090/tcp"}, "extauthz": nil, "redis": nil, "upstream": nil,
	} {
		for _, c := range up.inspect(t, service) {
			var published []string
			for port, hosts := range c.NetworkSettings.Ports {
				for _, h := range hosts {
					published = append(published, port)
					if h.HostIP != "127.0.0.1" {
						t.Errorf("%s publishes %s at %s, want 127.0.0.1 alone", service, port, h.HostIP)
					}
				}
			}
			if diff := cmp.Diff(want, published); diff != "" {
				t.Errorf("%s publishes (-want +got):\n%s", service, diff)
			}
		}
	}
}

// Of the services that are not started here, too.
func TestFilePublishesOnLoopback(t *testing.T) {
	var file struct {
		Services map[string]struct{ Ports []string }
	}
	text, err := os.ReadFile(filepath.Join(up.root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ports := 0
	for name, s := range file.Services {
		for _, p := range s.Ports {
			ports++
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("service %s has the port %s, want one of 127.0.0.1", name, p)
			}
		}
	}
	if ports != 3 {
		t.Errorf("docker-compose.yml has %d ports, want those of envoy, prometheus and grafana", ports)
	}
}

func TestContainersAreConfined(t *testing.T) {
	for service, user := range map[string]string{
		"envoy": "101:101", "extauthz": "65532:65532", "redis": "999:999", "upstream": "101:101", "prometheus": "65534:65534",
	} {
		for _, c := range up.inspect(t, service) {
			h := c.HostConfig
			if c.Config.User != user || !h.ReadonlyRootfs || !slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Equal(h.SecurityOpt, []string{"no-new-privileges:true"}) {
				t.Errorf("%s = %+v, want user %s, a read-only root, no capabilities and no new privileges", service, c, user)
			}
		}
	}
}

func TestImage(t *testing.T) {
	id := strings.Fields(up.engine(t, "create", "--network", "none", "sluice:local"))[0]
	t.Cleanup(func() { up.engine(t, "rm", id) })
	file := filepath.Join(t.TempDir(), "image.tar")
	up.engine(t, "export", "-o", file, id)
	want := map[string]string{
		"LICENSE": "", "bin/extauthz": "", "bin/ratelimit": "extauthz", "etc/ssl/certs/ca-certificates.crt": "",
	}
	if diff := cmp.Diff(want, files(t, file)); diff != "" {
		t.Errorf("files in the image, and where links lead (-want +got):\n%s", diff)
	}
	var made struct {
		Entrypoint, Cmd []string
		Labels          map[string]string
	}
	if err := json.Unmarshal([]byte(up.engine(t, "image", "inspect", "--format", "{{json .Config}}", "sluice:local")), &made); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(made.Entrypoint, []string{"/bin/extauthz"}) || made.Labels["org.opencontainers.image.title"] != "sluice" ||
		made.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" || made.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("the image = %+v, want the entry point /bin/extauthz and OCI labels", made)
	}
}

// files are the files of a container's export that have something in them, but
// for those that the engine makes.
func files(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string]string{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeSymlink && h.Name != "etc/mtab" || h.Typeflag == tar.TypeReg && h.Size > 0 {
			found[h.Name] = h.Linkname
		}
	}
}

// Zones are known in an image that has no files of them, and the other name
// runs the same binary.
func TestImageRuns(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p.yaml"), "domain: d\nrules:\n  - {name: r, match: {path: /x/*}, limits: [{rate: 5/1d, refill: aligned, zone: Europe/Berlin}]}\n")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		return up.engine(t, append([]string{"run", "--rm", "--network", "none", "--read-only", "-v", dir + ":/p:ro"}, args...)...)
	}
	if got, want := run("sluice:local", "validate", "/p"), "ok: 1 rule in 1 file"; got != want {
		t.Errorf("validate in the image says %q, want %q", got, want)
	}
	if got := run("--entrypoint", "/bin/ratelimit", "sluice:local", "--help"); !strings.Contains(got, "Usage:") {
		t.Errorf("/bin/ratelimit --help says %q, want a usage", got)
	}
}
