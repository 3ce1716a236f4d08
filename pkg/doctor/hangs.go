package doctor

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What hangs takes a thread, for good, and the patience. So a directory is given up in which this many things hang, and a filesystem
// with this many.
const (
	enoughInDirectory  = 2
	enoughInFilesystem = 8
)

// hangs remembers what did not answer, so that nothing there is waited for again. A directory that is given up counts as one such
// thing in the directory above it, unless a filesystem begins there. What the user has named is looked at whatever lies beside it.
// Paths are compared as texts: behind a symbolic link the same one is another.
type hangs struct {
	cwd   string
	named map[string]bool
	some  atomic.Bool // there is any

	mu     sync.Mutex
	in     map[string]int // how many things in a directory, or below a mount point
	silent map[string]bool
}

func newHangs(named []string) *hangs {
	cwd, _ := unix.Getwd()
	h := &hangs{cwd: cwd, named: map[string]bool{}, in: map[string]int{}, silent: map[string]bool{}}
	for _, path := range named {
		h.named[h.abs(path)] = true
	}
	return h
}

func (h *hangs) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(h.cwd, path)
}

// note notes a path that did not answer; mounts are the paths where filesystems begin.
func (h *hangs) note(path string, mounts map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	path = h.abs(path)
	h.some.Store(true)
	root := path
	for root != "/" && !mounts[root] {
		root = filepath.Dir(root)
	}
	h.silent[path] = true
	if h.count("filesystem "+root, enoughInFilesystem) {
		h.silent[root] = true
	}
	for path != root && !h.named[path] && h.count(filepath.Dir(path), enoughInDirectory) {
		path = filepath.Dir(path)
		h.silent[path] = true
	}
}

// count adds one, and reports whether that is enough.
func (h *hangs) count(key string, enough int) bool {
	h.in[key]++
	return h.in[key] == enough
}

// hopeless reports whether a path is not to be waited for.
func (h *hangs) hopeless(path string) bool {
	if !h.some.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for path = h.abs(path); ; path = filepath.Dir(path) {
		if h.silent[path] {
			return true
		}
		if path == "/" || h.named[path] {
			return false
		}
	}
}
