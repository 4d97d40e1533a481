package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Trace is an Identity with the way to it: which hops were looked at, and
// what was made of each.
type Trace struct {
	Identity
	// Trust is what the edge goes by: proxies, hops, stamp, or none.
	Trust string
	// Header is the forwarded header that the edge would read, or with stamp
	// the name of the stamp.
	Header string
	// Hops are the peer and then the header's entries from the right, those
	// that were not read included; with stamp the stamp alone. Without a peer
	// there are none.
	Hops []Hop
	// More is how many entries are left out of Hops, which has at most 64.
	More int
	// Client is the place in Hops of the one that is the client, or -1.
	Client int
}

// A Hop is one place in the chain of those who passed a request on.
type Hop struct {
	// Text is the header's entry as it came. It is empty for the peer.
	Text string
	// Addr is the zero Addr where there is none.
	Addr    netip.Addr
	Verdict Verdict
}

// Verdict is what became of a hop.
type Verdict uint8

// The verdicts.
const (
	Unread    Verdict = iota // whoever wrote it is not believed
	Trusted                  // one of the trusted proxies: what it says is read on
	Untrusted                // none of them: it is the client
	Counted                  // one of the places that are counted
	Repeated                 // the peer again, which is not counted twice
	Garbage                  // no address, where the reading ends
	Stamped                  // Envoy's own word
)

var verdicts = [...]string{
	Unread: "unread", Trusted: "trusted", Untrusted: "untrusted", Counted: "counted",
	Repeated: "repeated", Garbage: "garbage", Stamped: "stamped",
}

// String returns the word for v in an explanation.
func (v Verdict) String() string {
	if int(v) >= len(verdicts) {
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
	return verdicts[v]
}

const maxHops = 64

// Trace finds the client as Identify does, and says how. Text in it may share
// memory with a.
func (e Edge) Trace(a *Attributes) Trace {
	t := Trace{Trust: e.trust(), Header: e.header, Client: -1}
	if e.stamp != "" {
		e.traceStamp(a, &t)
		return t
	}
	if t.Header == "" {
		t.Header = forwardedFor
	}
	if a.Pipe || a.peer().IsValid() {
		t.add(Hop{Addr: a.peer(), Verdict: e.peerVerdict(a.peer())})
	}
	t.Identity = e.identify(a, &t)
	t.Client = t.client()
	t.unread(e.chain(a), max(len(t.Hops)+t.More-1, 0))
	return t
}

// unread notes the entries of c beyond the first from the right that were read.
func (t *Trace) unread(c chain, read int) {
	for n := 0; ; n++ {
		entry, ok := c.last()
		if !ok {
			return
		}
		if n >= read {
			t.read(&c, entry, Unread)
		}
	}
}

func (e Edge) trust() string {
	switch {
	case e.stamp != "":
		return "stamp"
	case e.hops > 0:
		return "hops"
	case e.TrustsPeers():
		return "proxies"
	default:
		return "none"
	}
}

func (e Edge) traceStamp(a *Attributes, t *Trace) {
	t.Header = e.stamp
	t.Identity = e.identify(a, nil)
	text, ok := a.Stamps[e.stamp]
	if !ok {
		return
	}
	h := Hop{Text: text, Addr: t.Identity.Client, Verdict: Stamped}
	if h.Addr.IsValid() {
		t.Client = 0
	} else {
		h.Verdict = Garbage
	}
	t.add(h)
}

func (e Edge) peerVerdict(peer netip.Addr) Verdict {
	switch {
	case e.hops > 0:
		return Counted
	case e.proxies.Contains(peer):
		return Trusted
	default:
		return Untrusted
	}
}

// read notes an entry of c. A nil t notes nothing.
func (t *Trace) read(c *chain, entry string, v Verdict) {
	if t != nil {
		t.add(Hop{Text: entry, Addr: c.parse(entry), Verdict: v})
	}
}

func (t *Trace) add(h Hop) {
	if len(t.Hops) >= maxHops {
		t.More++
		return
	}
	t.Hops = append(t.Hops, h)
}

// client returns the place of the client among the hops that were read.
func (t *Trace) client() int {
	switch t.Evidence {
	case FromPeer:
		return 0
	case FromChain:
		for i := len(t.Hops) - 1; i > 0 && t.More == 0; i-- {
			if t.Hops[i].Verdict != Garbage {
				return i
			}
		}
	}
	return -1
}

// Unread returns what the forwarded header of a says of the peer's client, if
// it was passed over since the peer is none of those whose word is taken: its
// last entry as it came, or the one before where the last is the peer, whom
// Envoy adds itself. id is what Identify made of a. It is empty where there is
// none, or the header was read.
func (e Edge) Unread(a *Attributes, id Identity) string {
	if id.Trusted || id.Evidence != FromPeer || e.hops > 0 {
		return ""
	}
	c := e.chain(a)
	entry, ok := c.last()
	if ok && c.parse(entry) == id.Client {
		entry, _ = c.last()
	}
	return trim(entry)
}

// Absence says why an identity's value is missing.
type Absence uint8

// Why a value is missing. The zero value says that it is not.
const (
	Present    Absence = iota
	Absent             // it was not sent
	Empty              // it was sent without a value
	Twice              // it is there more than once, or has a comma
	Unbelieved         // it comes from a peer whose headers are not believed
	Unreadable         // it has not the form that it must have
)

var absences = [...]string{
	Present: "present", Absent: "absent", Empty: "empty", Twice: "twice", Unbelieved: "unbelieved", Unreadable: "unreadable",
}

// String returns the word for w in an explanation.
func (w Absence) String() string {
	if int(w) >= len(absences) {
		return fmt.Sprintf("absence(%d)", uint8(w))
	}
	return absences[w]
}

// Explain finds the value as Value does, and says why it is missing. With
// Unbelieved there is a value, which is not returned.
func (s Source) Explain(a *Attributes, id Identity) (value string, why Absence) {
	if value, ok := s.Value(a, id); ok {
		return value, Present
	}
	why = s.absence(a)
	if s.needsTrust && !id.Trusted && why != Absent {
		return "", Unbelieved
	}
	return "", why
}

// absence says why a value that is believed is missing.
func (s Source) absence(a *Attributes) Absence {
	switch s.kind {
	case header:
		return absentLine(a.Headers, s.name)
	case bearer:
		return s.absentToken(a.Headers)
	case cookie, query:
		return s.absentPair(a)
	case context:
		if _, ok := a.Context[s.name]; ok {
			return Empty
		}
	}
	return Absent
}

// absentLine says why a header has no single value.
func absentLine(headers map[string]string, name string) Absence {
	value, ok := headers[name]
	switch {
	case !ok:
		return Absent
	case trim(value) == "":
		return Empty
	default:
		return Twice
	}
}

// absentToken says why an Authorization header has no bearer's token.
func (s Source) absentToken(headers map[string]string) Absence {
	why := absentLine(headers, "authorization")
	if why == Twice && !strings.Contains(headers["authorization"], ",") {
		return Unreadable
	}
	return why
}

// absentPair says why a cookie or a parameter has no single value.
func (s Source) absentPair(a *Attributes) Absence {
	p, is := cookies(a.Headers["cookie"]), isCookie
	if s.kind == query {
		p, is = parameters(a.Path), isParameter
	}
	n := 0
	value, _ := p.only(func(text string) bool {
		if !is(text, s.name) {
			return false
		}
		n++
		return true
	})
	switch {
	case n == 0:
		return Absent
	case n > 1 || strings.Contains(value, ","):
		return Twice
	case unquote(trim(value)) == "":
		return Empty
	default:
		return Unreadable
	}
}
