package redisstore

// SlotOf is the slot of a key.
func SlotOf(key string) uint16 { return slotOf(key) }
