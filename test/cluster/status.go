package cluster

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"time"
)

// report tells the API server how the pod is. One report at a time, so that
// none comes after a later one; a server that is busy is told again.
func (w *worker) report(ctx context.Context) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	for range 10 {
		w.mu.Lock()
		status := w.status()
		w.mu.Unlock()
		err := w.node.client.Do(ctx, http.MethodPatch, w.pod.path()+"/status", Object{"status": status}, nil)
		if err == nil || ctx.Err() != nil || NotFound(err) {
			return
		}
		w.say("report the status: " + err.Error())
		wait(ctx, again)
	}
}

// status is the pod's status. The caller holds the lock.
func (w *worker) status() Object {
	ready := w.initialized
	for _, c := range w.pod.Spec.Containers {
		ready = ready && w.states[c.Name].ready
	}
	conditions := []any{}
	for name, holds := range map[string]bool{"PodScheduled": true, "Initialized": w.initialized, "ContainersReady": ready, "Ready": ready} {
		conditions = append(conditions, w.condition(name, holds))
	}
	return Object{
		"phase": w.phase(), "conditions": conditions, "startTime": stamp(w.began), "hostIP": "127.0.0.1",
		"podIP": w.ip, "podIPs": []any{Object{"ip": w.ip}},
		"initContainerStatuses": w.statuses(w.pod.Spec.InitContainers),
		"containerStatuses":     w.statuses(w.pod.Spec.Containers),
	}
}

// condition keeps the moment at which a condition began to hold.
func (w *worker) condition(name string, holds bool) Object {
	if w.conditions == nil {
		w.conditions = map[string]condition{}
	}
	if now := w.conditions[name]; now.since.IsZero() || now.holds != holds {
		w.conditions[name] = condition{holds, time.Now()}
	}
	status := map[bool]string{true: "True", false: "False"}[holds]
	return Object{"type": name, "status": status, "lastTransitionTime": stamp(w.conditions[name].since)}
}

// A condition holds or does not since a moment.
type condition struct {
	holds bool
	since time.Time
}

func (w *worker) phase() string {
	if w.pod.Spec.RestartPolicy == "Always" {
		if w.initialized {
			return "Running"
		}
		return "Pending"
	}
	var running, failed bool
	for _, s := range w.states {
		running = running || s.ended == nil
		failed = failed || s.ended != nil && s.ended.code != 0
	}
	switch {
	case failed && w.pod.Spec.RestartPolicy == "Never":
		return "Failed"
	case running || failed:
		return "Running"
	}
	return "Succeeded"
}

func (w *worker) statuses(containers []container) []any {
	statuses := []any{}
	for _, c := range containers {
		s := w.states[c.Name]
		statuses = append(statuses, Object{
			"name": c.Name, "image": c.Image, "imageID": c.Image, "ready": s.ready, "started": s.started,
			"restartCount": s.restarts, "state": s.now(), "lastState": s.last.object(),
		})
	}
	return statuses
}

func (s *state) now() Object {
	switch {
	case s.waiting != "":
		return Object{"waiting": Object{"reason": s.waiting, "message": s.message}, "running": nil, "terminated": nil}
	case s.ended != nil:
		now := s.ended.object()
		now["waiting"], now["running"] = nil, nil
		return now
	}
	return Object{"running": Object{"startedAt": stamp(s.since)}, "waiting": nil, "terminated": nil}
}

func (e *ending) object() Object {
	if e == nil {
		return Object{}
	}
	reason := "Completed"
	if e.code != 0 {
		reason = "Error"
	}
	return Object{"terminated": Object{"exitCode": e.code, "reason": reason, "message": e.message, "finishedAt": stamp(e.at)}}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// exitCode is the code of a process that ended with err.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	return 137
}
