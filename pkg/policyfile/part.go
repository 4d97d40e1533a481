package policyfile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// partial says that so much of p could not be read that faults in what the
// rest means would mostly follow from that.
func (p *part) partial() bool {
	return slices.ContainsFunc(p.files, func(d *decoder) bool { return d.partial })
}

func (p *part) clean() bool {
	return !slices.ContainsFunc(p.files, func(d *decoder) bool { return d.faults.Err() != nil })
}

// spec is that of p's only file, or that of all of them.
func (p *part) spec() policy.Spec {
	spec := p.files[0].spec
	if len(p.files) == 1 {
		return spec
	}
	spec.Tree = slices.Clone(spec.Tree)
	for _, d := range p.files[1:] {
		spec.File += fileSeparator + d.file
		spec.Tree = append(spec.Tree, d.spec.Tree...)
	}
	return spec
}

// fileSeparator divides the names of files that make one policy.
const fileSeparator = ", "

// add adds what package policy found wrong to the files that it is in.
func (p *part) add(faults []policy.Fault) {
	clean := p.clean()
	for _, f := range faults {
		d := p.fileOf(&f)
		if d.full() {
			continue
		}
		if clean || !f.Warning && !d.follows(f.Path) {
			d.add(placed(f, d.placeOf(f)))
		}
	}
}

// fileOf returns the file that f is in, and makes f's path the one in there.
func (p *part) fileOf(f *policy.Fault) *decoder {
	rest, ok := strings.CutPrefix(f.Path, "descriptors[")
	if !ok || len(p.files) == 1 {
		return p.files[0]
	}
	digits, rest, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	for _, d := range p.files {
		if err == nil && n < len(d.spec.Tree) {
			f.Path = fmt.Sprintf("descriptors[%d]%s", n, rest)
			return d
		}
		n -= len(d.spec.Tree)
	}
	return p.files[0]
}

// keep puts policies of before in the place of those that have faults: of the
// same file, or the same domain.
func (l *loader) keep(before *policy.Set) {
	for _, p := range before.Policies() {
		if l.hurts(p) {
			l.stand(p)
		}
	}
}

// hurts says that a file of p, or one that has its domain now, has faults.
func (l *loader) hurts(p *policy.Policy) bool {
	for _, part := range l.order {
		if part.policy != nil {
			continue
		}
		for _, d := range part.files {
			if d.spec.Domain == p.Domain && !part.second || d.had(p) {
				return true
			}
		}
	}
	return false
}

// had says that one of p's files is d's, or is in it where that is a directory.
func (d *decoder) had(p *policy.Policy) bool {
	dir := path.Clean(d.file)
	return slices.ContainsFunc(strings.Split(p.File, fileSeparator), func(name string) bool {
		return name == d.file || d.partial && (dir == "." || strings.HasPrefix(name, dir+"/"))
	})
}

// stand has p stand in for what could not be read. Where its domain can be read
// from another file, that holds; but not if p was made of that one among
// others.
func (l *loader) stand(p *policy.Policy) {
	for _, part := range l.order {
		if part.policy == nil || part.policy.Domain != p.Domain {
			continue
		}
		if part.policy.File == p.File || !strings.Contains(p.File, part.policy.File) {
			return
		}
		part.policy = nil
	}
	l.order = append(l.order, &part{policy: p})
}
