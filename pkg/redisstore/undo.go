package redisstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// giveBackTime is the least time that a give-back has. It goes on when its
// caller has been answered.
const giveBackTime = time.Second

// conclude does what follows when it is known which splits passed, and sets
// their results.
func (s *Store) conclude(ctx context.Context, splits []*split) {
	var undo []*job
	var calls []*call
	for _, p := range splits {
		denied := p.denied()
		if denied {
			undo = append(undo, s.undoAll([]*split{p})...)
		}
		p.after = s.after(p, denied)
		calls = append(calls, p.after...)
	}
	done := s.follow(ctx, undo, calls)
	for _, p := range splits {
		p.collect(done)
	}
}

// denied says that something lacks room.
func (p *split) denied() bool {
	for _, c := range p.taking {
		if c.denied {
			return true
		}
	}
	return false
}

// after returns the calls of what has not decided.
func (s *Store) after(p *split, denied bool) []*call {
	if denied {
		return s.afterDenial(p)
	}
	return s.calls(p.group, 0, func(i int) bool { return !p.decides(i) })
}

// afterDenial returns the calls of what has not decided, that charge nothing
// but what owes, and of looks at what has been given back.
func (s *Store) afterDenial(p *split) []*call {
	look := make([]bool, len(p.charges))
	for i := range look {
		look[i] = !p.decides(i) && !p.owes(i)
	}
	for _, c := range p.taking {
		for j, i := range c.origin {
			look[i] = !c.denied && !c.groups[0].owes(j)
		}
	}
	looks := s.calls(p.group, failed, func(i int) bool { return look[i] })
	for _, c := range looks {
		c.behind = true
	}
	return append(looks, s.calls(p.group, failed, func(i int) bool { return !p.decides(i) && p.owes(i) })...)
}

// follow makes jobs and then calls, and says whether they were over before ctx
// was. With jobs, they go on without it.
func (s *Store) follow(ctx context.Context, jobs []*job, calls []*call) bool {
	if len(jobs) == 0 {
		_ = s.perform(ctx, calls) // each has its error
		return true
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(s.deadline, giveBackTime))
	done := make(chan struct{})
	if !s.nodes.begin(func() {
		defer cancel()
		defer close(done)
		_ = s.perform(own, calls, jobs...)
	}) {
		cancel()
		return false
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// collect sets the results. Where a look after a give-back failed, what was
// answered before it has to do: it is short of the tokens that came back.
func (p *split) collect(done bool) {
	for _, c := range p.taking {
		for j, i := range c.origin {
			p.results[i] = c.groups[0].results[j]
		}
	}
	for _, c := range p.after {
		err := context.DeadlineExceeded
		if done {
			err = c.err
		}
		for j, i := range c.origin {
			switch {
			case err == nil:
				p.results[i] = c.groups[0].results[j]
			case !p.decides(i):
				p.results[i] = bucket.Result{Err: failure("bucket", err)}
			}
		}
	}
}

// undoAll returns the jobs that give back what was charged for splits.
func (s *Store) undoAll(splits []*split) []*job {
	var jobs []*job
	for _, p := range splits {
		for _, c := range p.taking {
			if records := c.undo(); len(records) > 0 {
				jobs = append(jobs, &job{slot: c.slot, script: undoScript, args: s.args(nil, c, &records)})
			}
		}
	}
	return jobs
}

// undo packs what c has charged, for lua/undo.lua. Debt stays: it is charged
// whatever becomes of the group.
func (c *call) undo() []byte {
	if c.err != nil {
		return nil
	}
	var b []byte
	for i, a := range c.asks {
		charge := &c.groups[a.group].charges[a.charge]
		if !a.made || a.first != i || a.cost <= 0 || charge.Limits.Debt() {
			continue
		}
		key := c.keys.place(c.prefix, charge.Key)
		b = binary.BigEndian.AppendUint32(b, key)
		b = binary.BigEndian.AppendUint32(b, c.sets.place(charge.Limits))
		b = append7(append7(b, a.cost), c.now)
		for _, value := range c.stored[2*key-2 : 2*key] {
			b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
			b = append(b, value...)
		}
	}
	return b
}
