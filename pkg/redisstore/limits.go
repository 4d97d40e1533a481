package redisstore

import (
	"encoding/binary"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// The modes of a limit in the script and in its values, and what may be added
// for the script.
const (
	greedy = iota
	interval
	greedyMS // in ticks of a millisecond
	aligned
	sliding

	withDebt     = 16
	withCalendar = 32
)

// limitSets are the sets of limits that a script is told of, each once.
type limitSets struct {
	list      []*bucket.Limits
	places    map[*bucket.Limits]uint32
	packed    []byte
	now       time.Time // about when the script runs
	calendars bool      // and it must be told when periods begin
}

// place returns the place of ls among the sets, from 1.
func (s *limitSets) place(ls *bucket.Limits) uint32 {
	if n := len(s.list); n > 0 && s.list[n-1] == ls {
		return uint32(n)
	}
	if place, known := s.places[ls]; known {
		return place
	}
	if s.places == nil {
		s.places = map[*bucket.Limits]uint32{}
	}
	s.list = append(s.list, ls)
	s.places[ls] = uint32(len(s.list))
	s.pack(ls)
	return uint32(len(s.list))
}

// reset forgets the sets, and keeps the room for others.
func (s *limitSets) reset() {
	clear(s.list)
	clear(s.places)
	*s = limitSets{list: s.list[:0], places: s.places, packed: s.packed[:0]}
}

// at packs the sets again, for a script that runs at about now.
func (s *limitSets) at(now time.Time) {
	s.now, s.packed = now, nil
	for _, ls := range s.list {
		s.pack(ls)
	}
}

// pack appends ls as lua/refill.lua says.
func (s *limitSets) pack(ls *bucket.Limits) {
	s.packed = append(s.packed, byte(ls.Len()))
	for i := range ls.Len() {
		t := ls.Terms(i)
		mode := modeOf(t)
		if ls.Debt() {
			mode |= withDebt
		}
		if t.Calendar != 0 {
			mode |= withCalendar
		}
		s.packed = append(s.packed, mode)
		s.packed = binary.BigEndian.AppendUint32(s.packed, t.Name)
		for _, n := range []int64{t.PerMS, t.Tokens, t.Burst, t.Unit, t.Step} {
			s.packed = append7(s.packed, n)
		}
		if ls.Debt() {
			s.packed = append7(s.packed, t.Most)
		}
		if t.Calendar != 0 {
			s.packStarts(ls.Starts(i, s.now))
		}
	}
}

func (s *limitSets) packStarts(starts []int64) {
	s.calendars = true
	s.packed = append(s.packed, byte(len(starts)/2))
	for _, at := range starts {
		s.packed = append7(s.packed, at)
	}
}

func modeOf(t bucket.Terms) byte {
	switch {
	case t.Refill == bucket.Interval:
		return interval
	case t.Refill == bucket.Aligned:
		return aligned
	case t.Refill == bucket.Sliding:
		return sliding
	case t.Tick == 1000:
		return greedyMS
	default:
		return greedy
	}
}

// append7 appends n in 7 bytes, which hold ±2^55.
func append7(b []byte, n int64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], uint64(n))
	return append(b, eight[1:]...)
}
