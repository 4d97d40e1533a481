package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/sluice-mesh/sluice/internal/spelling"
)

const (
	envPrefix = "SLUICE_"
	// keyDelimiter is what no key has in it: no setting is within another.
	keyDelimiter = "\x00"
)

// Load returns the settings that flags, made by AddFlags and parsed, environ
// (lines of NAME=value) and the settings file make together, and warnings of
// what it did not understand, or what does nothing. The error is Faults if a
// setting cannot be used; else a file could not be read.
func Load(flags *pflag.FlagSet, environ []string) (Settings, []string, error) {
	l := loader{flags: flags, v: viper.NewWithOptions(viper.KeyDelimiter(keyDelimiter)), from: map[string]string{}}
	variables := l.variables(environ)
	if err := l.file(variables); err != nil {
		return Settings{}, l.warnings, err
	}
	if err := l.merge(variables); err != nil {
		return Settings{}, l.warnings, err
	}
	s, err := l.decode()
	return s, append(l.warnings, s.doubts()...), err
}

type loader struct {
	flags    *pflag.FlagSet
	v        *viper.Viper
	from     map[string]string
	warnings []string
}

// variables returns the settings that environ holds, by name.
func (l *loader) variables(environ []string) map[string]any {
	found := map[string]any{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours {
			continue
		}
		key := strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		if envName(key) == name && (l.known(key) || key == fileFlag) {
			found[key] = value
			continue
		}
		if !fromKubernetes(rest, value) {
			l.warnings = append(l.warnings, "variable "+name+" is no setting"+spelling.DidYouMean(strings.ToUpper(name), l.variableNames()))
		}
	}
	return found
}

// serviceVariable matches the names that Kubernetes gives variables for the
// Services of a namespace: one called sluice, or sluice-redis, makes some that
// look like ours.
var serviceVariable = regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$`)

func fromKubernetes(rest, value string) bool {
	url := strings.HasSuffix(rest, "PORT") && strings.Contains(value, "://")
	return url || serviceVariable.MatchString(rest)
}

func (l *loader) variableNames() []string {
	names := l.names()
	for i, name := range names {
		names[i] = envName(name)
	}
	return names
}

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// known says that key is a setting that files and variables may have.
func (l *loader) known(key string) bool { return slices.Contains(l.names(), key) }

func (l *loader) names() []string {
	names := slices.Clone(secretKeys)
	for name := range flagNames(l.flags) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func flagNames(flags *pflag.FlagSet) map[string]*pflag.Flag {
	ours := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(ours)
	names := map[string]*pflag.Flag{}
	ours.VisitAll(func(f *pflag.Flag) {
		if f.Name != fileFlag {
			names[f.Name] = flags.Lookup(f.Name)
		}
	})
	return names
}

// file reads the settings file, if there is one.
func (l *loader) file(variables map[string]any) error {
	name, _ := variables[fileFlag].(string)
	delete(variables, fileFlag)
	if f := l.flags.Lookup(fileFlag); f.Changed {
		name = f.Value.String()
	}
	if name == "" {
		return nil
	}
	l.v.SetConfigFile(name)
	if err := l.v.ReadInConfig(); err != nil {
		return fmt.Errorf("read settings file %s: %w", name, err)
	}
	var faults Faults
	keys := l.v.AllKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if !l.known(key) {
			key = strings.ReplaceAll(key, keyDelimiter, ".")
			faults = append(faults, Fault{
				Setting: key, From: name, Found: "a key that is no setting",
				Want: "one of " + strings.Join(l.names(), ", ") + spelling.DidYouMean(key, l.names()),
			})
		}
		l.from[key] = name
	}
	return faults.orNil()
}

func (fs Faults) orNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// merge puts the variables over the file and the flags over both.
func (l *loader) merge(variables map[string]any) error {
	for key := range variables {
		l.from[key] = "variable " + envName(key)
	}
	for _, key := range secretKeys {
		l.v.SetDefault(key, "")
	}
	if err := l.v.MergeConfigMap(variables); err != nil {
		return fmt.Errorf("read variables: %w", err)
	}
	for name, flag := range flagNames(l.flags) {
		if err := l.v.BindPFlag(name, flag); err != nil {
			return fmt.Errorf("read flag --%s: %w", name, err)
		}
		if flag.Changed {
			l.from[name] = "flag --" + name
		}
	}
	return nil
}

func (l *loader) decode() (Settings, error) {
	s := Settings{from: l.from}
	if err := l.v.UnmarshalExact(&s, viper.DecodeHook(decodeValue)); err != nil {
		return Settings{}, l.decodeFaults(err)
	}
	if faults := s.resolve(); faults != nil {
		return Settings{}, faults
	}
	return s, s.readSecrets()
}

// decodeFaults makes a fault of each value that has the wrong form.
func (l *loader) decodeFaults(err error) error {
	var faults Faults
	for _, e := range flatten(err) {
		named, ok := e.(interface{ Name() string })
		if !ok {
			return fmt.Errorf("read settings: %w", err)
		}
		name := named.Name()
		faults = append(faults, Fault{
			Setting: name, From: Settings{from: l.from}.From(name),
			Found: l.found(name), Want: wantedForm(name),
		})
	}
	return faults.orNil()
}

// found is the value of a setting, unless there may be a secret in it.
func (l *loader) found(name string) string {
	if slices.Contains(secretKeys, name) || name == "redis-url" {
		return "a value that is not shown"
	}
	return strconv.Quote(fmt.Sprint(l.v.Get(name)))
}

// flatten returns the errors that err joins.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
