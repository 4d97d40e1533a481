package policyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxFile bounds a file: about a hundred thousand rules.
const maxFile = 16 << 20

// machine is the machine's files, under the names that a shell knows.
type machine struct{}

// Open opens a file for reading.
func (machine) Open(name string) (fs.File, error) { return os.Open(name) }

// Stat follows symbolic links, and opens nothing.
func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Files returns the names of the files that Load would read.
func Files(o Options) []string {
	l := newLoader(o)
	return l.list()
}

// list returns the names of the files to read.
func (l *loader) list() []string {
	if len(l.options.Paths) == 0 {
		l.faults = append(l.faults, Fault{Found: "no policy", Want: "at least one file or directory"})
	}
	var names []string
	for _, p := range l.options.Paths {
		names = append(names, l.expand(p)...)
	}
	return names
}

// expand returns name itself or, for a directory, the policy files in it.
func (l *loader) expand(name string) []string {
	if l.options.Ratelimit != nil {
		return l.within(name, nil)
	}
	names, fault := expand(l.files, name)
	if fault != nil {
		l.faults = append(l.faults, *fault)
	}
	return names
}

func expand(files fs.FS, name string) ([]string, *Fault) {
	entries, folder, fault := inFolder(files, name)
	switch {
	case fault != nil:
		return nil, fault
	case !folder:
		return []string{name}, nil
	}
	var names []string
	for _, e := range entries {
		if file := path.Join(name, e.Name()); isPolicy(files, file) {
			names = append(names, file)
		}
	}
	if names == nil {
		return nil, &Fault{File: name, Found: "no policy in this directory", Want: "at least one *.yaml or *.yml file"}
	}
	return names, nil
}

// inFolder returns what is in name, if that is a folder.
func inFolder(files fs.FS, name string) (entries []fs.DirEntry, folder bool, fault *Fault) {
	info, err := fs.Stat(files, name)
	if err == nil && info.IsDir() {
		folder = true
		entries, err = fs.ReadDir(files, name)
	}
	if err != nil {
		return nil, folder, unreadable(name, err)
	}
	return entries, folder, nil
}

// isPolicy says that a directory's entry is to be read: a regular file, or one
// that cannot be looked at, so that its fault is told.
func isPolicy(files fs.FS, name string) bool {
	base, ext := path.Base(name), path.Ext(name)
	if strings.HasPrefix(base, ".") || (ext != ".yaml" && ext != ".yml") {
		return false
	}
	info, err := fs.Stat(files, name)
	return err != nil || info.Mode().IsRegular()
}

// read returns a file's text, if it is of a decent size.
func read(files fs.FS, name string) ([]byte, *Fault) {
	f, err := files.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if len(data) > maxFile {
		return nil, &Fault{
			File: name, Found: "a larger file", Want: fmt.Sprintf("at most %d MiB", maxFile>>20),
			Do: "divide it by domains",
		}
	}
	return data, nil
}

func unreadable(name string, err error) *Fault {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &Fault{File: name, Found: err.Error(), Want: "a file that can be read"}
}

// within returns name itself or, for a directory, all files in it and within.
// None is no fault, and what cannot be read keeps nothing else from being read.
// above are the directories that it is in.
func (l *loader) within(name string, above []fs.FileInfo) (names []string) {
	info, err := fs.Stat(l.files, name)
	if err == nil && !info.IsDir() {
		return []string{name}
	}
	var entries []fs.DirEntry
	if err == nil {
		err = outside(info, above)
	}
	if err == nil {
		entries, err = fs.ReadDir(l.files, name)
	}
	if err != nil {
		l.miss(name, *unreadable(name, err))
	}
	for _, e := range entries {
		if !l.options.Ratelimit.skips(e.Name()) {
			names = append(names, l.within(path.Join(name, e.Name()), append(above[:len(above):len(above)], info))...)
		}
	}
	return names
}

var errWithin = errors.New("a symbolic link to a directory that it is in")

// outside says that a directory is none of above.
func outside(info fs.FileInfo, above []fs.FileInfo) error {
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return errWithin
	}
	return nil
}

// skips says that an entry of a directory is not read.
func (r *Ratelimit) skips(name string) bool {
	return strings.HasPrefix(name, "..") || r.SkipDotfiles && strings.HasPrefix(name, ".")
}
