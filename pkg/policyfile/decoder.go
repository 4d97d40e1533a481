package policyfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

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
	// partial says that so much could not be read that faults in what the rest
	// means would mostly follow from that.
	partial bool
}

// decode reads one file's text as far as it can be read.
func decode(file string, data []byte) *decoder {
	d := &decoder{file: file, spec: policy.Spec{File: file}, places: places{}}
	root := d.parse(data)
	if root == nil {
		d.partial = true
		return d
	}
	d.places[""] = place{root.Line, root.Column}
	policyFile(d, field{node: root})
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
	d.add(Fault{Line: f.node.Line, Column: f.node.Column, Path: f.path, Found: found, Want: want, Do: do})
}

// keyFault leaves a fault at the key of f.
func (d *decoder) keyFault(f field, found, want, do string) {
	d.add(Fault{Line: f.key.Line, Column: f.key.Column, Path: f.path, Found: found, Want: want, Do: do})
}

// A field is one value of a file, and the path that faults name it by.
type field struct {
	path string
	node *yaml.Node
	name string     // in a mapping
	key  *yaml.Node // in a mapping
}

// A reader takes a field's value to where it belongs, or leaves a fault.
type reader func(d *decoder, f field)

// A form is what a mapping may hold.
type form struct {
	fields   map[string]reader
	later    map[string]string // fields that are not there yet: what to do instead
	required []string
}

// read reads the mapping f, and faults what is not in the form.
func (m form) read(d *decoder, f field) {
	if !d.is(f, yaml.MappingNode) {
		return
	}
	missing := slices.Clone(m.required)
	for _, c := range d.entries(f) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.name })
		if instead, ok := m.later[c.name]; ok {
			d.keyFault(c, "a field that is not there yet", "a policy without it", instead)
		} else if read, ok := m.fields[c.name]; ok {
			read(d, c)
		} else {
			d.unknown(c, m)
		}
	}
	for _, name := range missing {
		d.add(Fault{Line: f.node.Line, Column: f.node.Column, Path: join(f.path, name), Found: "nothing", Want: wanted[name]})
	}
}

// unknown leaves a fault at a field that m does not have.
func (d *decoder) unknown(f field, m form) {
	known := slices.Sorted(maps.Keys(m.fields))
	do := ""
	if name := nearest(f.name, slices.AppendSeq(known, maps.Keys(m.later))); name != "" {
		do = fmt.Sprintf("did you mean %q?", name)
	}
	d.keyFault(f, "an unknown field", "one of "+strings.Join(known, ", "), do)
	if f.path == f.name {
		d.partial = true
	}
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
			d.keyFault(c, fmt.Sprintf("a second %s, the first being at %d:%d", display(c.name), at.Line, at.Column), "it once", "remove one of them")
			continue
		}
		first[c.name] = key
		d.places[c.path] = place{c.node.Line, c.node.Column}
		d.places[f.path+"."+c.name] = d.places[c.path] // as package policy writes it
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
	d.add(Fault{Line: key.Line, Column: key.Column, Path: f.path, Found: describe(key) + " as a key", Want: "text", Do: do})
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
		do = fmt.Sprintf("write [%s]", shorten(f.node.Value))
	}
	d.fault(f, describe(f.node), want, do)
	d.partial = d.partial || f.path == f.name
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
		return "a value tagged " + shorten(tag)
	case tag == "!!str":
		return quote(n.Value)
	case tag == "!!null":
		return "nothing"
	case tag == "!!int", tag == "!!float":
		return "the number " + shorten(n.Value)
	case tag == "!!bool", tag == "!!timestamp", tag == "!!merge":
		return shorten(n.Value)
	default:
		return quote(n.Value) + " tagged " + shorten(tag)
	}
}

// plainName is how a field's name looks when it needs no quotes in a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// display returns a name as it is, or quoted where a reader or a log would be
// misled.
func display(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quote(name)
}

// join returns the path of a mapping's field.
func join(path, name string) string {
	if path == "" {
		return display(name)
	}
	return path + "." + display(name)
}

// quote returns s in quotes, on one line and not too long.
func quote(s string) string { return fmt.Sprintf("%q", cut(s)) }

// shorten returns s without quotes if it needs none.
func shorten(s string) string { return printable(cut(s)) }

func cut(s string) string {
	const most = 60
	if r := []rune(s[:min(len(s), 4*most)]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
