package regfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Dir is one opened directory. Names given to its methods are single components.
type Dir struct {
	fd     int
	path   string
	prefix string // of its entries' paths
	dev    uint64
	ino    uint64
	shared bool        // world-writable and sticky, as /tmp is
	noProc bool        // take the path that needs no /proc; for tests
	proven atomic.Bool // /proc has led back to a handle once
}

// OpenDir opens the directory at path. The error's code is CodeDirectoryInvalid when path is missing or no directory.
func OpenDir(path string) (*Dir, error) {
	var fd int
	err := Retry(func() (err error) {
		fd, err = unix.Open(path, openDirFlags, 0)
		return err
	})
	if err != nil {
		e := &Error{Code: CodeDirectoryInvalid, Path: path, Op: "open", Err: err}
		switch {
		case errors.Is(err, unix.ENOTDIR):
			if st, err := os.Stat(path); err == nil && !st.IsDir() {
				e.Kind = Classify(path).resolvedKind()
			}
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP):
			if Classify(path).Stamp.Kind == Symlink {
				e.Kind = Symlink // one that leads nowhere
			}
		default:
			e.Code = CodeIO
		}
		return nil, e
	}
	st, err := fstat(fd)
	if err != nil {
		unix.Close(fd)
		return nil, IOError("stat", path, err)
	}
	return newDir(fd, path, st), nil
}

// OpenDir opens the directory called name in d, which is not followed when it is a symlink. Errors carry CodeAbsent,
// CodeDirectoryInvalid or CodeIO.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	var fd int
	err := Retry(func() (err error) {
		fd, err = unix.Openat(d.fd, name, openDirFlags|unix.O_NOFOLLOW, 0)
		return err
	})
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, &Error{Code: CodeDirectoryInvalid, Path: d.Join(name), Op: "open", Err: err}
	}
	if err != nil {
		return nil, d.fail("open", name, err)
	}
	st, err := fstat(fd)
	if err != nil {
		unix.Close(fd)
		return nil, d.fail("stat", name, err)
	}
	return newDir(fd, d.Join(name), st), nil
}

func newDir(fd int, path string, st Stamp) *Dir {
	const sticky = unix.S_ISVTX | unix.S_IWOTH
	entry := filepath.Join(path, "x")
	return &Dir{fd: fd, path: path, prefix: entry[:len(entry)-1], dev: st.Dev, ino: st.Ino, shared: st.Mode&sticky == sticky}
}

// Close releases the descriptor.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// FD is the directory's descriptor, valid until Close, for the *at family of calls.
func (d *Dir) FD() int { return d.fd }

// Path is the path the directory was opened by.
func (d *Dir) Path() string { return d.path }

// Reserve takes n descriptors, so that they are there when free has given them back, which may be called twice. It is for work
// that must not run out of them halfway. The error's code is CodeIO.
func (d *Dir) Reserve(n int) (free func(), err error) {
	var taken []int
	free = func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
		taken = nil
	}
	for range n {
		fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			free()
			return nil, IOError("open", d.path, err)
		}
		taken = append(taken, fd)
	}
	return free, nil
}

// IsAt reports whether path leads to this very directory now. It takes one stat, of which the error is the errno; that nothing
// is there is none.
func (d *Dir) IsAt(path string) (bool, error) {
	var st unix.Stat_t
	switch err := Retry(func() error { return unix.Stat(path, &st) }); {
	case err == nil:
		return uint64(st.Dev) == d.dev && st.Ino == d.ino, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return false, nil
	default:
		return false, err
	}
}

// Join returns the path of name, for messages.
func (d *Dir) Join(name string) string { return d.prefix + name }

// Lstat returns the metadata of name itself. Nothing is opened. The error's code is CodeAbsent or CodeIO.
func (d *Dir) Lstat(name string) (Stamp, error) {
	st, err := lstatAt(d.fd, name)
	if err != nil {
		return Stamp{}, d.fail("examine", name, err)
	}
	return st, nil
}

// CheckOwner refuses an entry of another user in a world-writable sticky directory (CodeForeignOwner): there anyone may
// create a name first, and only its creator or the directory's owner may remove it.
func (d *Dir) CheckOwner(name string, st Stamp) error {
	if d.shared && st.UID != uint32(os.Geteuid()) {
		found := st // only a refusal keeps it
		return &Error{Code: CodeForeignOwner, Path: d.Join(name), Kind: st.Kind, UID: st.UID, Stamp: &found}
	}
	return nil
}

// Names returns the names in the directory in no order, "." and ".." left out.
func (d *Dir) Names() ([]string, error) {
	entries, err := d.Entries()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Entries returns the entries of the directory in no order, with their types.
func (d *Dir) Entries() ([]fs.DirEntry, error) {
	fd, err := d.reopen()
	if err != nil {
		return nil, IOError("list", d.path, err)
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, IOError("list", d.path, err)
	}
	return entries, nil
}

// Sync makes the directory's entries durable.
func (d *Dir) Sync() error {
	fd, err := d.reopen()
	if err == nil {
		err = Retry(func() error { return unix.Fsync(fd) })
		unix.Close(fd)
	}
	if err != nil {
		return IOError("sync", d.path, err)
	}
	return nil
}

// reopen gives a readable descriptor of the same directory: the one kept may be a bare handle.
func (d *Dir) reopen() (fd int, err error) {
	err = Retry(func() (err error) {
		fd, err = unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// fail turns the errno of an operation on name into an Error.
func (d *Dir) fail(op, name string, err error) *Error {
	e := IOError(op, d.Join(name), err)
	switch {
	case errors.Is(err, unix.ENOENT):
		e.Code, e.Kind = CodeAbsent, Absent
	case errors.Is(err, unix.EAGAIN):
		e.Code = CodeBusy
	case op == "examine":
		e.Kind = Unexaminable
	}
	return e
}
