package identity_test

import (
	"net/netip"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func TestNetworks(t *testing.T) {
	t.Parallel()
	n, err := identity.NewNetworks(prefixes("10.1.2.3/8", "10.0.0.0/16", "192.0.2.1/32", "::ffff:198.51.100.0/120", "2001:db8::/32"))
	if err != nil || n.Len() != 4 {
		t.Fatalf("NewNetworks() = %d networks, %v, want 4", n.Len(), err)
	}
	for in, want := range map[string]bool{
		"10.0.0.0": true, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false,
		"192.0.2.0": false, "192.0.2.1": true, "192.0.2.2": false,
		"198.51.100.9": true, "::ffff:198.51.100.9": true, "::ffff:10.0.0.1": true,
		"2001:db8::1": true, "2001:db8::1%eth0": true, "2001:db9::": false, "::": false,
	} {
		if got := n.Contains(netip.MustParseAddr(in)); got != want {
			t.Errorf("Contains(%s) = %v, want %v", in, got, want)
		}
	}
	if n.Contains(netip.Addr{}) || (identity.Networks{}).Contains(netip.MustParseAddr("10.0.0.1")) {
		t.Error("Contains(no address) or no networks' Contains is true, want false")
	}
}
