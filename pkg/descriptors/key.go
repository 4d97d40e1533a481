package descriptors

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// MaxKey is the most bytes that a key has. It leaves room for a store's own
// prefix below 200.
const MaxKey = 180

// A Value is one part of what a bucket is for.
type Value struct {
	// Kind names what Text is: ip, user, header.x-id, or an entry's key.
	// Values of two kinds are never equal.
	Kind string
	Text string
	Form Form
}

// Form is how a value is written in a key.
type Form uint8

// The forms. The zero value is Plain.
const (
	// Plain writes the text, or its hash if it is long.
	Plain Form = iota
	// Hidden writes a keyed hash of the text.
	Hidden
	// Shared stands for all callers who lack the value; Text is ignored. No
	// text is equal to it, the empty one included.
	Shared
)

// A Keyer makes keys. The zero value works, with a hash key that everybody
// knows: who sees the store can then try out whether a guessed secret is in it.
// It never changes and is safe for concurrent use.
type Keyer struct {
	secret [sha256.Size]byte
}

// NewKeyer returns a Keyer with its own hash key, made from secret. Replicas
// need the same one. An empty secret gives the zero Keyer.
func NewKeyer(secret []byte) Keyer {
	if len(secret) == 0 {
		return Keyer{}
	}
	return Keyer{secret: sha256.Sum256(secret)}
}

// What a hash is of. Hashes of two uses are never equal.
const (
	ofTag   = 't'
	ofField = 'f'
	ofKey   = 'k'
)

const (
	maxField = 64 // escaped; a longer field is hashed
	tagLen   = 8
	hashLen  = 22 // 128 bits
)

// The marks in a key. A field of plain text begins with a digit.
const (
	hashMark  = '#' // a hash follows
	shareMark = '-' // a value that callers share
	longMark  = '~' // the key is cut, and ends in a hash of all of it
)

// Key returns the key of the bucket that the rule of a domain has for values:
// printable, at most MaxKey bytes, with one pair of braces at its start. Where
// the domain, the rule, a kind, a text or the number of values differs, the key
// differs, as surely as 128 bits of a hash do. Keys whose first values are equal
// have the same text in the braces, which nobody can choose without the hash
// key.
func (k Keyer) Key(domain, rule string, values ...Value) string {
	var space [512]byte
	b := append(space[:0], '{')
	b = k.appendTag(b, rule, values)
	b = append(b, '}')
	body := len(b)
	b = k.appendField(b, domain)
	b = k.appendField(b, rule)
	for _, v := range values {
		b = k.appendField(b, v.Kind)
		b = k.appendValue(b, v)
	}
	if len(b) > MaxKey {
		b = k.cut(b, body)
	}
	return string(b)
}

// appendTag appends a hash of the first value, or of the rule if there is none.
func (k Keyer) appendTag(b []byte, rule string, values []Value) []byte {
	if len(values) == 0 {
		return appendHash(b, k, ofTag, rule, tagLen)
	}
	var space [256]byte
	v := values[0]
	text := strconv.AppendInt(space[:0], int64(len(v.Kind)), 10)
	text = append(text, ':')
	text = append(text, v.Kind...)
	text = k.appendValue(text, v)
	return appendHash(b, k, ofTag, text, tagLen)
}

func (k Keyer) appendValue(b []byte, v Value) []byte {
	switch v.Form {
	case Shared:
		return append(b, shareMark)
	case Hidden:
		return appendHash(append(b, hashMark), k, ofField, v.Text, hashLen)
	default:
		return k.appendField(b, v.Text)
	}
}

// appendField appends s with its length, or a hash of it if it is long.
func (k Keyer) appendField(b []byte, s string) []byte {
	n := escapedLen(s)
	if n > maxField {
		return appendHash(append(b, hashMark), k, ofField, s, hashLen)
	}
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, ':')
	if n == len(s) {
		return append(b, s...)
	}
	return appendEscaped(b, s)
}

// cut makes a key of MaxKey bytes of b, which is longer.
func (k Keyer) cut(b []byte, body int) []byte {
	sum := hash(k, ofKey, b[body:])
	copy(b[body+1:], b[body:MaxKey-hashLen-1])
	b[body] = longMark
	return base64.RawURLEncoding.AppendEncode(b[:MaxKey-hashLen], sum[:])[:MaxKey]
}

// appendHash appends n letters of the keyed hash of text.
func appendHash[T string | []byte](b []byte, k Keyer, use byte, text T, n int) []byte {
	sum := hash(k, use, text)
	return base64.RawURLEncoding.AppendEncode(b, sum[:])[:len(b)+n]
}

// hash is the keyed hash of text. The key has a fixed length and one byte says
// what the hash is of, so that no two calls hash the same bytes.
func hash[T string | []byte](k Keyer, use byte, text T) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(k.secret[:])
	h.Write([]byte{use})
	var space [256]byte // text goes through here, since as a []byte it would be garbage
	for len(text) > 0 {
		n := copy(space[:], text)
		h.Write(space[:n])
		text = text[n:]
	}
	h.Sum(sum[:0])
	return sum
}

// escapedLen returns the length of s once escaped.
func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		if !isPlain(s[i]) {
			n += 2
		}
	}
	return n
}

func appendEscaped(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; isPlain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// isPlain reports whether c stands for itself in a key.
func isPlain(c byte) bool {
	return c > ' ' && c < 0x7f && c != '%' && c != '{' && c != '}'
}
