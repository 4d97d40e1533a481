package bench

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A template is a text in which {key} stands for the request's key and {n} for
// its number.
type template []part

type part struct {
	text string
	slot func(Draw) uint64 // nil: none, after text
}

var slots = map[string]func(Draw) uint64{
	"key": func(d Draw) uint64 { return d.Key },
	"n":   func(d Draw) uint64 { return d.Number },
}

func parseTemplate(s string) template {
	var t template
	text := ""
	for {
		before, after, found := strings.Cut(s, "{")
		text += before
		if !found {
			return append(t, part{text: text})
		}
		word, rest, closed := strings.Cut(after, "}")
		slot := slots[word]
		if slot == nil || !closed {
			text, s = text+"{", after
			continue
		}
		t, text, s = append(t, part{text, slot}), "", rest
	}
}

func (t template) fill(d Draw) string {
	if len(t) == 1 {
		return t[0].text
	}
	var space [64]byte
	b := space[:0]
	for _, p := range t {
		b = append(b, p.text...)
		if p.slot != nil {
			b = strconv.AppendUint(b, p.slot(d), 10)
		}
	}
	return string(b)
}

// A network gives each key an address of its own, as long as there are any.
type network struct {
	first netip.Addr
	bits  int // that differ
}

// parseNetwork reads an address, which is everybody's, or a network.
func parseNetwork(s string) (network, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return network{first: a}, nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return network{}, fmt.Errorf("found %q, want an address such as 203.0.113.7, or a network such as 10.0.0.0/8, of which each key gets an address", s)
	}
	return network{p.Masked().Addr(), p.Addr().BitLen() - p.Bits()}, nil
}

func (n network) addr(key uint64) netip.Addr {
	if n.bits == 0 {
		return n.first
	}
	if n.bits < 64 {
		key &= 1<<n.bits - 1
	}
	b := n.first.As16()
	low := b[8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)|key)
	a := netip.AddrFrom16(b)
	if n.first.Is4() {
		return a.Unmap()
	}
	return a
}
