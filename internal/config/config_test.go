package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/config"
)

// A given is what is said to extauthz, with its policy left out.
type given struct {
	args    []string
	environ []string
	file    string // what settings.yaml says, "" for no file
	name    string // of the file, settings.yaml unless set
}

func (g given) load(t *testing.T) (config.Settings, []string, error) {
	t.Helper()
	args := append([]string{"--policy", "p.yaml"}, g.args...)
	if g.file != "" {
		args = append(args, "--config", writeFile(t, g.settingsName(), g.file))
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("Parse(%q) = %v, want no error", args, err)
	}
	return config.Load(flags, g.environ)
}

func (g given) settingsName() string {
	if g.name == "" {
		return "settings.yaml"
	}
	return g.name
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each setting is taken from the flag, then the variable, then the file, then
// the default, whatever its type.
func TestLoadPrecedence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		setting, file, variable, flag string
		value                         func(config.Settings) any
		want                          [4]any // by default, file, variable, flag
	}{
		{"domain", "f", "v", "x", func(s config.Settings) any { return s.Domain }, [4]any{"", "f", "v", "x"}},
		{"store-deadline", "5ms", "6ms", "7ms", func(s config.Settings) any { return s.StoreDeadline }, [4]any{25 * time.Millisecond, 5 * time.Millisecond, 6 * time.Millisecond, 7 * time.Millisecond}},
		{"deny-cache", "0", "2MiB", "1GiB", func(s config.Settings) any { return s.DenyCache }, [4]any{config.Bytes(16 << 20), config.Bytes(0), config.Bytes(2 << 20), config.Bytes(1 << 30)}},
		{"memory-limit", "5000000", "6MiB", "7 GiB", func(s config.Settings) any { return s.MemoryLimit }, [4]any{config.Bytes(64 << 20), config.Bytes(5_000_000), config.Bytes(6 << 20), config.Bytes(7 << 30)}},
		{"memory-full", "on_error", "deny", "on_error", func(s config.Settings) any { return s.MemoryFull }, [4]any{"deny", "on_error", "deny", "on_error"}},
		{"max-streams", "5", "6", "7", func(s config.Settings) any { return s.MaxStreams }, [4]any{uint32(1024), uint32(5), uint32(6), uint32(7)}},
		{"reflection", "false", "true", "false", func(s config.Settings) any { return s.Reflection }, [4]any{true, false, true, false}},
		{"admin-addr", `":5"`, "", ":7", func(s config.Settings) any { return s.AdminAddr }, [4]any{"127.0.0.1:9002", ":5", "", ":7"}},
		{"grpc-addr", `"unix:/a"`, ":6", ":7", func(s config.Settings) any { return s.GRPCAddr }, [4]any{"127.0.0.1:9001", "unix:/a", ":6", ":7"}},
		{"key-prefix", "'f:'", "v:", "x:", func(s config.Settings) any { return s.KeyPrefix }, [4]any{"sl:", "f:", "v:", "x:"}},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			t.Parallel()
			variable := "SLUICE_" + strings.ToUpper(strings.ReplaceAll(tt.setting, "-", "_")) + "=" + tt.variable
			file, flag := tt.setting+": "+tt.file, "--"+tt.setting+"="+tt.flag
			for i, g := range []given{
				{},
				{file: file},
				{file: file, environ: []string{variable}},
				{file: file, environ: []string{variable}, args: []string{flag}},
			} {
				s, _, err := g.load(t)
				if err != nil || tt.value(s) != tt.want[i] {
					t.Errorf("Load(%+v) = %v, %v, want %v", g, tt.value(s), err, tt.want[i])
				}
			}
		})
	}
}

