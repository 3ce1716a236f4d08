package doctor

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What hangs takes a thread, for good, and the patience. So a directory is given up in which this many things hang, and a filesystem
// with this many.
const (
	enoughInDirectory  = 2
	enoughInFilesystem = 8
	enoughLinks        = 32 // whose text does not tell which filesystem hangs behind them
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
	root := rootOf(path, mounts)
	h.silent[path] = true
	if h.count("filesystem "+root, enoughInFilesystem) {
		h.silent[root] = true
	}
	for path != root && !h.named[path] && h.count(filepath.Dir(path), enoughInDirectory) {
		path = filepath.Dir(path)
		h.silent[path] = true
	}
}

// noteLink notes a link whose end did not answer. That says nothing about the link's directory; it says something about where the text
// leads when that is another filesystem, by a way that does not go back up.
func (h *hangs) noteLink(link, leads string, mounts map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.some.Store(true)
	h.silent["link "+h.abs(link)] = true
	root, known := h.behind(link, leads, mounts)
	switch {
	case !known:
		h.count("links", enoughLinks)
	case h.count("filesystem "+root, enoughInFilesystem):
		h.silent[root] = true
	}
}

// hopelessLink reports whether a link is not to be followed.
func (h *hangs) hopelessLink(link, leads string, mounts func() map[string]bool) bool {
	if !h.some.Load() {
		return false
	}
	h.mu.Lock()
	lost := h.silent["link "+h.abs(link)]
	if !lost && h.in["links"] >= enoughLinks {
		_, known := h.behind(link, leads, mounts())
		lost = !known
	}
	h.mu.Unlock()
	return lost || !goesUp(link, leads) && h.hopeless(leads)
}

// behind is the root of the filesystem that a link leads to by its text, where that tells: it is not the link's own.
func (h *hangs) behind(link, leads string, mounts map[string]bool) (root string, known bool) {
	root = rootOf(h.abs(leads), mounts)
	return root, !goesUp(link, leads) && root != rootOf(h.abs(link), mounts)
}

// goesUp reports whether a link's text goes up after it has gone down: what it goes down to may be a link, or lie on another
// filesystem.
func goesUp(link, leads string) bool {
	down := false
	for _, part := range strings.Split(strings.TrimPrefix(leads, filepath.Dir(link)+"/"), "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

// rootOf is where the filesystem of a path begins.
func rootOf(path string, mounts map[string]bool) string {
	for path != "/" && !mounts[path] {
		path = filepath.Dir(path)
	}
	return path
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
