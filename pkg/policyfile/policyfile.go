// Package policyfile reads policies from YAML files: it makes a policy.Set of
// them, or says every fault with its place.
//
// It is strict. A field that it does not know, a unit that does not exist, a
// key that comes twice and a field that is not there yet are faults, never
// passed over, and all faults of all files come at once. What a policy means
// is for package policy to say, whose faults get their places here.
package policyfile

import (
	"fmt"
	"io/fs"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Options say which files make a policy.
type Options struct {
	// Paths are files, and directories whose *.yaml and *.yml files are read,
	// in the order of their names. At least one is required. In a directory,
	// names that begin with a dot and directories are passed over, and symbolic
	// links are followed, so that a mounted Kubernetes ConfigMap is read once.
	Paths []string
	// FS is where the paths lie. nil means the machine's files.
	FS fs.FS
	// Default is the domain that answers requests which name none. "" means
	// the only file with rules for them.
	Default string
	// HashKey is the key of the hashes that stand for long and secret values.
	// Replicas need the same one. Empty means one that everybody knows.
	HashKey []byte
}

// Load reads the policy that o names. The Set is nil if any of the faults is
// more than a warning.
func Load(o Options) (*policy.Set, Faults) {
	l := loader{options: o, files: o.FS, domains: map[string]Fault{}}
	if l.files == nil {
		l.files = machine{}
	}
	for _, name := range l.list() {
		l.load(name)
	}
	l.faults.sort()
	if l.faults.Err() != nil {
		return nil, l.faults
	}
	set, faults := policy.NewSet(policy.SetOptions{Policies: l.policies, Default: o.Default})
	for _, f := range faults {
		l.faults = append(l.faults, placed(f, place{}))
	}
	if l.faults.Err() != nil {
		return nil, l.faults
	}
	return set, l.faults
}

// A loader gathers the policies and the faults of all files.
type loader struct {
	options  Options
	files    fs.FS
	policies []*policy.Policy
	faults   Faults
	domains  map[string]Fault // where each domain was found first
}

// load reads one file.
func (l *loader) load(name string) {
	data, fault := read(l.files, name)
	if fault != nil {
		l.faults = append(l.faults, *fault)
		return
	}
	d := decode(name, data)
	l.claim(d)
	if !d.partial {
		l.compile(d)
	}
	l.faults = append(l.faults, d.faults...)
}

// claim sees to it that no two files have one domain.
func (l *loader) claim(d *decoder) {
	if d.spec.Domain == "" {
		return
	}
	here := d.places.nearest("domain")
	if first, taken := l.domains[d.spec.Domain]; taken {
		d.add(Fault{
			Line: here.line, Column: here.column, Path: "domain",
			Found: fmt.Sprintf("%s, the domain of %s:%d already", quote(d.spec.Domain), first.File, first.Line),
			Want:  "one file a domain", Do: "put the rules of both into one file, or rename one domain",
		})
		return
	}
	l.domains[d.spec.Domain] = Fault{File: d.file, Line: here.line}
}

// compile adds the policy that d holds, or what policy finds wrong in it and
// does not follow from what is known to be wrong.
func (l *loader) compile(d *decoder) {
	p, faults := policy.Compile(d.spec, policy.Options{HashKey: l.options.HashKey})
	l.policies = append(l.policies, p)
	clean := len(d.faults) == 0
	for _, f := range faults {
		if d.full() {
			return
		}
		if clean || !f.Warning && !d.follows(f.Path) {
			d.add(placed(f, d.placeOf(f)))
		}
	}
}

// maxShown bounds what is shown of what package policy found, which may be as
// long as the file.
const maxShown = 300

// placed gives a fault of package policy its place.
func placed(f policy.Fault, at place) Fault {
	return Fault{
		File: f.File, Line: at.line, Column: at.column,
		Path: cut(f.Path, maxShown), Found: cut(f.Found, maxShown), Want: cut(f.Want, maxShown), Do: f.Do, Warning: f.Warning,
	}
}
