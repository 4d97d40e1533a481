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

// nominal is the length of a period where one is needed that is always the
// same: 30 days a month, 365 a year.
func (c Calendar) nominal() time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{Day: day, Week: 7 * day, Month: 30 * day, Year: 365 * day}[c]
}

// calendar fills in what Per says of Calendar and the other way round.
func (l *Limit) calendar() *RangeError {
	const periods = "1d, 1w, 1mo or 1y with a zone"
	if l.Calendar == 0 && l.Zone == nil {
		return nil
	}
	if l.Calendar == 0 {
		switch l.Per {
		case Day.nominal():
			l.Calendar = Day
		case Week.nominal():
			l.Calendar = Week
		}
	}
	switch {
	case l.Zone == nil:
		return &RangeError{Field: "zone", Found: "none", Want: fmt.Sprintf("the time zone of a calendar's %v", l.Calendar)}
	case l.Refill != Aligned:
		return &RangeError{Field: "zone", Found: l.Zone.String(), Want: fmt.Sprintf("none with %v: only aligned periods have one", l.Refill)}
	case l.Calendar == 0:
		return &RangeError{Field: "per", Found: l.Per.String(), Want: periods}
	case l.Calendar > Year:
		return &RangeError{Field: "per", Found: l.Calendar.String(), Want: periods}
	case l.Per != 0 && l.Per != l.Calendar.nominal():
		return &RangeError{Field: "per", Found: l.Per.String(), Want: fmt.Sprintf("none, or the %v of %v", l.Calendar.nominal(), l.Calendar)}
	}
	l.Per = l.Calendar.nominal()
	return nil
}
