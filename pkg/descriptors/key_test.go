package descriptors_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// The hashes were made with another language's SHA-256 and base64.
func TestKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	pepper := descriptors.NewKeyer([]byte("pepper"))
	tests := []struct {
		name   string
		keyer  descriptors.Keyer
		rule   string
		values []descriptors.Value
		want   string
	}{
		{
			name: "address", rule: "api",
			values: []descriptors.Value{{Kind: "ip", Text: "203.0.113.7"}},
			want:   "{KuWOyFXH}4:edge3:api2:ip11:203.0.113.7",
		},
		{name: "one bucket for the rule", rule: "all", want: "{1hGZD46r}4:edge3:all"},
		{
			name: "hidden", rule: "api",
			values: []descriptors.Value{{Kind: "key", Text: "s3cr3t-token-XYZ", Form: descriptors.Hidden}},
			want:   "{5zD-h3FU}4:edge3:api3:key#1MsP9kUbHVKRyYmFeGBfp2",
		},
		{
			name: "hidden, own hash key", rule: "api", keyer: pepper,
			values: []descriptors.Value{{Kind: "key", Text: "s3cr3t-token-XYZ", Form: descriptors.Hidden}},
			want:   "{m0SGq7LD}4:edge3:api3:key#HBpqwuOctysE0zDLJ_R5UW",
		},
		{
			name: "long", rule: "api",
			values: []descriptors.Value{{Kind: "user", Text: long}},
			want:   "{Gbmea-Dl}4:edge3:api4:user#l_Kgs39_axnKHkdEmRvA-T",
		},
		{
			name: "longest that is written out", rule: "api",
			values: []descriptors.Value{{Kind: "ip", Text: "203.0.113.7"}, {Kind: "user", Text: long[1:]}},
			want:   "{KuWOyFXH}4:edge3:api2:ip11:203.0.113.74:user64:" + long[1:],
		},
		{
			name: "shared", rule: "api",
			values: []descriptors.Value{{Kind: "user", Text: "ignored", Form: descriptors.Shared}},
			want:   "{2K_UCz4z}4:edge3:api4:user-",
		},
		{
			name: "empty", rule: "api",
			values: []descriptors.Value{{Kind: "user"}},
			want:   "{PfY6qmZT}4:edge3:api4:user0:",
		},
		{
			name: "not printable", rule: "api",
			values: []descriptors.Value{{Kind: "user", Text: "a %{b}\n\xff"}},
			want:   "{c7UdA9ii}4:edge3:api4:user20:a%20%25%7Bb%7D%0A%FF",
		},
		{
			name: "cut", rule: "api",
			values: []descriptors.Value{fifty("a"), fifty("b"), fifty("c"), fifty("d")},
			want: "{zuFE5kuC}~4:edge3:api6:header50:" + fifty("a").Text + "6:header50:" + fifty("b").Text +
				"6:header50:cccH_-H2d0K70QYkJoSTKUQNe",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := test.keyer.Key("edge", test.rule, test.values...)
			if got != test.want {
				t.Errorf("Key(edge, %s, %v) = %s, want %s", test.rule, test.values, got, test.want)
			}
		})
	}
}

func fifty(letter string) descriptors.Value {
	return descriptors.Value{Kind: "header", Text: strings.Repeat(letter, 50)}
}

func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	header := func(name, text string) descriptors.Value {
		return descriptors.Value{Kind: "header." + name, Text: text}
	}
	huge := strings.Repeat("k", 4095)
	tests := []struct {
		name string
		a, b []descriptors.Value
	}{
		{
			name: "B010 bytes move from one value to the next",
			a:    []descriptors.Value{header("h1", "aa"), header("h2", "b")},
			b:    []descriptors.Value{header("h1", "a"), header("h2", "ab")},
		},
		{
			name: "B011 a user named like an address",
			a:    []descriptors.Value{header("x-user", "203.0.113.7")},
			b:    []descriptors.Value{{Kind: "ip", Text: "203.0.113.7"}},
		},
		{
			name: "B012 long values that differ in the last byte",
			a:    []descriptors.Value{header("x-api-key", huge+"1")},
			b:    []descriptors.Value{header("x-api-key", huge+"2")},
		},
		{
			name: "a value that imitates the next field",
			a:    []descriptors.Value{header("a", "x1:b1:y")},
			b:    []descriptors.Value{header("a", "x"), {Kind: "b", Text: "y"}},
		},
		{
			name: "a value that imitates a hash",
			a:    []descriptors.Value{{Kind: "key", Text: "s3cr3t-token-XYZ", Form: descriptors.Hidden}},
			b:    []descriptors.Value{{Kind: "key", Text: "#1MsP9kUbHVKRyYmFeGBfp2"}},
		},
		{
			name: "a value that imitates the shared one",
			a:    []descriptors.Value{{Kind: "user", Form: descriptors.Shared}},
			b:    []descriptors.Value{{Kind: "user", Text: "-"}},
		},
		{
			name: "an empty value and the shared one",
			a:    []descriptors.Value{{Kind: "user", Form: descriptors.Shared}},
			b:    []descriptors.Value{{Kind: "user"}},
		},
		{
			name: "a value that imitates an escape",
			a:    []descriptors.Value{{Kind: "user", Text: "%20"}},
			b:    []descriptors.Value{{Kind: "user", Text: " "}},
		},
		{
			name: "order",
			a:    []descriptors.Value{header("a", "x"), header("b", "x")},
			b:    []descriptors.Value{header("b", "x"), header("a", "x")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var k descriptors.Keyer
			a, b := k.Key("edge", "api", test.a...), k.Key("edge", "api", test.b...)
			if a == b {
				t.Errorf("Key(%v) = Key(%v) = %s, want two keys", test.a, test.b, a)
			}
		})
	}
}

