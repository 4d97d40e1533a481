package chaos_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A wall is the wall clock of one process, which can be set without any other
// noticing. The kernel maps into every process the code that reads the clock
// (the vDSO); a wall puts code of its own over it there, which asks the kernel
// and adds an offset. The monotonic clock stays as it is. The program need not
// know, and Go's is one that libfaketime cannot reach.
type wall struct {
	memory  *os.File
	offsets []int64 // addresses
}

// readers are, by the function that each is put over, code that asks the
// kernel and adds the eight bytes after it to the seconds. None is longer than
// the shortest function.
var readers = map[string][]byte{
	// mov eax, 228; syscall; test edi, edi (CLOCK_REALTIME); jne ret; mov rcx, [offset]; add [rsi], rcx; ret; nop 2
	"__vdso_clock_gettime": {0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 10, 0x48, 0x8b, 0x0d, 6, 0, 0, 0, 0x48, 0x01, 0x0e, 0xc3, 0x90, 0x90},
	// mov eax, 96; syscall; test rdi, rdi; je ret; mov rcx, [offset]; add [rdi], rcx; ret; nop
	"__vdso_gettimeofday": {0xb8, 96, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xff, 0x74, 10, 0x48, 0x8b, 0x0d, 5, 0, 0, 0, 0x48, 0x01, 0x0f, 0xc3, 0x90},
	// mov eax, 201; syscall; add rax, [offset]; test rdi, rdi; je ret; mov [rdi], rax; ret; nop
	"__vdso_time": {0xb8, 201, 0, 0, 0, 0x0f, 0x05, 0x48, 0x03, 0x05, 10, 0, 0, 0, 0x48, 0x85, 0xff, 0x74, 3, 0x48, 0x89, 0x07, 0xc3, 0x90},
}

// wallOf takes over the clock of a process. It reads as before.
func wallOf(t *testing.T, pid int) *wall {
	t.Helper()
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	w := &wall{memory: memory}
	places := functions(t, pid, memory)
	stopped(t, pid, func(counter int64) bool {
		return !slices.ContainsFunc(places, func(p place) bool { return p.at <= counter && counter < p.at+32 })
	})
	defer signal(t, pid, syscall.SIGCONT)
	for _, p := range places {
		if _, err := memory.WriteAt(append(slices.Clone(readers[p.name]), make([]byte, 8)...), p.at); err != nil {
			t.Fatal(err)
		}
		w.offsets = append(w.offsets, p.at+int64(len(readers[p.name])))
	}
	return w
}

// set has the clock be off by so much.
func (w *wall) set(t *testing.T, by time.Duration) {
	t.Helper()
	text := binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second))
	for _, at := range w.offsets {
		if _, err := w.memory.WriteAt(text, at); err != nil {
			t.Fatal(err)
		}
	}
}

// A place is where a function of the vDSO begins.
type place struct {
	name string
	at   int64
}

func functions(t *testing.T, pid int, memory io.ReaderAt) []place {
	t.Helper()
	from, to := vdso(t, pid)
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var places []place
	for _, s := range symbols {
		if code := readers[s.Name]; code != nil {
			if int(s.Size) < len(code)+8 {
				t.Fatalf("%s has %d bytes, want %d for what is put over it", s.Name, s.Size, len(code)+8)
			}
			places = append(places, place{s.Name, from + int64(s.Value)})
		}
	}
	if len(places) != len(readers) {
		t.Fatalf("found %v in the vDSO, want all %d functions", places, len(readers))
	}
	return places
}

func vdso(t *testing.T, pid int) (from, to int64) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "[vdso]") {
			if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil {
				return from, to
			}
		}
	}
	t.Fatal("the process has no vDSO")
	return 0, 0
}

// stopped stops a process where the program counters of all its threads are
// fine.
func stopped(t *testing.T, pid int, fine func(counter int64) bool) {
	t.Helper()
	eventually(t, "the process stops outside of the code that reads the clock", func() bool {
		signal(t, pid, syscall.SIGSTOP)
		for range 100 {
			counters, err := counters(pid)
			if err != nil {
				time.Sleep(time.Millisecond) // it runs still
				continue
			}
			if !slices.ContainsFunc(counters, func(c int64) bool { return !fine(c) }) {
				return true
			}
			break
		}
		signal(t, pid, syscall.SIGCONT)
		return false
	})
}

var errRuns = errors.New("a thread runs")

// counters returns where the threads of a stopped process are.
func counters(pid int) ([]int64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return nil, err
	}
	var list []int64
	for _, name := range files {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(string(text))
		if len(fields) < 3 {
			return nil, errRuns
		}
		var counter int64
		if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &counter); err != nil {
			return nil, err
		}
		list = append(list, counter)
	}
	return list, nil
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("send %v to %d: %v", s, pid, err)
	}
}
