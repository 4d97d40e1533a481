package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// cpuTimes are what processes have used so far.
type cpuTimes []processTime

type processTime struct {
	pid int
	cpu time.Duration
}

func (after cpuTimes) since(before cpuTimes) cpuTimes {
	used := make(cpuTimes, len(after))
	for i := range after {
		used[i] = processTime{after[i].pid, after[i].cpu - before[i].cpu}
	}
	return used
}

func timesOf(pids []int) (cpuTimes, error) {
	times := make(cpuTimes, len(pids))
	for i, pid := range pids {
		cpu, err := CPUTime(pid)
		if err != nil {
			return nil, err
		}
		times[i] = processTime{pid, cpu}
	}
	return times, nil
}

// tick is the unit of times in /proc on every Linux.
const tick = 10 * time.Millisecond

// CPUTime returns the CPU time that a process has used, of all its threads, as
// Linux tells it in /proc: to a hundredth of a second.
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	// The name of the program, in brackets, may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("read the CPU time of process %d: found %d fields after its name, want more than %d", pid, len(fields), system)
	}
	ticks := int64(0)
	for _, f := range fields[user : system+1] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
