package identity_test

import (
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func TestGRPC(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]bool{
		"": false, "application/json": false, "application/grp": false, "text/plain; a=application/grpc": false,
		"application/grpc": true, "application/grpc+proto": true, "application/grpc-web-text": true, "Application/gRPC;x=y": true,
	} {
		a := identity.Attributes{Headers: map[string]string{"content-type": contentType}}
		if got := a.GRPC(); got != want {
			t.Errorf("Attributes with %q: GRPC() = %v, want %v", contentType, got, want)
		}
	}
}
