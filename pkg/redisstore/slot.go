package redisstore

import "strings"

const slots = 16384

// slotOf returns the slot of a key in a cluster: a hash of what stands between
// its first brace and the next closing one or, with nothing there, of all.
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16 // CRC-16/XMODEM
	for i := range len(key) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^key[i]]
	}
	return crc % slots
}

var crcs = crcTable()

func crcTable() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			high := crc & 0x8000
			if crc <<= 1; high != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}

// A view is which server keeps which slot. It never changes.
type view struct {
	addrs []string
	nodes []*node  // under those addresses
	owner []uint16 // of each slot the place in addrs, from 1; 0 is nobody. nil: the first keeps all
}

// at returns the address of the server that keeps slot, "" for nobody.
func (v *view) at(slot uint16) string {
	if place := v.place(slot); place >= 0 {
		return v.addrs[place]
	}
	return ""
}

// node returns the server that keeps slot, nil for nobody.
func (v *view) node(slot uint16) *node {
	if place := v.place(slot); place >= 0 {
		return v.nodes[place]
	}
	return nil
}

// place returns the place in addrs of the server that keeps slot, or -1.
func (v *view) place(slot uint16) int {
	if v.owner == nil {
		return 0
	}
	return int(v.owner[slot]) - 1
}
