package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/wire"
)

func Example() {
	b := wire.AppendString(nil, 1, "edge")
	b, at := wire.Begin(b, 2)
	b = wire.AppendUint(b, 1, 300)
	b = wire.End(b, at)
	whole := wire.Each(string(b), func(f wire.Field) bool {
		fmt.Printf("%d: %q\n", f.Number, f.Text)
		return true
	})
	fmt.Println(whole)
	// Output:
	// 1: "edge"
	// 2: "\b\xac\x02"
	// true
}

// Cut reads what protowire reads, but for groups and numbers that no field has.
func FuzzCut(f *testing.F) {
	for _, s := range []string{
		"", "\x0a\x03abc", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\x08\x80\x00", "\x00", "\x0b\x0c", "\x0d1234", "\x0912345678",
		"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xfa\xff\xff\xff\x0f\x00", "\xfa\xff\xff\xff\x1f\x00", "\x0f",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got, rest, ok := wire.Cut(message)
		number, kind, n := protowire.ConsumeField([]byte(message))
		if kind == protowire.StartGroupType || number > protowire.MaxValidNumber {
			n = -1
		}
		if ok != (n >= 0) {
			t.Fatalf("Cut(%q) = %v, want %v", message, ok, n >= 0)
		}
		if !ok {
			return
		}
		if got.Number != int(number) || int(got.Kind) != int(kind) || rest != message[n:] {
			t.Fatalf("Cut(%q) = %+v and %q, want %d, %d and %q", message, got, rest, number, kind, message[n:])
		}
		_, _, tag := protowire.ConsumeTag([]byte(message))
		value := []byte(message)[tag:n]
		switch kind {
		case protowire.BytesType:
			if text, _ := protowire.ConsumeBytes(value); string(text) != got.Text {
				t.Fatalf("Cut(%q) has %q, want %q", message, got.Text, text)
			}
		case protowire.VarintType:
			if v, _ := protowire.ConsumeVarint(value); v != got.Value {
				t.Fatalf("Cut(%q) has %d, want %d", message, got.Value, v)
			}
		}
	})
}

// Pair reads a map's entry as it is read field by field: the last of each holds.
func FuzzPair(f *testing.F) {
	for _, s := range []string{
		"", "\x0a\x01a\x12\x01b", "\x12\x01b\x0a\x01a", "\x0a\x00\x12\x00", "\x0a\x01a", "\x12\x01b", "\x0a\x01a\x12\x01b\x12\x01c", "\x0a\x01a\x12\x02b", "\x0a\x02a\x12",
		"\x0a\x01\xff\x12\x01b", "\x0a\x01a\x12\x01\xff", "\x0a\x01a\x10\x01", "\x0a\x81\x00a\x12\x01b", "\x0a\x01a\x12\x81\x00b", "\x0a\x01a\x1a\x01b", "\x0a\x7f", "\x0a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		key, value, ok := wire.Field{Kind: wire.Bytes, Text: entry}.Pair()
		want := map[int]string{}
		whole := wire.Each(entry, func(f wire.Field) bool {
			if f.Number <= 2 {
				want[f.Number] = f.Text
			}
			return f.Number > 2 || f.Kind == wire.Bytes && utf8.ValidString(f.Text)
		})
		if ok != whole || ok && (key != want[1] || value != want[2]) {
			t.Fatalf("Pair(%q) = %q, %q, %v, want %q, %q, %v", entry, key, value, ok, want[1], want[2], whole)
		}
		if _, _, ok := (wire.Field{Kind: wire.Fixed32, Text: entry}).Pair(); ok {
			t.Fatalf("Pair(%q) of another kind is one, want none", entry)
		}
	})
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 1 << 21} {
		text := strings.Repeat("x", n)
		b, outer := wire.Begin([]byte("before"), 7)
		b, inner := wire.Begin(b, 1<<20)
		b = wire.AppendString(b, 3, text)
		b = wire.AppendUint(b, 4, uint64(n))
		b = wire.End(b, inner)
		b = wire.End(b, outer)

		var want []byte
		if n > 0 {
			want = protowire.AppendString(protowire.AppendTag(want, 3, protowire.BytesType), text)
			want = protowire.AppendVarint(protowire.AppendTag(want, 4, protowire.VarintType), uint64(n))
		}
		want = protowire.AppendBytes(protowire.AppendTag(nil, 1<<20, protowire.BytesType), want)
		want = protowire.AppendBytes(protowire.AppendTag([]byte("before"), 7, protowire.BytesType), want)
		if string(b) != string(want) {
			t.Errorf("a message of %d bytes in another is written %.40q, want %.40q", n, b, want)
		}
	}
}

func TestAppendFact(t *testing.T) {
	t.Parallel()
	b := wire.AppendFact(wire.AppendFact(nil, "a", "b"), "", strings.Repeat("x", 300))
	var got structpb.Struct
	if err := proto.Unmarshal(wire.AppendFact(b, "c", ""), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": "b", "": strings.Repeat("x", 300), "c": ""}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Errorf("three facts are read as (-want +got):\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		field wire.Field
		ok    bool
	}{
		{wire.Field{Kind: wire.Bytes, Text: "ä"}, true},
		{wire.Field{Kind: wire.Bytes, Text: "\xff"}, false},
		{wire.Field{Kind: wire.Varint}, false},
	} {
		text := "before"
		if ok := tt.field.Set(&text); ok != tt.ok || text != tt.field.Text {
			t.Errorf("%+v.Set() = %v and sets %q, want %v", tt.field, ok, text, tt.ok)
		}
	}
}

func TestEach(t *testing.T) {
	t.Parallel()
	inner := wire.AppendString(wire.AppendString(nil, 1, "a"), 2, "b")
	b, at := wire.Begin(nil, 3)
	message := string(wire.End(append(b, inner...), at))
	var read []string
	all := func(f wire.Field) bool {
		read = append(read, f.Text)
		return f.Text != "b"
	}
	if wire.Each(message, func(f wire.Field) bool { return f.Message(all) }) || len(read) != 2 {
		t.Errorf("Each() has read %q and goes on, want a, and an end at b", read)
	}
	if wire.Each(message[:len(message)-1], func(wire.Field) bool { return true }) {
		t.Errorf("Each() of a message that is cut short is true, want false")
	}
	if (wire.Field{Kind: wire.Varint}).Message(all) {
		t.Errorf("Message() of a number is true, want false")
	}
}
