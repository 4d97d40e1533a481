package bucket_test

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// The years in which an almanac knows what day it is.
var (
	almanacFrom = time.Date(2019, time.December, 1, 0, 0, 0, 0, time.UTC)
	almanacTo   = time.Date(2031, time.February, 1, 0, 0, 0, 0, time.UTC)
)

var almanacs sync.Map // by zone and calendar, of func() []int64

// almanac is the beginnings of a calendar's periods in a zone, found by looking
// at its clocks every five minutes: the first time that a date is shown.
func almanac(zone *time.Location, c bucket.Calendar) []int64 {
	read, _ := almanacs.LoadOrStore(fmt.Sprint(zone, c), sync.OnceValue(func() []int64 {
		var begins []int64
		shown := 0
		for at := almanacFrom; at.Before(almanacTo); at = at.Add(5 * time.Minute) {
			year, month, day := at.In(zone).Date()
			date := (year*100+int(month))*100 + day
			if date > shown && shown > 0 && first(c, shown, date) {
				begins = append(begins, at.UnixMicro())
			}
			shown = max(shown, date)
		}
		return begins
	}))
	return read.(func() []int64)()
}

// first says that another period has begun between two dates, each yyyymmdd.
func first(c bucket.Calendar, before, date int) bool {
	switch c {
	case bucket.Day:
		return true
	case bucket.Week:
		week := func(date int) int {
			year, week := time.Date(date/10000, time.Month(date/100%100), date%100, 12, 0, 0, 0, time.UTC).ISOWeek()
			return year*100 + week
		}
		return week(before) != week(date)
	case bucket.Month:
		return before/100 != date/100
	default:
		return before/10000 != date/10000
	}
}

// beginning is the first beginning after at.
func beginning(zone *time.Location, c bucket.Calendar, at int64) int64 {
	begins := almanac(zone, c)
	return begins[sort.Search(len(begins), func(i int) bool { return begins[i] > at })]
}
