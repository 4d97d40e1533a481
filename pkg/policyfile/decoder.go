package policyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-mesh/sluice/internal/spelling"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// maxFaults bounds the faults that one file is told of.
const maxFaults = 1000

// A decoder takes one file's YAML into a policy.Spec.
//
// The YAML library's own strict decoding finds unknown fields, duplicate keys
// and wrong types too, with their places. It is not used because it tells them
// in terms of Go, without a field's path and without a hint; because the faults
// of package policy need places as well, and so the tree of nodes; and because
// its list of duplicate keys grows with the square of their number.
type decoder struct {
	file   string
	spec   policy.Spec
	faults Faults
	places places
	data   []byte
	lines  []string              // data by lines, once they are asked for
	texts  map[string]*yaml.Node // expressions, by their paths
	broken []string              // the paths that the file's own faults are at
	// partial says that so much could not be read that faults in what the rest
	// means would mostly follow from that.
	partial bool
}

// decode reads one file's text as far as it can be read.
func decode(file string, data []byte, ratelimit bool) *decoder {
	d := &decoder{file: file, spec: policy.Spec{File: file}, data: data, places: places{}, texts: map[string]*yaml.Node{}}
	root := d.parse(data)
	if root == nil {
		d.partial = true
		return d
	}
	d.places[""] = place{root.Line, root.Column}
	if ratelimit || hasDescriptors(root) {
		ratelimitFile(d, field{node: root})
	} else {
		policyFile(d, field{node: root})
	}
	return d
}

// add keeps a fault, unless there are too many already.
func (d *decoder) add(f Fault) {
	f.File = d.file
	switch n := len(d.faults); {
	case n < maxFaults:
		d.faults = append(d.faults, f)
	case n == maxFaults:
		d.faults = append(d.faults, Fault{
			File: d.file, Line: f.Line, Column: f.Column, Found: "more faults than these",
			Want: fmt.Sprintf("at most %d", maxFaults), Do: "correct these first",
		})
	}
}

// full says that no further fault would be kept.
func (d *decoder) full() bool { return len(d.faults) > maxFaults }

// fault leaves a fault at the value of f.
func (d *decoder) fault(f field, found, want, do string) {
	d.broken = append(d.broken, f.path)
	d.add(Fault{Line: f.node.Line, Column: f.node.Column, Path: f.path, Found: found, Want: want, Do: do})
}

// keyFault leaves a fault at the key of f.
func (d *decoder) keyFault(f field, found, want, do string) {
	d.broken = append(d.broken, f.path)
	d.add(Fault{Line: f.key.Line, Column: f.key.Column, Path: f.path, Found: found, Want: want, Do: do})
}

// A field is one value of a file, and the path that faults name it by.
type field struct {
	path string
	node *yaml.Node
	name string     // in a mapping
	key  *yaml.Node // in a mapping
}

// top says that f is a field of the file itself, or the file.
func (f field) top() bool { return f.path == join("", f.name) }

// A reader takes a field's value to where it belongs, or leaves a fault.
type reader func(d *decoder, f field)

// A form is what a mapping may hold.
type form struct {
	fields   map[string]reader
	later    map[string]string // fields that are not there yet: what to do instead
	required []string
	instead  map[string]string // fields that a required one need not stand beside
	// elsewhere are fields that belong into another mapping: which.
	elsewhere map[string]string
}

// read reads the mapping f, and faults what is not in the form.
func (m form) read(d *decoder, f field) {
	if !d.is(f, yaml.MappingNode) {
		return
	}
	fields := d.entries(f)
	there := map[string]bool{}
	for _, c := range fields {
		there[c.name] = true
	}
	for _, c := range fields {
		if d.full() {
			return
		}
		m.field(d, c, there)
	}
	for _, name := range m.required {
		if other := m.instead[name]; !there[name] && (other == "" || !there[other]) {
			d.fault(field{path: join(f.path, name), node: f.node}, "nothing", wanted[name], "")
		}
	}
}

// field reads f, one of the fields of a mapping. Those that are there are its
// fields' names; one that was probably meant is added to them.
func (m form) field(d *decoder, f field, there map[string]bool) {
	if read, ok := m.fields[f.name]; ok {
		read(d, f)
		return
	}
	if instead, ok := m.later[f.name]; ok {
		d.keyFault(f, "a field that is not there yet", "a policy without it", instead)
		return
	}
	if where, ok := m.elsewhere[f.name]; ok {
		d.keyFault(f, f.name+" in the wrong place, where it would mean nothing", "it "+where, "")
		return
	}
	m.unknown(d, f, there)
}

