package policyfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-mesh/sluice/internal/spelling"
)

// text reads text that is not empty.
func text(into *string) reader {
	return func(d *decoder, f field) {
		if s, ok := d.text(f, "text"); ok {
			if s == "" {
				d.fault(f, "an empty text", "text", "leave the field out if it is not needed")
			}
			*into = s
		}
	}
}

// anyText reads text that may be empty.
func anyText(into *string) reader {
	return func(d *decoder, f field) {
		if s, ok := d.text(f, "text"); ok {
			*into = s
		}
	}
}

// expression reads text in which faults have places of their own.
func expression(into *string) reader {
	return func(d *decoder, f field) {
		d.texts[f.path] = f.node
		text(into)(d, f)
	}
}

// cost reads a whole number, or an expression that is one.
func cost(into *string) reader {
	return func(d *decoder, f field) {
		tag := f.node.ShortTag()
		if f.node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
			expression(into)(d, f)
			return
		}
		if !wholeNumber.MatchString(f.node.Value) && f.node.Value != "0" {
			d.fault(f, describe(f.node), "a whole number of at least 0, in digits", "")
		}
		*into = f.node.Value
	}
}

// text returns the text at f. A number and the like is none without quotes.
func (d *decoder) text(f field, want string) (string, bool) {
	n := f.node
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	do := ""
	if want == "text" && n.Kind == yaml.ScalarNode && n.Value != "" && n.ShortTag() != "!!null" {
		do = fmt.Sprintf("put it in quotes: '%s'", cut(n.Value, maxQuoted))
	}
	d.fault(f, describe(n), want, do)
	return "", false
}

// A mismatch says what a text should have been.
type mismatch struct{ want, do string }

// parsed reads text that parse understands.
func parsed[T any](into *T, want string, parse func(string) (T, *mismatch)) reader {
	return func(d *decoder, f field) {
		s, ok := d.text(f, want)
		if !ok {
			return
		}
		v, wrong := parse(s)
		if wrong != nil {
			d.fault(f, quote(s), wrong.want, wrong.do)
			return
		}
		*into = v
	}
}

// truths are other ways to say true and false.
var truths = map[string]string{
	"yes": "write true", "on": "write true", "true": "write it without quotes",
	"no": "write false", "off": "write false", "false": "write it without quotes",
}

// flag reads true or false.
func flag(into *bool) reader {
	return func(d *decoder, f field) {
		n := f.node
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			d.fault(f, describe(n), "true or false", truths[strings.ToLower(n.Value)])
			return
		}
		*into = strings.EqualFold(n.Value, "true")
	}
}

// wholeNumber is a number of at least 1 as everybody reads it: no sign, no
// point, no underscore, no leading zero.
var wholeNumber = regexp.MustCompile(`^[1-9][0-9]*$`)

// count reads a whole number of at least 1.
func count[T int | int64](into *T) reader {
	return func(d *decoder, f field) {
		n := f.node
		v, err := strconv.ParseInt(n.Value, 10, strconv.IntSize)
		switch {
		case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && wholeNumber.MatchString(n.Value) && err == nil:
			*into = T(v)
		case errors.Is(err, strconv.ErrRange):
			d.fault(f, describe(n), "a smaller number", "")
		default:
			d.fault(f, describe(n), "a whole number of at least 1, in digits", "")
		}
	}
}

// An option is one word of a choice, and what it stands for.
type option[T any] struct {
	word  string
	value T
}

// choice reads one of a few words.
func choice[T any](into *T, options ...option[T]) reader {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = o.word
	}
	return parsed(into, either(words), func(s string) (v T, wrong *mismatch) {
		for _, o := range options {
			if o.word == s {
				return o.value, nil
			}
		}
		wrong = &mismatch{want: either(words)}
		if meant := spelling.Nearest(s, words); meant != "" {
			wrong.do = fmt.Sprintf("did you mean %q?", meant)
		}
		return v, wrong
	})
}

// either joins words as one says them: a, b or c.
func either(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// list reads a list. Each item gets its place in into, faulty or not, so that
// places in the file and in the list agree.
func list[T any](into *[]T, item func(*T) reader) reader {
	return func(d *decoder, f field) {
		items := d.items(f)
		*into = make([]T, 0, len(items)) // not nil: it is there
		for _, c := range items {
			if d.full() {
				return
			}
			var v T
			item(&v)(d, c)
			*into = append(*into, v)
		}
	}
}

// named reads a mapping whose keys are names that the file chose, in its order.
func named[T any](into *[]T, item func(*T, string) reader) reader {
	return func(d *decoder, f field) {
		if !d.is(f, yaml.MappingNode) {
			return
		}
		for _, c := range d.entries(f) {
			if d.full() {
				return
			}
			var v T
			item(&v, c.name)(d, c)
			*into = append(*into, v)
		}
	}
}
