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
	// Merge makes one policy of all the files in envoyproxy/ratelimit's format
	// that have one domain. Without it they are refused, as other files are.
	Merge bool
	// Ratelimit reads every file as one in that format; nil only those that
	// have descriptors.
	Ratelimit *Ratelimit
}

// Ratelimit is how envoyproxy/ratelimit looks for its files: of a directory it
// reads all, whatever their names, and those in directories within it.
// Directories that begin with two dots, as in a mounted ConfigMap, are passed
// over.
type Ratelimit struct {
	// SkipDotfiles passes over all that begins with one.
	SkipDotfiles bool
	// OnError is what becomes of requests when the store does not answer.
	OnError policy.OnError
}

// Load reads the policy that o names. The Set is nil if any of the faults is
// more than a warning.
func Load(o Options) (*policy.Set, Faults) {
	l := load(o)
	if l.faults.Err() != nil {
		return nil, l.faults
	}
	return l.set()
}

// LoadKeeping is Load for domains that do without one another: the policy of a
// file with faults is the one that before has of it, or none. So the Set is
// there whatever the faults say. before may be nil.
func LoadKeeping(o Options, before *policy.Set) (*policy.Set, Faults) {
	l := load(o)
	l.keep(before)
	set, faults := l.set()
	if set == nil {
		return before, faults
	}
	return set, faults
}

func newLoader(o Options) *loader {
	l := &loader{options: o, files: o.FS, parts: map[string]*part{}}
	if l.files == nil {
		l.files = machine{}
	}
	return l
}

func load(o Options) *loader {
	l := newLoader(o)
	for _, name := range l.list() {
		l.read(name)
	}
	for _, p := range l.order {
		l.compile(p)
	}
	l.faults.sort()
	return l
}

// A loader gathers the policies and the faults of all files.
type loader struct {
	options Options
	files   fs.FS
	parts   map[string]*part // by domain
	order   []*part
	faults  Faults
}

// A part is what makes one policy: a file, or those of one domain.
type part struct {
	files  []*decoder
	policy *policy.Policy // nil with faults
	second bool           // another part has its domain already
}

// set makes a set of the parts that have no faults.
func (l *loader) set() (*policy.Set, Faults) {
	var policies []*policy.Policy
	for _, p := range l.order {
		if p.policy != nil {
			policies = append(policies, p.policy)
		}
	}
	set, faults := policy.NewSet(policy.SetOptions{Policies: policies, Default: l.options.Default})
	for _, f := range faults {
		l.faults = append(l.faults, placed(f, place{}))
	}
	return set, l.faults
}

// read reads one file.
func (l *loader) read(name string) {
	data, fault := read(l.files, name)
	if fault != nil {
		l.miss(name, *fault)
		return
	}
	d := decode(name, data, l.options.Ratelimit != nil)
	if r := l.options.Ratelimit; r != nil {
		d.spec.OnError = r.OnError
	}
	l.claim(d)
}

// miss notes a file, or a directory, that cannot be read.
func (l *loader) miss(name string, fault Fault) {
	l.faults = append(l.faults, fault)
	l.order = append(l.order, &part{files: []*decoder{{file: name, partial: true}}})
}

// claim adds d to the part that it belongs to. No two files have one domain,
// unless they are merged.
func (l *loader) claim(d *decoder) {
	p := l.parts[d.spec.Domain]
	switch {
	case d.spec.Domain == "":
		p = nil
	case p != nil && l.options.Merge && d.spec.Tree != nil && p.files[0].spec.Tree != nil:
		p.files = append(p.files, d)
		return
	case p != nil:
		first := p.files[0]
		here, there := d.places.nearest("domain"), first.places.nearest("domain")
		do := "put the rules of both into one file, or rename one domain"
		if d.spec.Tree != nil && first.spec.Tree != nil {
			do = "put both into one file, rename one domain, or have domains merged"
		}
		d.add(Fault{
			Line: here.line, Column: here.column, Path: "domain",
			Found: fmt.Sprintf("%s, the domain of %s:%d already", quote(d.spec.Domain), first.file, there.line),
			Want:  "one file a domain", Do: do,
		})
	}
	taken := p != nil
	p = &part{files: []*decoder{d}, second: taken}
	l.order = append(l.order, p)
	if !taken && d.spec.Domain != "" {
		l.parts[d.spec.Domain] = p
	}
}

// compile makes p's policy, or says what policy finds wrong in it and does not
// follow from what is known to be wrong.
func (l *loader) compile(p *part) {
	if !p.partial() {
		compiled, faults := policy.Compile(p.spec(), policy.Options{HashKey: l.options.HashKey})
		p.add(faults)
		if p.clean() {
			p.policy = compiled
		}
	}
	for _, d := range p.files {
		l.faults = append(l.faults, d.faults...)
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
