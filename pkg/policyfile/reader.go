package policyfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
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

// text returns the text at f. What is not text without quotes is a fault.
func (d *decoder) text(f field, want string) (string, bool) {
	n := f.node
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	do := ""
	switch {
	case n.Kind != yaml.ScalarNode:
	case n.ShortTag() == "!!int", n.ShortTag() == "!!float", n.ShortTag() == "!!bool", n.ShortTag() == "!!timestamp":
		if want == "text" {
			do = fmt.Sprintf("put it in quotes: '%s'", shorten(n.Value))
		}
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

// flag reads true or false.
func flag(into *bool) reader {
	return func(d *decoder, f field) {
		switch n := f.node; {
		case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool":
			*into = strings.EqualFold(n.Value, "true")
		default:
			d.fault(f, describe(n), "true or false", "")
		}
	}
}

// wholeNumber is a number without sign, point, underscore or leading zero.
var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`)

// count reads a whole number of at least 1.
func count[T int | int64](into *T) reader {
	return func(d *decoder, f field) {
		const want = "a whole number of at least 1"
		n := f.node
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || !wholeNumber.MatchString(n.Value) || n.Value == "0" {
			d.fault(f, describe(n), want, "")
			return
		}
		v, err := strconv.ParseInt(n.Value, 10, strconv.IntSize)
		if err != nil {
			d.fault(f, describe(n), want, "")
			return
		}
		*into = T(v)
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
		if word := nearest(s, words); word != "" {
			return v, &mismatch{either(words), fmt.Sprintf("did you mean %s?", word)}
		}
		return v, &mismatch{want: either(words)}
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
