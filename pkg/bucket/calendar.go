package bucket

import (
	"fmt"
	"time"
)

// A Calendar is a period whose length the calendar of a time zone decides,
// daylight saving included.
type Calendar uint8

// The periods of a calendar. Each begins with the first instant of its first
// day there; a week begins on Monday.
const (
	Day Calendar = iota + 1
	Week
	Month
	Year
)

// String returns the period as a rate in a policy file has it.
func (c Calendar) String() string {
	switch c {
	case 0:
		return "none"
	case Day:
		return "1d"
	case Week:
		return "1w"
	case Month:
		return "1mo"
	case Year:
		return "1y"
	default:
		return fmt.Sprintf("calendar(%d)", uint8(c))
	}
}

// Nominal is the length of a period where one is needed that is always the
// same: 30 days a month, 365 a year. It is 0 for no period.
func (c Calendar) Nominal() time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{Day: day, Week: 7 * day, Month: 30 * day, Year: 365 * day}[c]
}

// calendar fills in what Per says of Calendar and the other way round.
func (l *Limit) calendar() *RangeError {
	const periods = "1d, 1w, 1mo or 1y with a zone"
	if l.Calendar == 0 && l.Zone == nil {
		return nil
	}
	named := l.Calendar != 0
	if !named {
		switch l.Per {
		case Day.Nominal():
			l.Calendar = Day
		case Week.Nominal():
			l.Calendar = Week
		}
	}
	switch {
	case named && l.Refill != Aligned:
		return &RangeError{Field: "refill", Found: l.Refill.String(), Want: fmt.Sprintf("aligned, and a zone, for a calendar's %v", l.Calendar)}
	case l.Zone == nil:
		return &RangeError{Field: "zone", Found: "none", Want: fmt.Sprintf("the time zone of a calendar's %v", l.Calendar)}
	case l.Refill != Aligned:
		return &RangeError{Field: "zone", Found: l.Zone.String(), Want: fmt.Sprintf("none with %v: only aligned periods have one", l.Refill)}
	case l.Calendar == 0:
		return &RangeError{Field: "per", Found: l.Per.String(), Want: periods}
	case l.Calendar > Year:
		return &RangeError{Field: "per", Found: l.Calendar.String(), Want: periods}
	case l.Per != 0 && l.Per != l.Calendar.Nominal():
		return &RangeError{Field: "per", Found: l.Per.String(), Want: fmt.Sprintf("none, or the %v of %v", l.Calendar.Nominal(), l.Calendar)}
	}
	l.Per = l.Calendar.Nominal()
	return nil
}

// next returns the moment after at when a period begins.
func (l *limit) next(at int64) int64 {
	for i := l.index(at) + 1; ; i++ {
		if begins := l.begins(i); begins > at {
			return begins
		}
	}
}

// last returns the moment, at or before at, when a period began last.
func (l *limit) last(at int64) int64 {
	begins := l.begins(l.index(at))
	for next := l.next(begins); next <= at; next = l.next(next) {
		begins = next
	}
	return begins
}

// index numbers the periods, by the date that a moment has in the zone. Where
// clocks are set back over midnight it may be one less than the last that has
// begun.
func (l *limit) index(at int64) int64 {
	const perDay = 24 * 60 * 60
	year, month, day := time.UnixMicro(at).In(l.Zone).Date()
	switch l.Calendar {
	case Year:
		return int64(year)
	case Month:
		return int64(year)*12 + int64(month-time.January)
	}
	days := quotient(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), perDay)
	if l.Calendar == Week {
		return quotient(days+3, 7) // the epoch was a Thursday
	}
	return days
}

// begins returns the first moment of period i: when clocks first show its
// midnight or, that being left out, anything later.
func (l *limit) begins(i int64) int64 {
	const day = 24 * 60 * 60
	var midnight int64 // as if the zone were UTC
	switch l.Calendar {
	case Year:
		midnight = time.Date(int(i), time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	case Month:
		midnight = time.Date(0, time.January+time.Month(i), 1, 0, 0, 0, 0, time.UTC).Unix()
	case Week:
		midnight = (i*7 - 3) * day
	default:
		midnight = i * day
	}
	return l.shows(midnight) * 1_000_000
}

// shows returns the first second when the zone's clocks show midnight or later.
func (l *limit) shows(midnight int64) int64 {
	const early = 26 * 60 * 60 // more than any zone is ahead
	from := midnight - early
	for {
		at := time.Unix(from, 0).In(l.Zone)
		_, ahead := at.Zone()
		_, end := at.ZoneBounds()
		at = time.Unix(max(from, midnight-int64(ahead)), 0)
		if end.IsZero() || at.Before(end) {
			return at.Unix()
		}
		from = end.Unix()
	}
}

// Starts returns when the periods around now begin under limit i, which must
// have a Calendar, in µs: of the one that now is in, as many before it as a
// drained bucket may have been through, and as many after it as it needs; in
// their order. The place of the running one is half the length, less one.
func (ls *Limits) Starts(i int, now time.Time) []int64 {
	l := &ls.list[i]
	n := int64(1)
	if l.Tokens > 0 {
		n = ceil(l.burst, l.Tokens)
	}
	starts := make([]int64, 2*n)
	starts[n-1] = l.last(now.UnixMicro())
	for j := n - 2; j >= 0; j-- {
		starts[j] = l.last(starts[j+1] - 1)
	}
	for j := n; j < 2*n; j++ {
		starts[j] = l.next(starts[j-1])
	}
	return starts
}
