package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A job is one run of a script, which touches one slot.
type job struct {
	slot   uint16
	script *script
	args   []any // the first two are for the script's name
	texts  int   // how many texts stand at the end of the reply, after the numbers
	reply  reply // once err is nil
	err    error

	behind *job   // of the same slot, before this one, which charges nothing
	text   bool   // the server is to be told the script's text
	to     string // where a redirection sent it; "": to the owner of the slot
	asking bool   // the redirection holds for this once
	at     string // where it was sent last
	sends  int
	of     *job // where its caller finds the answer, who may have gone
}

// cmd is the command for the server.
func (j *job) cmd(ctx context.Context) redis.Cmder {
	j.args[0], j.args[1] = "EVALSHA", j.script.hash
	if j.text {
		j.args[0], j.args[1] = "EVAL", j.script.text
	}
	if j.texts > 0 {
		return redis.NewSliceCmd(ctx, j.args...)
	}
	return redis.NewIntSliceCmd(ctx, j.args...)
}

// read sets the reply or the error from cmd, which has been carried out.
func (j *job) read(cmd redis.Cmder) {
	j.reply, j.err = reply{}, cmd.Err()
	if j.err != nil {
		return
	}
	switch cmd := cmd.(type) {
	case *redis.IntSliceCmd:
		j.reply.numbers = cmd.Val()
	case *redis.SliceCmd:
		j.reply, j.err = readReply(cmd.Val(), j.texts)
	}
}

// A reply is what a script answers.
type reply struct {
	numbers []int64
	texts   []string
}

func readReply(list []any, texts int) (r reply, err error) {
	numbers := len(list) - texts
	if len(list) == 1 {
		numbers, texts = 1, 0 // nothing was done
	}
	if numbers < 0 {
		return r, errReply
	}
	r.numbers, r.texts = make([]int64, numbers), make([]string, texts)
	for i, item := range list {
		var ok bool
		if i < numbers {
			r.numbers[i], ok = item.(int64)
		} else {
			r.texts[i-numbers], ok = item.(string)
		}
		if !ok {
			return r, errReply
		}
	}
	return r, nil
}

// maxSends bounds how often one job is sent. A bucket that moves is found by
// two redirections; the rest is for pauses.
const maxSends = 8

// do runs jobs side by side. A job is sent again only after an answer, or a
// failed dial, that proves that it did not run, and only where that may help:
//
//   - at once, where the server does not know the script or names another;
//   - after a pause, where half of its keys have moved (TRYAGAIN);
//   - after another look, and only if that names another server, where this
//     one keeps no buckets any more, or none yet.
func (n *nodes) do(ctx context.Context, jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	v, err := n.current(ctx)
	if err != nil {
		for _, j := range jobs {
			j.err = err
		}
		return
	}
	n.send(ctx, v, jobs)
	n.retry(ctx, v, jobs)
}

// retry is the rest of do, for jobs that have been sent as v says.
func (n *nodes) retry(ctx context.Context, v *view, jobs []*job) {
	for pause := time.Millisecond; ; pause *= 2 {
		var wait bool
		if jobs, wait = n.again(ctx, v, jobs); len(jobs) == 0 {
			return
		}
		if wait && !sleep(ctx, pause) {
			return
		}
		newer, err := n.current(ctx)
		if err != nil {
			return
		}
		v = newer
		n.send(ctx, v, jobs)
	}
}

// sleep says whether ctx lasts longer than d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends each job to its server, and waits for all answers.
func (n *nodes) send(ctx context.Context, v *view, jobs []*job) {
	until, _ := ctx.Deadline()
	now := time.Now()
	byNode := map[*node]*entry{}
	for _, j := range jobs {
		at, err := n.target(v, j)
		if j.err = err; err != nil {
			continue
		}
		if byNode[at] == nil {
			byNode[at] = newEntry()
			byNode[at].until = until
		}
		byNode[at].include(j)
	}
	for at, e := range byNode {
		if _, err := at.queue.push(e, now); err != nil {
			e.settle()
			e.answer(err)
		}
	}
	for _, e := range byNode {
		if err := e.await(ctx, until.Sub(now)); err != nil {
			for _, j := range e.jobs {
				j.of.err = err
			}
		}
	}
}

// include adds a copy of j, since whoever waits for j may give up before it has
// been carried out.
func (e *entry) include(j *job) {
	sent := *j
	sent.args, sent.reply, sent.of = slices.Clone(j.args), reply{}, j
	e.jobs = append(e.jobs, &sent)
	e.must = e.must || j.script == undoScript
}

// target returns the server where j is to be sent, and counts that.
func (n *nodes) target(v *view, j *job) (*node, error) {
	j.sends++
	if j.at = j.to; j.at == "" {
		j.at = v.at(j.slot)
	}
	if j.at == "" {
		return nil, errNobody
	}
	return n.node(j.at)
}

// carryOut sends jobs to the server in one go, and waits for all answers.
func (at *node) carryOut(ctx context.Context, jobs []*job) {
	if len(jobs) == 1 && !jobs[0].asking {
		cmd := jobs[0].cmd(ctx)
		_ = at.client.Process(ctx, cmd) // which has the error too
		jobs[0].read(cmd)
		return
	}
	pipe, cmds := at.client.Pipeline(), make([]redis.Cmder, len(jobs))
	for i, j := range jobs {
		if j.asking {
			pipe.Do(ctx, "ASKING")
		}
		cmds[i] = j.cmd(ctx)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, j := range jobs {
		j.read(cmds[i])
	}
}

// again returns the jobs that are to be sent once more, and whether after a
// pause.
func (n *nodes) again(ctx context.Context, v *view, jobs []*job) (more []*job, wait bool) {
	for _, j := range jobs {
		send, pause := false, false
		switch {
		case ctx.Err() != nil:
		case j.behind != nil && slices.Contains(more, j.behind):
			// It has come first, or might now.
			j.to, j.asking, send = j.behind.to, j.behind.asking, true
		case j.err != nil && j.sends < maxSends:
			send, pause = n.redirect(ctx, v, j)
		}
		if send {
			more = append(more, j)
		}
		wait = wait || (send && pause)
	}
	return more, wait
}

// redirect makes j ready to be sent again, if it may be and if that may help.
func (n *nodes) redirect(ctx context.Context, v *view, j *job) (send, pause bool) {
	word, rest, _ := strings.Cut(answerText(j.err), " ")
	switch why := cause(j.err); {
	case why == "noscript":
		send = !j.text
		j.text = true
	case n.source == nil: // there is no other server
	case word == "MOVED" || word == "ASK":
		j.to, j.asking = beside(j.at, rest[strings.LastIndexByte(rest, ' ')+1:]), word == "ASK"
		if word == "MOVED" {
			n.look(v, j.to)
		}
		return true, false
	case word == "TRYAGAIN":
		j.to, j.asking = "", false
		return true, true
	case why == "readonly" || why == "loading" || why == "clusterdown" || why == "refused":
		j.to, j.asking = "", false
		// Without a newer view the owner is who it was.
		newer, _ := n.newer(ctx, v)
		send = newer != nil && newer.at(j.slot) != j.at && newer.at(j.slot) != ""
	case word == "":
		n.look(v, "") // a server that hangs is replaced by another without a word
	}
	return send, false
}

// answerText is what the server answered, "" if it did not.
func answerText(err error) string {
	var answer redis.Error
	if errors.As(err, &answer) {
		return answer.Error()
	}
	return ""
}
