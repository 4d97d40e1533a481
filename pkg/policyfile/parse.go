package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	// maxDepth bounds how deep lists and mappings nest; a policy needs 6.
	maxDepth = 64
	// maxAliased bounds the nodes that aliases stand for, all told.
	maxAliased = 100_000
)

// parse returns the value that is the file's only document, or nil and a
// fault. The tree is safe to walk: aliases in it end, and soon.
func (d *decoder) parse(data []byte) *yaml.Node {
	if bad := badText(data); bad != nil {
		d.add(*bad)
		return nil
	}
	first, second, err := documents(data)
	switch {
	case err != nil:
		d.add(syntaxFault(data, err))
		return nil
	case first == nil:
		d.add(Fault{Found: "nothing in this file", Want: "a policy, which begins with its domain"})
		return nil
	case second != nil:
		d.add(Fault{
			Line: second.Line, Column: second.Column, Found: "a second YAML document",
			Want: "one policy a file", Do: "move what follows into a file of its own",
		})
	}
	return d.bounded(first.Content[0])
}

// documents returns the first two documents of data, as far as it has them.
func documents(data []byte) (first, second *yaml.Node, err error) {
	in, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(bounds{}))
	if err != nil {
		return nil, nil, err
	}
	for _, into := range []**yaml.Node{&first, &second} {
		var n yaml.Node
		err := in.Load(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		*into = &n
	}
	return first, second, nil
}

// bounded returns root, unless its aliases stand for too much.
func (d *decoder) bounded(root *yaml.Node) *yaml.Node {
	w := walk{left: maxAliased}
	if at := w.visit(root, nil); at != nil {
		d.add(Fault{
			Line: at.Line, Column: at.Column, Found: "an alias too many",
			Want: fmt.Sprintf("aliases that stand for at most %d values, and none within itself", maxAliased),
		})
		return nil
	}
	return root
}

// bounds are the limits that the YAML library keeps while it reads.
type bounds struct{}

// CheckDepth refuses text that nests too deep.
func (bounds) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return fmt.Errorf("nested more than %d deep", maxDepth)
	}
	return nil
}

// CheckAlias is for values that the library makes; here it makes only nodes.
func (bounds) CheckAlias(int, int) error { return nil }

// A walk counts what aliases stand for.
type walk struct{ left int }

// visit returns the alias that goes too far, or nil. alias is the outermost
// one that n is seen through.
func (w *walk) visit(n, alias *yaml.Node) *yaml.Node {
	if alias != nil {
		if w.left--; w.left < 0 {
			return alias
		}
	}
	if n.Kind == yaml.AliasNode {
		if alias == nil {
			alias = n
		}
		return w.visit(n.Alias, alias)
	}
	for _, c := range n.Content {
		if at := w.visit(c, alias); at != nil {
			return at
		}
	}
	return nil
}

// syntaxFault is what the YAML library found wrong in data.
func syntaxFault(data []byte, err error) Fault {
	f := Fault{Line: 1, Column: 1, Found: err.Error(), Want: "YAML"}
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return f
	}
	f.Found = strings.TrimSpace("no YAML: " + at.Message + " " + at.ContextMsg)
	if strings.Contains(at.Message, "cannot start any token") {
		f.Do = "indent with spaces, and put text that begins with a mark in quotes"
	}
	if at.Mark.Line > 0 {
		f.Line, f.Column = at.Mark.Line, at.Mark.Column
	}
	if end := end(data); f.Line > end.line {
		f.Line, f.Column = end.line, end.column
	}
	return f
}

// lineBreak is what YAML counts lines by.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// end returns the place behind the last character of data. The YAML library
// takes the end of a text without a last line break for another line.
func end(data []byte) place {
	breaks := lineBreak.FindAllIndex(data, -1)
	last := 0
	if len(breaks) > 0 {
		last = breaks[len(breaks)-1][1]
	}
	return place{len(breaks) + 1, utf8.RuneCount(data[last:]) + 1}
}

// badText returns the place of the first character that YAML does not have,
// which the library would not tell.
func badText(data []byte) *Fault {
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return &Fault{Line: line, Column: column, Found: fmt.Sprintf("the byte 0x%02x", data[i]), Want: "text in UTF-8"}
		case r == '\n':
			line, column = line+1, 0
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &Fault{Line: line, Column: column, Found: fmt.Sprintf("the control character 0x%02x", r), Want: "text", Do: `write it as an escape in double quotes: "\x01"`}
		}
		i += size
		column++
	}
	return nil
}
