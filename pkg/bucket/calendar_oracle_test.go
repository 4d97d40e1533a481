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

var almanacs sync.Map // by zone, of func() []date

// A date is yyyymmdd, and when clocks showed it first.
type date struct {
	day   int
	shown int64 // µs
}

// almanac is the dates of a zone, found by looking at its clocks every five
// minutes.
func almanac(zone *time.Location) []date {
	read, _ := almanacs.LoadOrStore(zone.String(), sync.OnceValue(func() []date {
		var dates []date
		last := 0
		for at := almanacFrom; at.Before(almanacTo); at = at.Add(5 * time.Minute) {
			year, month, day := at.In(zone).Date()
			if today := (year*100+int(month))*100 + day; today > last {
				dates = append(dates, date{today, at.UnixMicro()})
				last = today
			}
		}
		return dates
	}))
	return read.(func() []date)()
}

// beginnings is when the periods of a calendar began, but for the first.
func beginnings(zone *time.Location, c bucket.Calendar) []int64 {
	key := fmt.Sprint(zone, c)
	read, _ := begins.LoadOrStore(key, sync.OnceValue(func() []int64 {
		var list []int64
		dates := almanac(zone)
		for i := range dates[1:] {
			if first(c, dates[i].day, dates[i+1].day) {
				list = append(list, dates[i+1].shown)
			}
		}
		return list
	}))
	return read.(func() []int64)()
}

var begins sync.Map // by zone and calendar, of func() []int64

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
	list := beginnings(zone, c)
	return list[sort.Search(len(list), func(i int) bool { return list[i] > at })]
}
