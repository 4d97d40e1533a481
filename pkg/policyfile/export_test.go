package policyfile

import "github.com/sluice-mesh/sluice/pkg/policy"

// Decode is a file's text as far as it can be read, for tests.
func Decode(file string, data []byte) (policy.Spec, Faults) {
	d := decode(file, data, false)
	return d.spec, d.faults
}

// MaxFile and MaxFaults are the bounds that tests go beyond.
const (
	MaxFile   = maxFile
	MaxFaults = maxFaults
)