// Buckets of one caller lie in one slot of a cluster, whatever their rules are.
func TestTagIsTheFirstValues(t *testing.T) {
	t.Parallel()
	k := descriptors.NewKeyer([]byte("pepper"))
	alice, bob := descriptors.Value{Kind: "user", Text: "alice"}, descriptors.Value{Kind: "user", Text: "bob"}
	one, other := tag(k.Key("edge", "api", alice)), tag(k.Key("edge", "login", alice, bob))
	if one != other {
		t.Errorf("tags of alice's buckets are %s and %s, want one", one, other)
	}
	if got := tag(k.Key("edge", "api", bob)); got == one {
		t.Errorf("tags of alice's and bob's buckets are both %s, want two", got)
	}
	if got := tag(descriptors.Keyer{}.Key("edge", "api", alice)); got == one {
		t.Errorf("tag of alice's bucket is %s with another hash key too, want it to change", got)
	}
}

// tag is the part of key that a Redis cluster hashes.
func tag(key string) string {
	_, after, _ := strings.Cut(key, "{")
	text, _, _ := strings.Cut(after, "}")
	return text
}

func TestNewKeyerWithoutSecret(t *testing.T) {
	t.Parallel()
	if got := descriptors.NewKeyer(nil); got != (descriptors.Keyer{}) {
		t.Errorf("NewKeyer(nil) = %v, want the zero Keyer", got)
	}
}

// Every field that is not hashed can be read back, so that no two lists of
// fields have one key.
func FuzzKeyReadsBack(f *testing.F) {
	f.Add("edge", "api", "ip", "203.0.113.7", "user", "")
	f.Add("", "", "", "", "", "")
	f.Add("4:edge", "~", "#", "}{%", "-", "\x00 \xff")
	f.Fuzz(func(t *testing.T, domain, rule, kind1, text1, kind2, text2 string) {
		key := descriptors.Keyer{}.Key(domain, rule,
			descriptors.Value{Kind: kind1, Text: text1}, descriptors.Value{Kind: kind2, Text: text2})
		checkShape(t, key)
		fields, ok := readBack(key)
		want := []string{domain, rule, kind1, text1, kind2, text2}
		if ok && !cmp.Equal(fields, want) {
			t.Errorf("Key(%q) = %s, which reads as %q", want, key, fields)
		}
		if !ok && len(strings.Join(want, "")) < 16 {
			t.Errorf("Key(%q) = %s, want short fields written out", want, key)
		}
	})
}

// Two lists of fields cut from one text at different places have two keys.
func FuzzKeysDiffer(f *testing.F) {
	f.Add("aab", byte(1), byte(2), false)
	f.Add(strings.Repeat("1:a", 100), byte(90), byte(93), true)
	f.Add("5:a2:ip#-~", byte(3), byte(4), true)
	f.Fuzz(func(t *testing.T, text string, cut1, cut2 byte, hide bool) {
		one, other := cutAt(text, int(cut1), hide), cutAt(text, int(cut2), hide)
		a, b := descriptors.Keyer{}.Key("d", "r", one...), descriptors.Keyer{}.Key("d", "r", other...)
		if (a == b) != slices.Equal(one, other) {
			t.Errorf("Key(%q) = %s, Key(%q) = %s, want two keys for two lists only", one, a, other, b)
		}
		if c := (descriptors.Keyer{}).Key("d", "r", append(one, one...)...); a == c {
			t.Errorf("Key(%q) = %s, want another key than for the list twice", one, a)
		}
		checkShape(t, a)
	})
}

func cutAt(text string, place int, hide bool) []descriptors.Value {
	place = min(place, len(text))
	form := descriptors.Plain
	if hide {
		form = descriptors.Hidden
	}
	return []descriptors.Value{{Kind: text[:place/2], Text: text[place/2 : place]}, {Kind: "k", Text: text[place:], Form: form}}
}

// A secret is in no key.
func FuzzKeyHides(f *testing.F) {
	f.Add("s3cr3t-token-XYZ", []byte("pepper"))
	f.Add("%%%%%%%%", []byte{})
	f.Fuzz(func(t *testing.T, secret string, hashKey []byte) {
		if len(secret) < 8 || strings.Contains("4:edge3:api3:key#", secret) {
			return
		}
		k := descriptors.NewKeyer(hashKey)
		key := k.Key("edge", "api", descriptors.Value{Kind: "key", Text: secret, Form: descriptors.Hidden})
		if strings.Contains(key, secret) {
			t.Errorf("Key(hidden %q) = %s, want it hidden", secret, key)
		}
		checkShape(t, key)
	})
}

// checkShape fails t if key is too long, not printable, or has braces other
// than its tag's.
func checkShape(t *testing.T, key string) {
	t.Helper()
	if len(key) > descriptors.MaxKey {
		t.Errorf("key %s has %d bytes, want at most %d", key, len(key), descriptors.MaxKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		t.Errorf("key %q has bytes that do not print", key)
	}
	if len(key) < 10 || key[0] != '{' || key[9] != '}' || strings.ContainsAny(key[1:9]+key[10:], "{}") {
		t.Errorf("key %s has braces other than its tag's eight letters'", key)
	}
}

// readBack reads a key's fields, as far as none is a hash.
func readBack(key string) (fields []string, ok bool) {
	for rest := key[10:]; rest != ""; {
		digits, after, found := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if !found || err != nil || n > len(after) {
			return nil, false
		}
		fields = append(fields, unescape(after[:n]))
		rest = after[n:]
	}
	return fields, true
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		c, _ := strconv.ParseUint(s[i+1:i+3], 16, 8)
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String()
}
