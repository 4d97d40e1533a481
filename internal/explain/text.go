package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// maxShown is the most bytes of a client's text that are repeated.
const maxShown = 200

// cut shortens s to what is repeated of it.
func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// shown returns s if it is harmless on a terminal and not empty, else quoted.
func shown(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// JSON writes r as one JSON object. Whatever is not printable is escaped, so
// that it may go to a terminal too.
func (r Report) JSON(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", escaped(text))
	return err
}

// escaped returns JSON with escapes for what is not printable, which can only
// stand within its strings.
func escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, c := range string(text) {
		switch {
		case c == '\n' || unicode.IsPrint(c):
			out = utf8.AppendRune(out, c)
		case c > 0xffff:
			c -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, c)
		}
	}
	return out
}

// Text writes r for people.
func (r Report) Text(w io.Writer) error {
	p := &printer{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	p.head(&r)
	if r.Identity != nil {
		p.identity(r.Identity)
	}
	p.rules(&r)
	p.decision(&r)
	p.answer(&r.Answer)
	for _, advice := range r.Advice {
		p.line("\nadvice\n  %s", shown(advice))
	}
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// A printer writes lines whose cells are apart by tabs, until one fails.
type printer struct {
	w   *tabwriter.Writer
	err error
}

// line writes a line. What could be harmful and was shown by nobody is dropped.
func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	text := strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, fmt.Sprintf(format, args...))
	_, p.err = io.WriteString(p.w, text+"\n")
}

func (p *printer) head(r *Report) {
	where := "no policy has this domain"
	if r.File != "" {
		where = shown(r.File)
	}
	p.line("%s", shown(r.Request))
	p.line("domain %s (%s)", shown(r.Domain), where)
}

func (p *printer) identity(id *Identity) {
	p.line("\nidentity")
	client := "missing"
	if id.Client != "" {
		client = id.Client + ", " + id.evidence()
	}
	p.line("  client\t%s", client)
	if id.Caller != "" && id.Caller != id.Client {
		p.line("  caller\t%s, all of which is one", id.Caller)
	}
	p.line("  headers\t%s", map[bool]string{true: "believed", false: "not believed, unless believe: always"}[id.Believed])
	p.line("\nhops\ttrust: %s", id.Trust)
	for _, h := range id.Hops {
		p.line("  %s\t%s\t%s", h.From, shown(h.place()), h.Why)
	}
	if id.More > 0 {
		p.line("  and %d more", id.More)
	}
	if len(id.Named) == 0 {
		return
	}
	p.line("\nidentities")
	for _, v := range id.Named {
		p.line("  %s\t%s", shown(v.Name), v.text())
	}
}

func (id *Identity) evidence() string {
	switch id.Evidence {
	case identity.FromChain.String():
		return "found in " + shown(id.Header)
	case identity.FromStamp.String():
		return "said by Envoy's " + shown(id.Header)
	default:
		return "the direct peer"
	}
}

// place is the hop's entry as it came, else its address.
func (h Hop) place() string {
	if h.Text != "" {
		return strings.Trim(h.Text, " ")
	}
	return h.Address
}

func (v Value) text() string {
	switch {
	case v.Missing != "":
		return "missing, " + v.Why
	case v.Hidden:
		return "(hidden)"
	default:
		return shown(v.Value)
	}
}

func (p *printer) rules(r *Report) {
	if r.Exempt != "" {
		p.line("\nrules\n  exempt by %s: none is looked at", r.Exempt)
		return
	}
	last := -1
	if len(r.Rules) > 0 && r.Rules[0].Descriptor == nil {
		p.line("\nrules")
	}
	others := 0
	for i := range r.Rules {
		rule := &r.Rules[i]
		if rule.Verdict == policy.OtherDoor.String() {
			others++
			continue
		}
		if d := rule.Descriptor; d != nil && d.Index != last {
			last = d.Index
			p.line("\nrules for the descriptor %s", shown(cut(d.Text)))
		}
		p.line("  %s\t%s\t%s", shown(rule.Name), strings.ReplaceAll(rule.Verdict, "_", " "), rule.Why)
		if rule.Verdict != policy.Mismatch.String() {
			p.more(rule)
		}
	}
	if others > 0 {
		p.line("  (%d not looked at: for the other kind of request)", others)
	}
}

