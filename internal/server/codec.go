package server

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A codec is gRPC's own for protocol buffers, except that it reads texts that
// are not UTF-8. Envoy's rate limit filter copies headers into its descriptors
// byte for byte. Were that an error, an Envoy that fails open would let every
// request pass whose client sends such a byte.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal writes v, unless it is written already.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if answer, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(answer)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal reads data into v. Each byte of a text that is not UTF-8 is read as
// "!", which is what Envoy's ext_authz filter makes of it.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if t, ok := v.(*text); ok {
		*t = textOf(data)
		return nil
	}
	err := c.CodecV2.Unmarshal(data, v)
	m, ok := v.(proto.Message)
	if err == nil || !ok {
		return err
	}
	bytes := data.Materialize()
	if !mend(bytes, m.ProtoReflect().Descriptor(), protowire.DefaultRecursionLimit) {
		return err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(bytes)}, v)
}

func textOf(data mem.BufferSlice) text {
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		b.Write(part.ReadOnlyData())
	}
	return text(b.String())
}

// mend makes the texts in b, a message of the kind that md describes, UTF-8 as
// deep as depth messages in one another, and says whether there was one to
// mend. What is no message stays as it is from there on.
func mend(b []byte, md protoreflect.MessageDescriptor, depth int) (mended bool) {
	for len(b) > 0 && depth > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return mended
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return mended
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			mended = mendField(value, md.Fields().ByNumber(number), depth) || mended
		}
		b = b[n:]
	}
	return mended
}

// mendField mends the value of a field. Fields that are not known are nil.
func mendField(b []byte, field protoreflect.FieldDescriptor, depth int) bool {
	switch {
	case field == nil:
		return false
	case field.Kind() == protoreflect.StringKind:
		return mendText(b)
	case field.Kind() == protoreflect.MessageKind:
		return mend(b, field.Message(), depth-1)
	default:
		return false
	}
}

func mendText(b []byte) (mended bool) {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			b[i], mended = '!', true
		}
		i += n
	}
	return mended
}