func TestLoadPolicyList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args, environ []string
		file          string
		want          []string
	}{
		{args: []string{"-p", "a,b", "--policy", "c"}, want: []string{"a,b", "c"}},
		{environ: []string{"SLUICE_POLICY=a, b"}, want: []string{"a", "b"}},
		{file: "policy: a", want: []string{"a"}},
		{file: "policy: [a, b]", want: []string{"a", "b"}},
	} {
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		config.AddFlags(flags)
		args := tt.args
		if tt.file != "" {
			args = append(args, "--config", writeFile(t, "s.yaml", tt.file))
		}
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		s, _, err := config.Load(flags, tt.environ)
		if diff := cmp.Diff(tt.want, s.Policy); err != nil || diff != "" {
			t.Errorf("Load(%q, %q, %q).Policy, error %v (-want +got):\n%s", tt.args, tt.environ, tt.file, err, diff)
		}
	}
}

func TestLoadFileFormats(t *testing.T) {
	t.Parallel()
	for _, g := range []given{
		{name: "s.yaml", file: "max-streams: 7\nreflection: false\nstore-deadline: 7ms\nkey-prefix: 7\n"},
		{name: "s.json", file: `{"max-streams": 7, "reflection": false, "store-deadline": "7ms", "key-prefix": 7}`},
		{name: "s.toml", file: "max-streams = 7\nreflection = false\nstore-deadline = '7ms'\nkey-prefix = 7\n"},
	} {
		s, _, err := g.load(t)
		got := []any{s.MaxStreams, s.Reflection, s.StoreDeadline, s.KeyPrefix}
		want := []any{uint32(7), false, 7 * time.Millisecond, "7"}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Load(%+v), error %v (-want +got):\n%s", g, err, diff)
		}
	}
}

func TestLoadStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, config.Memory},
		{[]string{"--redis-url", "redis://h:1"}, config.Redis},
		{[]string{"--redis-url", "redis://h:1", "--store", "redis"}, config.Redis},
		{[]string{"--redis-url", "unix:///run/redis.sock"}, config.Redis},
		{[]string{"--redis-url", "redis+cluster://a:1,b:2"}, config.Redis},
		{[]string{"--redis-url", "rediss+sentinel://a:1,b:2/primary/0"}, config.Redis},
	} {
		s, _, err := given{args: tt.args}.load(t)
		if err != nil || s.Store != tt.want {
			t.Errorf("Load(%q).Store = %q, %v, want %q", tt.args, s.Store, err, tt.want)
		}
	}
}

func TestLoadFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given given
		want  []string // of each fault: setting, where from, found
	}{
		{given{args: []string{"--store", "redis"}}, []string{"redis-url|the default|none"}},
		{given{args: []string{"--store", "disk"}}, []string{`store|flag --store|"disk"`}},
		{given{args: []string{"--store", "memory"}, environ: []string{"SLUICE_REDIS_URL=redis://h:1"}}, []string{"store|flag --store|memory"}},
		{given{args: []string{"--redis-url", "http://:secret@h"}}, []string{`redis-url|flag --redis-url|the scheme "http"`}},
		{given{args: []string{"--redis-url", ":secret@h"}}, []string{"redis-url|flag --redis-url|something that is no URL"}},
		{given{args: []string{"--redis-url", "redis+cluster://"}}, []string{"redis-url|flag --redis-url|redis+cluster:// without an address"}},
		{given{args: []string{"--redis-url", "redis://:secret@h", "--redis-tls-ca", "ca.pem"}}, []string{"redis-url|flag --redis-url|redis://, with redis-tls settings too"}},
		{given{args: []string{"--redis-url", "redis://:secret@h", "--redis-sentinel-username", "u"}}, []string{"redis-url|flag --redis-url|redis://, with redis-sentinel settings too"}},
		{given{args: []string{"--redis-tls-cert", "c.pem"}}, []string{`redis-tls-cert|flag --redis-tls-cert|"c.pem"`}},
		{given{environ: []string{"SLUICE_STORE_DEADLINE=25"}}, []string{`store-deadline|variable SLUICE_STORE_DEADLINE|"25"`}},
		{given{environ: []string{"SLUICE_REFLECTION=", "SLUICE_MEMORY_LIMIT="}}, []string{`memory-limit|variable SLUICE_MEMORY_LIMIT|""`, `reflection|variable SLUICE_REFLECTION|""`}},
		{given{file: "store-deadline: 25"}, []string{`store-deadline|settings.yaml|"25"`}},
		{given{file: "max-streams: -1\nmemory-limit: 1.5"}, []string{`max-streams|settings.yaml|"-1"`, `memory-limit|settings.yaml|"1.5"`}},
		{given{file: "domain: [a]"}, []string{`domain|settings.yaml|"[a]"`}},
		{given{file: "redis-password: [secret]"}, []string{"redis-password|settings.yaml|a value that is not shown"}},
		{given{file: "redis-url: [secret]"}, []string{"redis-url|settings.yaml|a value that is not shown"}},
		{given{file: "nonsense: 1"}, []string{"nonsense|settings.yaml|a key that is no setting"}},
		{given{file: "nonsense:\nstore: memory"}, []string{"nonsense|settings.yaml|a key that is no setting"}},
		{given{file: "redis: {url: x}"}, []string{"redis.url|settings.yaml|a key that is no setting"}},
		{given{file: "config: x"}, []string{"config|settings.yaml|a key that is no setting"}},
		{given{args: []string{"--memory-limit", "1023KiB", "--log-level", "loud", "--grpc-addr", "9001"}}, []string{
			`grpc-addr|flag --grpc-addr|"9001"`, `log-level|flag --log-level|"loud"`, "memory-limit|flag --memory-limit|1023KiB",
		}},
		{given{args: []string{"--deny-cache", "1"}}, []string{"deny-cache|flag --deny-cache|1"}},
		{given{args: []string{"--memory-limit", "0", "--memory-full", "allow"}}, []string{`memory-full|flag --memory-full|"allow"`, "memory-limit|flag --memory-limit|0"}},
		{given{environ: []string{"SLUICE_MEMORY_LIMIT=64MB"}}, []string{`memory-limit|variable SLUICE_MEMORY_LIMIT|"64MB"`}},
		{given{environ: []string{"SLUICE_MEMORY_LIMIT=9999999999GiB"}}, []string{`memory-limit|variable SLUICE_MEMORY_LIMIT|"9999999999GiB"`}},
		{given{file: "memory-limit: -1"}, []string{`memory-limit|settings.yaml|"-1"`}},
		{given{args: []string{"--grpc-addr", ":1", "--admin-addr", ":1"}}, []string{`admin-addr|flag --admin-addr|":1"`}},
		{given{args: []string{"--key-prefix", "{a}"}}, []string{`key-prefix|flag --key-prefix|"{a}"`}},
		{given{args: []string{"--policy", ""}}, []string{"policy|flag --policy|an empty path"}},
	} {
		_, _, err := tt.given.load(t)
		var faults config.Faults
		if !errors.As(err, &faults) {
			t.Errorf("Load(%+v) = %v, want Faults", tt.given, err)
			continue
		}
		var got []string
		for _, f := range faults {
			got = append(got, f.Setting+"|"+filepath.Base(f.From)+"|"+f.Found)
		}
		if diff := cmp.Diff(tt.want, sorted(got)); diff != "" {
			t.Errorf("Load(%+v) (-want +got):\n%s", tt.given, diff)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("Load(%+v) = %v, want no password in it", tt.given, err)
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	t.Parallel()
	for _, g := range []given{
		{args: []string{"--config", "/does/not/exist.yaml"}},
		{environ: []string{"SLUICE_CONFIG=/does/not/exist.yaml"}},
		{file: "a: [", name: "s.yaml"},
		{file: "a", name: "s.ini"},
		{args: []string{"--hash-key-file", "/does/not/exist"}},
		{args: []string{"--redis-password-file", "/does/not/exist"}},
		{args: []string{"--redis-sentinel-password-file", "/does/not/exist"}},
		{args: []string{"--redis-tls-ca", "/does/not/exist"}},
		{args: []string{"--redis-tls-cert", "/does/not/exist", "--redis-tls-key", "/does/not/exist"}},
	} {
		_, _, err := g.load(t)
		var faults config.Faults
		if err == nil || errors.As(err, &faults) {
			t.Errorf("Load(%+v) = %v, want an error that is no Faults", g, err)
		}
	}
}

func TestLoadSecrets(t *testing.T) {
	t.Parallel()
	password := writeFile(t, "password", "hush\n")
	for _, tt := range []struct {
		given given
		want  string
	}{
		{given{environ: []string{"SLUICE_REDIS_PASSWORD=a"}}, "a"},
		{given{file: "redis-password: b"}, "b"},
		{given{file: "redis-password: b", environ: []string{"SLUICE_REDIS_PASSWORD=a"}}, "a"},
		{given{args: []string{"--redis-password-file", password}}, "hush"},
	} {
		s, _, err := tt.given.load(t)
		if err != nil || s.RedisPassword != tt.want {
			t.Errorf("Load(%+v).RedisPassword = %q, %v, want %q", tt.given, s.RedisPassword, err, tt.want)
		}
	}
	_, _, err := given{args: []string{"--redis-password-file", password}, environ: []string{"SLUICE_REDIS_PASSWORD=a"}}.load(t)
	var faults config.Faults
	if !errors.As(err, &faults) {
		t.Errorf("Load(a password and a file) = %v, want Faults", err)
	}
}

func TestLoadHashKey(t *testing.T) {
	t.Parallel()
	key := writeFile(t, "key", "0123456789abcdef\r\n")
	s, _, err := given{args: []string{"--hash-key-file", key}}.load(t)
	if err != nil || string(s.HashKey) != "0123456789abcdef" {
		t.Errorf("Load(--hash-key-file).HashKey = %q, %v, want the file's 16 bytes", s.HashKey, err)
	}
	_, _, err = given{args: []string{"--hash-key-file", writeFile(t, "key", "short")}}.load(t)
	var faults config.Faults
	if !errors.As(err, &faults) || strings.Contains(err.Error(), "short") {
		t.Errorf("Load(a short key) = %v, want Faults without the key", err)
	}
}

func TestLoadUnknownVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variable string
		want     []string
	}{
		{"SLUICE_STORE_DEADLIN=1", []string{"variable SLUICE_STORE_DEADLIN is no setting; did you mean SLUICE_STORE_DEADLINE?"}},
		{"SLUICE_XYZZY=1", []string{"variable SLUICE_XYZZY is no setting"}},
		{"SLUICE_store=1", []string{"variable SLUICE_store is no setting; did you mean SLUICE_STORE?"}},
		{"SLUICE_SERVICE_HOST=10.0.0.1", nil}, // Kubernetes sets these
		{"SLUICE_SERVICE_PORT_GRPC=9001", nil},
		{"SLUICE_PORT=tcp://10.0.0.1:9001", nil},
		{"SLUICE_PORT_9001_TCP=tcp://10.0.0.1:9001", nil},
		{"SLUICE_REDIS_PORT_6379_TCP_ADDR=10.0.0.1", nil},
		{"SLUICE_REDIS_PORT=tcp://10.0.0.1:6379", nil},
		{"SLUICE_GRPC_PORT=9001", []string{"variable SLUICE_GRPC_PORT is no setting"}},
		{"SLUICE_CONFIG=", nil},
		{"OTHER=1", nil},
	} {
		_, warnings, err := given{environ: []string{tt.variable}}.load(t)
		if diff := cmp.Diff(tt.want, warnings); err != nil || diff != "" {
			t.Errorf("Load(%s) warnings, error %v (-want +got):\n%s", tt.variable, err, diff)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	s, _, err := given{args: []string{"--domain", "x"}, environ: []string{"SLUICE_STORE=memory"}, file: "log-level: warn"}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"domain": "flag --domain", "store": "variable SLUICE_STORE", "log-level": "settings.yaml", "log-format": "the default", "redis-password": "the default",
	} {
		if got := filepath.Base(s.From(name)); got != want {
			t.Errorf("From(%q) = %q, want %q", name, got, want)
		}
	}
}
