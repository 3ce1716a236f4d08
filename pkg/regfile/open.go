package regfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// File is an open regular file.
type File struct {
	fd   int
	path string
	st   Stamp
}

// FD is the file's descriptor, valid until Close.
func (f *File) FD() int { return f.fd }

// Path is the file's path, for messages.
func (f *File) Path() string { return f.path }

// Stamp is the file's metadata when it was opened.
func (f *File) Stamp() Stamp { return f.st }

// Close releases the descriptor.
func (f *File) Close() error { return unix.Close(f.fd) }

// Stat returns the file's metadata now.
func (f *File) Stat() (Stamp, error) {
	st, err := fstat(f.fd)
	if err != nil {
		return Stamp{}, IOError("stat", f.path, err)
	}
	return st, nil
}

// ReadAt reads up to len(b) bytes at offset and returns how many there were before the end of the file.
func (f *File) ReadAt(b []byte, offset int64) (int, error) {
	total := 0
	for total < len(b) {
		n, err := f.readSome(b[total:], offset+int64(total))
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
	return total, nil
}

// readSome is one read; 0 is the end of the file.
func (f *File) readSome(b []byte, offset int64) (n int, err error) {
	err = Retry(func() (err error) {
		n, err = unix.Pread(f.fd, b, offset)
		return err
	})
	if err != nil {
		return 0, IOError("read", f.path, err)
	}
	return n, nil
}

// attempts bounds how often an open or a read that was overtaken by a writer is tried.
const attempts = 3

var (
	errNoProc   = errors.New("no usable /proc")
	errOvertook = errors.New("replaced between lstat and open")
)

// Open opens name for access (unix.O_RDONLY, O_RDWR, with O_APPEND at will) if it is a regular file. Errors carry
// CodeAbsent, CodeNotRegular, CodeBusy, CodeUnstable or CodeIO.
func (d *Dir) Open(name string, access int) (*File, error) {
	access |= unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if !d.noProc {
		f, err := d.openHandle(name, access)
		if !errors.Is(err, errNoProc) {
			return f, err
		}
	}
	for range attempts {
		f, err := d.openCompared(name, access)
		if !errors.Is(err, errOvertook) {
			return f, err
		}
	}
	return nil, &Error{Code: CodeUnstable, Path: d.Join(name), Kind: Regular}
}

// OpenOwned is Open for a protocol's own file, which CheckOwner must accept.
func (d *Dir) OpenOwned(name string, access int) (*File, error) {
	f, err := d.Open(name, access)
	if err != nil {
		return nil, d.blame(name, err)
	}
	if err := d.CheckOwner(name, f.st); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// blame prefers, of what keeps a protocol's own file from being read, that it is somebody else's.
func (d *Dir) blame(name string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Kind == Regular && e.Stamp != nil {
		if foreign := d.CheckOwner(name, *e.Stamp); foreign != nil {
			return foreign
		}
	}
	return err
}

// openCompared is the way without /proc: what lstat saw and what open got must be one inode.
func (d *Dir) openCompared(name string, access int) (*File, error) {
	before, err := lstatAt(d.fd, name)
	if err != nil {
		return nil, d.fail("examine", name, err)
	}
	if before.Kind != Regular {
		return nil, d.notRegular(name, before)
	}
	var fd int
	err = Retry(func() (err error) {
		fd, err = unix.Openat(d.fd, name, access|unix.O_NOFOLLOW, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EMLINK):
		return nil, errOvertook // became a symlink, or a FIFO or socket without a peer
	case err != nil:
		return nil, d.unopened(name, err, before)
	}
	after, err := fstat(fd)
	if err == nil && after.SameFile(before) {
		return &File{fd: fd, path: d.Join(name), st: after}, nil
	}
	unix.Close(fd)
	if err != nil {
		return nil, d.fail("stat", name, err)
	}
	return nil, errOvertook
}

// unopened is a regular file that the system would not open: what it is is known all the same.
func (d *Dir) unopened(name string, err error, st Stamp) *Error {
	e := d.fail("open", name, err)
	if e.Code != CodeAbsent {
		e.Kind, e.Stamp = Regular, &st
	}
	return e
}

func (d *Dir) notRegular(name string, st Stamp) *Error {
	return &Error{Code: CodeNotRegular, Path: d.Join(name), Kind: st.Kind, Stamp: &st}
}
