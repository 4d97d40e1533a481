package bench

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // which the codec stands on
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// A verdict is the number in an answer that says what a server decided: the
// value of the field whose numbers path has, each within the message of the one
// before. 0 where it is absent.
//
// All else in an answer is skipped: to build a message of it takes a caller
// longer than it takes a proxy, on processors that the server may share.
type verdict struct {
	path  []protowire.Number
	value uint64
}

var errMalformed = errors.New("the answer is no message of protocol buffers")

// read sets the value by message, in which the last field of a number holds,
// as it does for one that is not a message.
func (v *verdict) read(message []byte, path []protowire.Number) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 || !number.IsValid() {
			return errMalformed
		}
		field := message[n:]
		length := protowire.ConsumeFieldValue(number, kind, field)
		if length < 0 {
			return errMalformed
		}
		message = field[length:]
		switch {
		case number != path[0]:
		case len(path) > 1 && kind == protowire.BytesType:
			inner, _ := protowire.ConsumeBytes(field)
			if err := v.read(inner, path[1:]); err != nil {
				return err
			}
		case len(path) == 1 && kind == protowire.VarintType:
			v.value, _ = protowire.ConsumeVarint(field)
		}
	}
	return nil
}

// A verdictCodec writes what it is given as grpc does, and reads verdicts.
type verdictCodec struct{ encoding.CodecV2 }

// readVerdict has an answer read into the verdict that a call is given.
var readVerdict = grpc.ForceCodecV2(verdictCodec{encoding.GetCodecV2("proto")})

// Unmarshal reads the verdict that v points to.
func (verdictCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer message.Free()
	found := v.(*verdict)
	return found.read(message.ReadOnlyData(), found.path)
}

// Name has the content type be as Envoy's, which does not name the encoding.
func (verdictCodec) Name() string { return "" }
