package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

func (w *worker) volumeDir(name string) string { return filepath.Join(w.dir, "volumes", name) }

// mount lays the files of all volumes down.
func (w *worker) mount(ctx context.Context) error {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	for _, v := range w.pod.Spec.Volumes {
		if err := os.MkdirAll(w.volumeDir(v.Name), 0o755); err != nil {
			return err
		}
		if v.EmptyDir != nil {
			continue
		}
		files, err := w.content(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		if err := w.lay(w.volumeDir(v.Name), files); err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// followFiles lays changed files down again, until ctx ends. A kubelet may take
// a minute to do so.
func (w *worker) followFiles(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, again)
		// What cannot be read stays as it was.
		_ = w.mount(ctx)
	}
}

// content is what the files of a volume are to hold, by path.
func (w *worker) content(ctx context.Context, v volume) (map[string]string, error) {
	switch {
	case v.ConfigMap != nil:
		return w.from(ctx, "configmaps", v.ConfigMap.Name, *v.ConfigMap)
	case v.Secret != nil:
		return w.from(ctx, "secrets", v.Secret.SecretName, *v.Secret)
	case v.Projected == nil:
		return nil, fmt.Errorf("this node does not know its kind")
	}
	all := map[string]string{}
	for _, part := range v.Projected.Sources {
		for kind, s := range map[string]*source{"configmaps": part.ConfigMap, "secrets": part.Secret} {
			if s == nil {
				continue
			}
			files, err := w.from(ctx, kind, s.Name, *s)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, files)
		}
	}
	return all, nil
}

func (w *worker) from(ctx context.Context, kind, name string, s source) (map[string]string, error) {
	data, err := w.data(ctx, kind, name, s.Optional)
	if err != nil || len(s.Items) == 0 {
		return data, err
	}
	files := map[string]string{}
	for _, item := range s.Items {
		value, ok := data[item.Key]
		if !ok && !s.Optional {
			return nil, fmt.Errorf("%s %s has no key %s", kind, name, item.Key)
		}
		files[item.Path] = value
	}
	return files, nil
}

// lay writes files into dir as kubelet does: into a folder of their own, to
// which ..data is turned in one step; a file's name links through ..data.
func (w *worker) lay(dir string, files map[string]string) error {
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	if old != "" && same(filepath.Join(dir, old), files) {
		return nil
	}
	fresh := time.Now().Format("..2006_01_02_15_04_05.000000000")
	for name, text := range files {
		at := filepath.Join(dir, fresh, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, fresh), 0o755); err != nil {
		return err
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(fresh, next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	if err := link(dir, files); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

// link makes the names of files in dir, and removes those of files that are gone.
func link(dir string, files map[string]string) error {
	wanted := map[string]bool{}
	for name := range files {
		first := filepath.ToSlash(name)
		if i := len(filepath.Dir(first)); filepath.Dir(first) != "." {
			first = first[:i]
		}
		wanted[first] = true
	}
	present, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range present {
		name := entry.Name()
		if !wanted[name] && name[0] != '.' {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		delete(wanted, name)
	}
	for name := range wanted {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// same says that dir holds these files and no others.
func same(dir string, files map[string]string) bool {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil || n != len(files) {
		return false
	}
	for name, text := range files {
		if have, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(have) != text {
			return false
		}
	}
	return true
}