// unknown leaves a fault at a field that m does not have. It is read as the one
// that was probably meant, unless that is there as well, so that no other fault
// follows from it or hides behind it.
func (m form) unknown(d *decoder, f field, there map[string]bool) {
	known := slices.Sorted(maps.Keys(m.fields))
	meant := spelling.Nearest(f.name, slices.AppendSeq(slices.Clone(known), maps.Keys(m.later)))
	do := ""
	if meant != "" {
		do = fmt.Sprintf("did you mean %q?", meant)
	}
	d.keyFault(f, "an unknown field", "one of "+strings.Join(known, ", "), do)
	if meant == "" {
		return
	}
	if read, ok := m.fields[meant]; ok && !there[meant] {
		f.path, f.name = strings.TrimSuffix(f.path, f.name)+meant, meant
		d.places[f.path] = place{f.node.Line, f.node.Column}
		read(d, f)
	}
	there[meant] = true
}

// entries returns the fields of a mapping. Keys that are no text, and those
// that come twice, are faults.
func (d *decoder) entries(f field) []field {
	var all []field
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(f.node.Content) && !d.full(); i += 2 {
		key, value := f.node.Content[i], f.node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			d.badKey(f, key)
			continue
		}
		c := d.child(join(f.path, key.Value), value)
		c.name, c.key = key.Value, key
		if at := first[c.name]; at != nil {
			d.keyFault(c, fmt.Sprintf("a second %s, the first being at %d:%d", cut(c.name, maxQuoted), at.Line, at.Column), "it once", "remove one of them")
			continue
		}
		first[c.name] = key
		d.places[c.path] = place{c.node.Line, c.node.Column}
		all = append(all, c)
	}
	return all
}

func (d *decoder) badKey(f field, key *yaml.Node) {
	do := "put it in quotes"
	switch {
	case key.ShortTag() == "!!merge":
		do = "merge keys are not read: write the fields out"
	case key.Kind != yaml.ScalarNode:
		do = "write the key as plain text"
	}
	d.keyFault(field{path: f.path, key: key}, describe(key)+" as a key", "text", do)
}

// items returns the fields of a list.
func (d *decoder) items(f field) []field {
	if !d.is(f, yaml.SequenceNode) {
		return nil
	}
	all := make([]field, len(f.node.Content))
	for i, n := range f.node.Content {
		all[i] = d.child(fmt.Sprintf("%s[%d]", f.path, i), n)
		d.places[all[i].path] = place{all[i].node.Line, all[i].node.Column}
	}
	return all
}

// child returns the field at a path, which may be an alias for its value.
func (d *decoder) child(path string, n *yaml.Node) field {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return field{path: path, node: n}
}

// is says that f is a mapping or a list, as kind wants, or leaves a fault.
func (d *decoder) is(f field, kind yaml.Kind) bool {
	tag, want := "!!map", "a mapping"
	if kind == yaml.SequenceNode {
		tag, want = "!!seq", "a list"
	}
	if f.node.Kind == kind && f.node.ShortTag() == tag {
		return true
	}
	do := ""
	if kind == yaml.SequenceNode && f.node.Kind == yaml.ScalarNode && f.node.Value != "" {
		do = fmt.Sprintf("write [%s]", cut(f.node.Value, maxQuoted))
	}
	d.fault(f, describe(f.node), want, do)
	d.partial = d.partial || f.top()
	return false
}

// describe tells what was found, on one line.
func describe(n *yaml.Node) string {
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Kind == yaml.MappingNode && tag == "!!map":
		return "a mapping"
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		return "a list"
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		return "a value tagged " + cut(tag, maxQuoted)
	case tag == "!!str":
		return quote(n.Value)
	case tag == "!!null":
		return "nothing"
	case tag == "!!int", tag == "!!float":
		return "the number " + cut(n.Value, maxQuoted)
	case tag == "!!bool", tag == "!!timestamp", tag == "!!merge":
		return cut(n.Value, maxQuoted)
	default:
		return quote(n.Value) + " tagged " + cut(tag, maxQuoted)
	}
}

// join returns the path of a mapping's field.
func join(path, name string) string {
	name = cut(name, maxQuoted)
	if path == "" {
		return name
	}
	return path + "." + name
}

// maxQuoted bounds what is shown of one text in the file.
const maxQuoted = 60

// quote returns s in quotes, on one line and not too long.
func quote(s string) string { return fmt.Sprintf("%q", cut(s, maxQuoted)) }

// cut returns s, or its first characters if it has more than most.
func cut(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
