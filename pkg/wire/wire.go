// Package wire reads and writes messages of protocol buffers field by field,
// for the few that pass with every request: what the generated code makes of
// them costs more than the decision.
//
// It knows the format, and no message. Whoever reads with it must leave to the
// generated code what it does not expect.
package wire

import "unicode/utf8"

// A Kind is how a field is written.
type Kind uint8

// The kinds. Others there were once.
const (
	Varint  Kind = 0
	Fixed64 Kind = 1
	Bytes   Kind = 2 // texts and messages too
	Fixed32 Kind = 5
)

// A Field is one field of a message.
type Field struct {
	Number int
	Kind   Kind
	Text   string // of Bytes: a part of the message, not copied
	Value  uint64 // of a Varint
}

// Cut takes the first field off a message that is not empty. It is not ok where
// the message is malformed, and where it has a group, which nobody writes any
// more.
func Cut(message string) (f Field, rest string, ok bool) {
	tag, rest, ok := cutVarint(message)
	if !ok || tag>>3 == 0 || tag>>3 > maxNumber {
		return f, "", false
	}
	f.Number, f.Kind = int(tag>>3), Kind(tag&7)
	switch f.Kind {
	case Varint:
		f.Value, rest, ok = cutVarint(rest)
		return f, rest, ok
	case Fixed64:
		return f.skip(rest, 8)
	case Fixed32:
		return f.skip(rest, 4)
	case Bytes:
		n, rest, ok := cutVarint(rest)
		if !ok || n > uint64(len(rest)) {
			return f, "", false
		}
		f.Text = rest[:n]
		return f, rest[n:], true
	default:
		return f, "", false
	}
}

const maxNumber = 1<<29 - 1

// Each has read look at every field of a message, in order. It says that all
// were there, and that read said so of each of them.
func Each(message string, read func(Field) bool) bool {
	for message != "" {
		f, rest, ok := Cut(message)
		if !ok || !read(f) {
			return false
		}
		message = rest
	}
	return true
}

// Message is Each of the message that f is.
func (f Field) Message(read func(Field) bool) bool {
	return f.Kind == Bytes && Each(f.Text, read)
}

// Set sets text to the one that f is, and says that it is one.
func (f Field) Set(text *string) bool {
	*text = f.Text
	return f.Kind == Bytes && utf8.ValidString(f.Text)
}

// Pair is the entry of a map of texts that f is, where it is one.
func (f Field) Pair() (key, value string, ok bool) {
	if key, value, ok = usualPair(f.Text); ok && f.Kind == Bytes {
		return key, value, utf8.ValidString(key) && utf8.ValidString(value)
	}
	key, value = "", ""
	ok = f.Message(func(f Field) bool {
		switch f.Number {
		case 1:
			return f.Set(&key)
		case 2:
			return f.Set(&value)
		default:
			return true
		}
	})
	return key, value, ok
}

// usualPair cuts an entry as everybody writes it: a short key and its value.
func usualPair(entry string) (key, value string, ok bool) {
	const keyTag, valueTag = 1<<3 | byte(Bytes), 2<<3 | byte(Bytes)
	if len(entry) < 2 || entry[0] != keyTag || entry[1] >= 0x80 || len(entry)-3 < int(entry[1]) {
		return "", "", false
	}
	key, rest := entry[2:2+entry[1]], entry[2+entry[1]:]
	if rest[0] != valueTag {
		return "", "", false
	}
	n, value, ok := cutVarint(rest[1:])
	return key, value, ok && n == uint64(len(value))
}

func (f Field) skip(rest string, n int) (Field, string, bool) {
	if len(rest) < n {
		return f, "", false
	}
	return f, rest[n:], true
}

// cutVarint takes a varint of at most 64 bits off s.
func cutVarint(s string) (v uint64, rest string, ok bool) {
	if len(s) > 0 && s[0] < 0x80 {
		return uint64(s[0]), s[1:], true
	}
	for i := 0; i < len(s) && i < 10; i++ {
		v |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return v, s[i+1:], i < 9 || s[i] <= 1
		}
	}
	return 0, "", false
}

// AppendTag appends the tag of a field.
func AppendTag(b []byte, number int, k Kind) []byte {
	return AppendVarint(b, uint64(number)<<3|uint64(k))
}

// AppendVarint appends v by itself.
func AppendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendUint appends a field with the number v. One of 0 is not written, as
// in every message that says nothing else of it.
func AppendUint(b []byte, number int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return AppendVarint(AppendTag(b, number, Varint), v)
}

// AppendString appends a field with a text, which must be UTF-8. An empty one
// is not written.
func AppendString(b []byte, number int, text string) []byte {
	if text == "" {
		return b
	}
	b = AppendVarint(AppendTag(b, number, Bytes), uint64(len(text)))
	return append(b, text...)
}

// AppendFact appends a field of a google.protobuf.Struct whose value is a text.
func AppendFact(b []byte, name, value string) []byte {
	b, field := Begin(b, 1)
	b = AppendString(b, 1, name)
	b, text := Begin(b, 2)
	b = AppendVarint(AppendTag(b, 3, Bytes), uint64(len(value))) // also an empty one: it says which kind of value it is
	b = append(b, value...)
	return End(End(b, text), field)
}

// Begin appends the head of a field that is a message. What is appended then is
// the message's, up to End with the same at.
func Begin(b []byte, number int) (begun []byte, at int) {
	b = append(AppendTag(b, number, Bytes), 0)
	return b, len(b)
}

// End ends the message that begins at at.
func End(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	var space [10]byte
	length := AppendVarint(space[:0], uint64(n))
	more := len(length) - 1
	b = append(b, length[:more]...) // room, whatever is in it
	copy(b[at+more:], b[at:at+n])
	copy(b[at-1:], length)
	return b
}
