package bench

import "testing"

// What a template makes of a draw is seen from outside only through a server.
func TestTemplate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "x": "x", "{key}": "7", "a{key}b{n}c": "a7b3c", "{key}{key}": "77", "{": "{", "{x}{key}": "{x}7", "{{key}": "{7", "{key": "{key", `{"a":{n}}`: `{"a":3}`,
	} {
		if got := parseTemplate(text).fill(Draw{Number: 3, Key: 7}); got != want {
			t.Errorf("fill(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		key  uint64
		want string
	}{
		{"203.0.113.7", 9, "203.0.113.7"},
		{"203.0.113.7/32", 9, "203.0.113.7"},
		{"10.0.0.0/8", 0, "10.0.0.0"},
		{"10.0.0.0/8", 258, "10.0.1.2"},
		{"10.0.0.0/8", 1<<24 + 1, "10.0.0.1"},
		{"0.0.0.0/0", 1<<32 - 1, "255.255.255.255"},
		{"2001:db8::/64", 1<<32 + 5, "2001:db8::1:0:5"},
		{"2001:db8::/32", 1<<64 - 1, "2001:db8::ffff:ffff:ffff:ffff"},
	} {
		n, err := parseNetwork(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.addr(tt.key).String(); got != tt.want {
			t.Errorf("addr(%s, %d) = %s, want %s", tt.text, tt.key, got, tt.want)
		}
	}
	if _, err := parseNetwork("10.0.0"); err == nil {
		t.Errorf(`parseNetwork("10.0.0") = nil error, want one`)
	}
}
