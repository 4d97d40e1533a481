package policyfile

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// placeOf returns the place of a fault of package policy, which may be inside
// of a field's text.
func (d *decoder) placeOf(f policy.Fault) place {
	n := d.texts[f.Path]
	if f.Line == 0 || n == nil {
		return d.places.nearest(f.Path)
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return d.withinBlock(n, f.Line, f.Column)
	}
	return d.withinLine(n, f.Column)
}

// withinBlock returns the place of a column in a line of a block's text; that
// of the block if it is not a line of the file.
func (d *decoder) withinBlock(n *yaml.Node, line, column int) place {
	lines := strings.Split(n.Value, "\n")
	source := d.line(n.Line + line)
	if line > len(lines) {
		return place{n.Line, n.Column}
	}
	indent, ok := strings.CutSuffix(string(source), lines[line-1])
	if !ok || strings.Trim(indent, " ") != "" {
		return place{n.Line, n.Column}
	}
	return place{n.Line + line, len(indent) + column}
}

// withinLine returns the place of a column in a text that is one line of the
// file; that of the text if it is not.
func (d *decoder) withinLine(n *yaml.Node, column int) place {
	at := place{n.Line, n.Column}
	source := d.line(n.Line)
	if len(source) < n.Column {
		return at
	}
	source = source[n.Column-1:]
	offset, length := 0, plainLength
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0 && source[0] == '\'':
		offset, length = 1, singleLength
	case n.Style&yaml.DoubleQuotedStyle != 0 && source[0] == '"':
		offset, length = 1, doubleLength
	case n.Style != 0 || !strings.HasPrefix(string(source), n.Value):
		return at
	}
	for ; column > 1 && offset < len(source); column-- {
		offset += length(source[offset:])
	}
	if column > 1 {
		return at
	}
	return place{at.line, at.column + offset}
}

// line returns the characters of a line of the file, from 1.
func (d *decoder) line(n int) []rune {
	if d.lines == nil {
		d.lines = lineBreak.Split(string(d.data), -1)
	}
	if n > len(d.lines) {
		return nil
	}
	return []rune(d.lines[n-1])
}

func plainLength([]rune) int { return 1 }

// singleLength returns how many characters of a file stand for the first one
// of a text in single quotes.
func singleLength(source []rune) int {
	if len(source) > 1 && source[0] == '\'' && source[1] == '\'' {
		return 2
	}
	return 1
}

// doubleLength is the same in double quotes.
func doubleLength(source []rune) int {
	if len(source) < 2 || source[0] != '\\' {
		return 1
	}
	switch source[1] {
	case 'x':
		return 4
	case 'u':
		return 6
	case 'U':
		return 10
	default:
		return 2
	}
}