// more says what there is to say of a rule that matches.
func (p *printer) more(r *Rule) {
	for _, c := range r.Conditions {
		switch {
		case c.Error != "":
			p.line("  \t\t%s has no value, which counts as true: %s", c.Field, shown(c.Error))
		case c.Holds:
			p.line("  \t\t%s %s", c.Field, shown(c.Want))
		}
	}
	for _, v := range r.Per {
		p.line("  \t\tper %s: %s", shown(v.Name), v.text())
	}
	if r.Override != "" {
		p.line("  \t\t%s holds", r.Override)
	}
	if r.Shadow {
		p.line("  \t\tin shadow: counted, never denied")
	}
	if r.Bucket != nil {
		p.bucket(r.Bucket)
	}
}

func (p *printer) bucket(b *Bucket) {
	p.line("  \t\tbucket %s", shown(b.Key))
	if b.Unlimited {
		p.line("  \t\tunlimited: nothing is charged")
		return
	}
	for _, l := range b.Limits {
		p.line("  \t\t%s: %s", l.text(), l.balance())
	}
	if b.Lease != nil {
		p.line("  \t\tleased: up to %d at a time, for %s", b.Lease.Tokens, timed(b.Lease.For))
	}
	if b.Local {
		p.line("  \t\tas this process alone has it")
	}
	p.line("  \t\tcost %d: %s", b.Cost, b.room())
}

func (l Limit) text() string {
	text := fmt.Sprintf("%s %s, burst %d", l.Rate, l.Refill, l.Burst)
	if l.Zone != "" {
		text += ", " + shown(l.Zone)
	}
	if l.Name != "" {
		text = shown(l.Name) + " " + text
	}
	return text
}

func (l Limit) balance() string {
	switch {
	case l.Left == nil:
		return "not known"
	case strings.HasPrefix(l.Rate, "0/"):
		return "denies always"
	case *l.Left == l.Burst:
		return "full"
	default:
		return fmt.Sprintf("%d left, full in %s", *l.Left, timed(*l.Full))
	}
}

func timed(seconds float64) string {
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

func (b *Bucket) room() string {
	switch {
	case b.Failed != "":
		return "the store failed: " + b.Failed
	case b.Room:
		return "there is room"
	case b.Wait == nil:
		return "no room, and no wait would help"
	default:
		return "no room for " + timed(*b.Wait)
	}
}

func (p *printer) decision(r *Report) {
	d := &r.Decision
	word := map[bool]string{true: "allowed", false: "denied"}[d.Allowed]
	p.line("\ndecision\n  %s\t%s%s", word, strings.ReplaceAll(d.Reason, "_", " "), d.detail())
	for _, name := range d.Shadow {
		p.line("  shadow\t%s would have denied it", shown(name))
	}
	if d.Store != "" {
		p.line("  store\tfailed: %s, so on_error decided", d.Store)
	}
}

func (d *Decision) detail() string {
	switch {
	case d.Missing != "":
		return fmt.Sprintf(": %s wants %s", shown(d.Rule), shown(d.Missing))
	case d.Rule != "":
		return ": by " + shown(d.Rule)
	default:
		return ""
	}
}

func (p *printer) answer(a *Answer) {
	p.line("\nanswer\n  %d", a.Status)
	for _, h := range a.Headers {
		p.line("  %s: %s", shown(h.Name), shown(h.Value))
	}
	if a.Body != "" {
		p.line("")
	}
	for line := range strings.Lines(a.Body) {
		p.line("  %s", shown(strings.TrimRight(line, "\n")))
	}
	if a.Note != "" {
		p.line("  (%s)", a.Note)
	}
}
