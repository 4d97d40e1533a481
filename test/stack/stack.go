// Package stack starts the processes of a whole system on this machine: a
// real Envoy on a published configuration, extauthz, Redis, and an upstream.
// The demo and the tests from end to end are made of it.
//
// Everything listens on loopback, on ports that were free, and is ended by its
// process id. What the parts say to each other is none of its business.
package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root returns the folder of the checkout: the first with a go.mod, going up
// from where this process runs.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find the checkout: no go.mod here nor above")
		}
		dir = up
	}
	return "", err
}

// ErrNoPart says that a program is not on this machine.
var ErrNoPart = errors.New("is not on this machine")

// EnvoyPath finds Envoy: what the variable ENVOY says, else what hack/tool put
// into .tools. The error is ErrNoPart where there is none.
func EnvoyPath() (string, error) {
	return find("Envoy (hack/tool envoy gets it, ENVOY=/path names one)", os.Getenv("ENVOY"), "envoy")
}

// RedisPath finds a Redis server: what the variable REDIS_SERVER says, else
// redis-server in PATH, else the Valkey that the variable VALKEY_SERVER names or
// that hack/tool put into .tools. The error is ErrNoPart where there is none.
func RedisPath() (string, error) {
	if own := os.Getenv("REDIS_SERVER"); own != "" {
		return own, nil
	}
	if path, err := exec.LookPath("redis-server"); err == nil {
		return path, nil
	}
	return find("a Redis server (install redis-server; hack/tool valkey gets Valkey)", os.Getenv("VALKEY_SERVER"), "valkey-server")
}

// find returns own unless it is empty, else the tool called name.
func find(what, own, name string) (string, error) {
	if own != "" {
		return own, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".tools", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s %w", what, ErrNoPart)
	}
	return path, nil
}
