package server

import (
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A stamp tells one content of the policy's files from another, in this
// process.
type stamp uint64

// stampSeed is another in each process, so that nobody can write two files that
// have the same stamp.
var stampSeed = maphash.MakeSeed()

// stampOf reads all files of paths, so that no change is missed for its time
// or size: policies are small.
func stampOf(paths []string) stamp { return stampOfFiles(files(paths)) }

func stampOfFiles(names []string) stamp {
	var h maphash.Hash
	h.SetSeed(stampSeed)
	for _, name := range names {
		fmt.Fprintf(&h, "%q ", name)
		if err := hashFile(&h, name); err != nil {
			fmt.Fprintf(&h, "%q ", err)
		}
	}
	return stamp(h.Sum64())
}

// maxRead bounds what is read of one file. No policy is as large.
const maxRead = 32 << 20

// hashFile writes the hash of a file's content to w. What is no plain file, a
// pipe say, can be read but once, and not for this.
func hashFile(w io.Writer, name string) error {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var h maphash.Hash
	h.SetSeed(stampSeed)
	if _, err := io.Copy(&h, io.LimitReader(f, maxRead)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d ", h.Sum64())
	return err
}

// files returns the files of paths: of a folder those that may be policies.
func files(paths []string) []string {
	var names []string
	for _, path := range paths {
		entries, err := os.ReadDir(path)
		if err != nil {
			names = append(names, path)
			continue
		}
		for _, e := range entries {
			if mayBePolicy(e.Name()) {
				names = append(names, filepath.Join(path, e.Name()))
			}
		}
	}
	return names
}

func mayBePolicy(name string) bool {
	ext := filepath.Ext(name)
	return !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml")
}

// A watch hints at changes in folders. Its hints may be too many, and may be
// missing.
type watch struct {
	hints   chan struct{}
	notify  *fsnotify.Watcher // nil where there is none
	failed  func(error)
	failing map[string]bool // the folders that cannot be watched, so that this is told once
	done    sync.WaitGroup
}

func newWatch(failed func(error)) *watch {
	w := &watch{hints: make(chan struct{}, 1), failed: failed}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		failed(err)
		return w
	}
	w.notify = notify
	w.done.Go(w.run)
	return w
}

func (w *watch) run() {
	for {
		select {
		case _, ok := <-w.notify.Events:
			if !ok {
				return
			}
		case _, ok := <-w.notify.Errors: // events were lost: look for oneself
			if !ok {
				return
			}
		}
		select {
		case w.hints <- struct{}{}:
		default:
		}
	}
}

// follow watches the folders that paths and the targets of their symbolic links
// are in now, and no others.
func (w *watch) follow(paths []string) {
	if w.notify == nil {
		return
	}
	wanted := folders(paths)
	for _, name := range w.notify.WatchList() {
		if !wanted[name] {
			_ = w.notify.Remove(name) // it may be gone
		}
	}
	failing := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := w.notify.Add(name); err != nil {
			failing[name] = true
			if !w.failing[name] {
				w.failed(err)
			}
		}
	}
	w.failing = failing
}

// folders returns the folders in which something happens when one of paths
// changes: itself if it is one, its own, those of the links on the way to it,
// and that of what they lead to. No name of a folder is a link: a watch on a
// link stays with what the link led to.
func folders(paths []string) map[string]bool {
	wanted := map[string]bool{}
	add := func(folder string) {
		target, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return
		}
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			wanted[target] = true
		}
	}
	for _, path := range append(slices.Clone(paths), files(paths)...) {
		add(path)
		add(filepath.Dir(path))
		if target, err := filepath.EvalSymlinks(path); err == nil {
			add(filepath.Dir(target))
		}
		for _, link := range links(path) {
			add(filepath.Dir(link))
		}
	}
	return wanted
}

// links returns path and the folders that it names, as far as they are links.
func links(path string) []string {
	var found []string
	for at := filepath.Clean(path); at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode().Type() == os.ModeSymlink {
			found = append(found, at)
		}
	}
	return found
}

func (w *watch) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing is lost with it
		w.done.Wait()
	}
}
