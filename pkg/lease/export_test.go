package lease

// Len is how many keys are watched.
func (k *Keeper) Len() (n int) {
	for i := range k.shards {
		k.shards[i].mu.Lock()
		n += len(k.shards[i].keys)
		k.shards[i].mu.Unlock()
	}
	return n
}
