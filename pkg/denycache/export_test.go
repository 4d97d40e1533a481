package denycache

// Len is how many denials are kept, those that are over too.
func (c *Cache) Len() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += len(s.younger) + len(s.elder)
		s.mu.RUnlock()
	}
	return n
}
