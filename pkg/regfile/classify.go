package regfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Entry says what a path is. Nothing was opened to find out.
type Entry struct {
	Path         string
	Stamp        Stamp  // zero but for Kind when absent or unexaminable
	Target       string // a symlink's text
	ResolvesTo   string // a symlink's final path, where it has one
	ResolvesKind Kind   // what is at the end of a symlink; Absent when it dangles
	Err          error  // why it is unexaminable
}

// Classify examines any path, final symlink not followed, and what such a link leads to. It never fails: what cannot be told is
// Unexaminable.
func Classify(path string) Entry {
	e := Examine(path)
	e.Follow()
	return e
}

// Examine is Classify without what a link leads to.
func Examine(path string) Entry {
	e := Entry{Path: path}
	st, err := lstatAt(unix.AT_FDCWD, path)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		e.Stamp.Kind = Absent
		return e
	case err != nil:
		e.Stamp.Kind, e.Err = Unexaminable, IOError("examine", path, err)
		return e
	}
	e.Stamp = st
	if st.Kind == Symlink {
		e.Target, _ = os.Readlink(e.Path)
	}
	return e
}

// Follow looks at what a symlink leads to, which may be on another filesystem than the link.
func (e *Entry) Follow() {
	if e.Stamp.Kind != Symlink {
		return
	}
	var st unix.Stat_t
	err := Retry(func() error { return unix.Stat(e.Path, &st) })
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		e.ResolvesKind = Absent
	case err != nil:
		e.ResolvesKind = Unexaminable
	default:
		e.ResolvesKind = kindOf(uint32(st.Mode))
		// The links of /proc/PID/fd lead to pipes and sockets that have no path.
		e.ResolvesTo, _ = filepath.EvalSymlinks(e.Path)
	}
}

func (e Entry) resolvedKind() Kind {
	if e.Stamp.Kind == Symlink {
		return e.ResolvesKind
	}
	return e.Stamp.Kind
}

// Aside is a name beside a path, under which nothing is yet, for moving away what is at the path.
func Aside(path string) string {
	aside := path + ".aside"
	for n := 2; n < 100; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s.aside%d", path, n)
	}
	return aside
}
