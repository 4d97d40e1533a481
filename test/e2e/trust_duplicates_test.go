package e2e_test

import (
	"slices"
	"testing"
)

// What tells callers apart and comes twice is missing, in both forms that
// Envoy sends headers in, and by both versions of HTTP: a duplicate makes no
// new caller.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	runSetups(t, duplicateSetups())
}

// duplicateSetups are all kinds of what a client writes, each in every form.
func duplicateSetups() []trustSetup {
	var setups []trustSetup
	for _, form := range []struct {
		name       string
		raw, http2 bool
	}{
		{"joined", false, false},
		{"raw", true, false},
		{"joined, HTTP-2", false, true},
		{"raw, HTTP-2", true, true},
	} {
		for _, s := range duplicates {
			s.raw, s.http2 = form.raw, form.http2
			s.hcm, s.rules = remote, "[{name: requests, per: [caller], missing: 418, limits: [{rate: 1/1d}]}]"
			if s.name == "a cookie" && !form.http2 {
				s.refused = append(slices.Clone(s.refused), ambiguous)
			}
			s.name += ", " + form.name
			if s.identities == "" {
				s.rules = "" // by address
			}
			s.facts = s.inForm()
			setups = append(setups, s)
		}
	}
	return setups
}

// inForm are the facts about one form: a check has its headers in one place.
func (s trustSetup) inForm() []fact {
	var facts []fact
	for _, f := range s.facts {
		if s.raw {
			f.headers = nil
		} else {
			f.lines = nil
		}
		facts = append(facts, f)
	}
	return facts
}

const (
	userID = "X-User-ID"
	bearer = "Authorization"
	cookie = "Cookie"
)

// ambiguous has its lines joined by a comma, which might be part of the value.
// HTTP/2 joins them as one line would have them.
var ambiguous = by(anna, cookie, "session=c", cookie, "x=1")

var duplicates = []trustSetup{
	{
		name: "a header", identities: "caller: {header: x-user-id, believe: always}",
		facts: []fact{{
			caller:  by(anna, userID, "a", "X-Other", "x", userID, "b"),
			rls:     v4(anna) + " a", // a descriptor has the first value alone
			headers: map[string]string{"x-user-id": "a,b"}, lines: []string{"x-user-id: a", "x-user-id: b"},
		}},
		callers: [][]caller{{by(anna, userID, "a"), by(ben, userID, "a")}, {by(anna, userID, "b")}},
		refused: []caller{
			by(anna, userID, "a", userID, "b"), by(anna, userID, "c", userID, "c"), by(anna, userID, "c,d"), by(anna, userID, "", userID, "c"),
			by(anna, userID, "c", userID, ""), by(anna, userID, ""), by(anna), by(anna, userID, " "), by(anna, "X_User_ID", "c"),
		},
	},
	{
		name: "a header of several values", identities: "caller: {header: x-user-id, believe: always, commas: true}",
		callers: [][]caller{
			{by(anna, userID, "a", userID, "b"), by(anna, userID, "a,b"), by(anna, userID, "a , b"), by(anna, userID, ",a,,b,"), by(anna, userID, "a", userID, "", userID, "b")},
			{by(anna, userID, "a")},
			{by(anna, userID, "b", userID, "a")},
		},
		refused: []caller{by(anna, userID, ","), by(anna, userID, "", userID, "")},
	},
	{
		name: "a token", identities: "caller: {bearer: true, believe: always}",
		facts: []fact{{
			caller:  by(anna, bearer, "Bearer a", bearer, "Bearer b"),
			headers: map[string]string{"authorization": "Bearer a,Bearer b"}, lines: []string{"authorization: Bearer a,Bearer b"}, // one line even so
		}},
		callers: [][]caller{{by(anna, bearer, "Bearer a"), by(ben, bearer, "bearer  a")}, {by(anna, bearer, "Bearer b")}},
		refused: []caller{
			by(anna, bearer, "Bearer a", bearer, "Bearer b"), by(anna, bearer, "Bearer c", bearer, "Bearer c"), by(anna, bearer, "Bearer c,Bearer d"),
			by(anna, bearer, "Bearer c", bearer, "Basic d"), by(anna, bearer, "Basic c", bearer, "Bearer d"), by(anna, bearer, "Bearer c d"), by(anna, bearer, "Bearer"),
		},
	},
	{
		name: "a cookie", identities: "caller: {cookie: session, believe: always}",
		callers: [][]caller{
			{
				by(anna, cookie, "session=a"), by(ben, cookie, "x=1; session=a; y=2"), by(anna, cookie, "x=1", cookie, "session=a"),
				by(anna, cookie, `session="a"`),
			},
			{by(anna, cookie, "session=b")},
		},
		refused: []caller{
			by(anna, cookie, "session=a; session=b"), by(anna, cookie, "session=c", cookie, "session=d"), by(anna, cookie, "session=c;session=c"),
			by(anna, cookie, "session=c; x=1", cookie, "y=1; session=d"), by(anna, cookie, "session="), by(anna, cookie, "Session=c"),
			by(anna, cookie, "session=; session=c"), by(anna), by(anna, cookie, "session=c,session=d"),
		},
	},
	{
		name: "a header whose rule has the last word", identities: "caller: {header: x-user-id, believe: always, missing: skip}",
		refused: []caller{by(anna, userID, "a", userID, "b"), by(anna)},
		callers: [][]caller{{by(anna, userID, "a")}},
	},
	{
		// X-Forwarded-For is one header, however many lines it has.
		name: "forwarded addresses", trust: behindOne,
		facts: []fact{{
			caller:  by(balancer, forwardedFor, "1.1.1.1", forwardedFor, "2.2.2.2"),
			headers: map[string]string{"x-forwarded-for": "1.1.1.1,2.2.2.2,127.0.0.5"}, lines: []string{"x-forwarded-for: 1.1.1.1,2.2.2.2,127.0.0.5"},
		}},
		callers: proxied,
	},
}
