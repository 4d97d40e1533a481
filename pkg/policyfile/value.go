package policyfile

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones, where the machine has none

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A rate is tokens per period.
type rate struct {
	tokens   int64
	per      time.Duration
	calendar bucket.Calendar // with per 0, for the periods that differ in length
}

const wantRate = "tokens and a period, such as 20/10s"

// parseRate reads 20/10s.
func parseRate(s string) (rate, *mismatch) {
	tokens, period, ok := strings.Cut(s, "/")
	if !ok {
		return rate{}, &mismatch{wantRate, ""}
	}
	n, wrong := parseTokens(tokens)
	if wrong != nil {
		return rate{}, wrong
	}
	if unit := bareUnits[strings.ToLower(period)]; unit != "" {
		return rate{}, &mismatch{wantRate, fmt.Sprintf("write %d/1%s", n, unit)}
	}
	if c := calendars[period]; c != 0 {
		return rate{tokens: n, calendar: c}, nil
	}
	per, wrong := parseDuration(period)
	switch {
	case wrong != nil:
		return rate{}, wrong
	case per <= 0:
		return rate{}, &mismatch{"a period longer than nothing", ""}
	}
	return rate{tokens: n, per: per}, nil
}

// calendars are the periods that only a calendar has.
var calendars = map[string]bucket.Calendar{"1mo": bucket.Month, "1y": bucket.Year}

func parseTokens(s string) (int64, *mismatch) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, &mismatch{wantRate, "tokens are digits alone"}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, &mismatch{"at most 9007199254740991 tokens", ""}
	}
	return n, nil
}

// bareUnits are the units that people write without a number.
var bareUnits = map[string]string{
	"ms": "ms", "s": "s", "sec": "s", "second": "s", "m": "m", "min": "m", "minute": "m",
	"h": "h", "hour": "h", "d": "d", "day": "d", "w": "w", "week": "w",
	"mo": "mo", "month": "mo", "y": "y", "year": "y",
}

// durationPart is one number of a duration, with what should be its unit.
var durationPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([^0-9.]*)`)

// parseDuration reads Go's durations, without a sign, plus d and w.
func parseDuration(s string) (time.Duration, *mismatch) {
	var sum time.Duration
	for rest := s; ; {
		part := durationPart.FindStringSubmatch(rest)
		if part == nil || !units[part[2]] {
			return 0, &mismatch{wantRate, durationHint(part)}
		}
		d, ok := durationOf(part[1], part[2])
		if !ok || d > math.MaxInt64-sum {
			return 0, &mismatch{"a period of at most 100 years", ""}
		}
		sum += d
		if rest = rest[len(part[0]):]; rest == "" {
			return sum, nil
		}
	}
}

const wantShare = "a share of the burst from 0.01% to 50%, such as 1%"

var share = regexp.MustCompile(`^([0-9]{1,2})(?:\.([0-9]{1,2}))?%$`)

// parseShare reads 1% or 0.25%, in ten-thousandths.
func parseShare(s string) (int64, *mismatch) {
	part := share.FindStringSubmatch(s)
	if part == nil {
		do := ""
		if strings.Trim(s, "0123456789.") == "" {
			do = "write its unit: " + s + "%"
		}
		return 0, &mismatch{wantShare, do}
	}
	n, err := strconv.ParseInt(part[1]+(part[2] + "00")[:2], 10, 64)
	if err != nil || n < 1 || n > policy.MostShare {
		return 0, &mismatch{wantShare, ""}
	}
	return n, nil
}

const wantLasts = "a time from 10ms to 10s in whole milliseconds, such as 100ms"

// parseLasts reads how long a lease lasts.
func parseLasts(s string) (time.Duration, *mismatch) {
	d, wrong := parseDuration(s)
	switch {
	case wrong != nil:
		return 0, &mismatch{wantLasts, wrong.do}
	case d < policy.ShortestLease || d > policy.LongestLease || d%time.Millisecond != 0:
		return 0, &mismatch{wantLasts, ""}
	}
	return d, nil
}

// units are the units of a period.
var units = map[string]bool{"ns": true, "us": true, "µs": true, "ms": true, "s": true, "m": true, "h": true, "d": true, "w": true}

// durationHint says what is wrong with a number and what should be its unit,
// or with no number at all.
func durationHint(part []string) string {
	switch {
	case part == nil:
	case part[2] == "":
		return "write its unit: ms, s, m, h, d or w"
	case part[2] == "mo", part[2] == "y":
		return "write 1mo or 1y, with a zone, or a number of days"
	}
	return "the units are ms, s, m, h, d and w"
}

// durationOf returns number units, if that fits.
func durationOf(number, unit string) (time.Duration, bool) {
	times := time.Duration(1)
	switch unit {
	case "d":
		unit, times = "h", 24
	case "w":
		unit, times = "h", 7*24
	}
	d, err := time.ParseDuration(number + unit)
	return d * times, err == nil && d <= math.MaxInt64/times
}

const wantZone = "a time zone such as Europe/Zurich or UTC"

// parseZone reads the name of a time zone. That of the machine is none, since
// replicas may run in several.
func parseZone(s string) (*time.Location, *mismatch) {
	zone, err := time.LoadLocation(s)
	if err != nil || zone == time.Local || s == "" {
		return nil, &mismatch{wantZone, ""}
	}
	return zone, nil
}

const wantNetwork = "an address or a network, such as 10.0.0.0/8"

// parseNetwork reads an address or a CIDR, unmapped.
func parseNetwork(s string) (netip.Prefix, *mismatch) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		switch {
		case err != nil:
			return netip.Prefix{}, &mismatch{wantNetwork, ""}
		case a.Zone() != "":
			return netip.Prefix{}, &mismatch{"an address without a zone", "write " + a.WithZone("").String()}
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, &mismatch{wantNetwork, ""}
	}
	if p != p.Masked() {
		return netip.Prefix{}, &mismatch{"a network without bits behind its length", fmt.Sprintf("write %s, or %s for the one address", unmapped(p.Masked()), p.Addr().Unmap())}
	}
	return unmapped(p), nil
}

// unmapped returns the IPv4 network that p is, if it was written as IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() || p.Bits() < 96 {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
}

// parseEntry reads an entry of a descriptor: key=value, or a key alone.
func parseEntry(s string) (policy.EntrySpec, *mismatch) {
	e, hasValue := descriptors.Split(s)
	if e.Key == "" {
		return policy.EntrySpec{}, &mismatch{"key=value, or a key alone for any value", ""}
	}
	return policy.EntrySpec{Key: e.Key, Value: e.Value, Any: !hasValue}, nil
}
