package redisstore

import "github.com/sluice-mesh/sluice/pkg/bucket"

// A sighting is the buckets that one answer tells of.
type sighting struct {
	keys    []string
	buckets []bucket.Bucket
}

func (g *sighting) add(key string, b bucket.Bucket) {
	g.keys, g.buckets = append(g.keys, key), append(g.buckets, b)
}

func (g *sighting) reset() {
	clear(g.keys)
	clear(g.buckets)
	g.keys, g.buckets = g.keys[:0], g.buckets[:0]
}

// read sets the results of c, and tells of its buckets.
func (s *Store) read(c *call) error {
	if s.seen == nil {
		return c.read(c.job.reply, nil)
	}
	g := s.sightings.Get().(*sighting)
	err := c.read(c.job.reply, g.add)
	if err == nil {
		s.seen(g.keys, g.buckets)
	}
	g.reset()
	s.sightings.Put(g)
	return err
}
