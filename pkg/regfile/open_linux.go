package regfile

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// openDirFlags takes a directory that may be searched but not read, too.
const openDirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// openHandle takes name as an O_PATH handle, establishes its type on it, and opens exactly that inode through /proc.
// It returns errNoProc where /proc does not lead back to the handle.
func (d *Dir) openHandle(name string, access int) (*File, error) {
	var handle int
	err := Retry(func() (err error) {
		handle, err = unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, d.fail("examine", name, err)
	}
	defer unix.Close(handle)
	st, err := fstat(handle)
	if err != nil {
		return nil, d.fail("examine", name, err)
	}
	if st.Kind != Regular {
		return nil, d.notRegular(name, st)
	}
	var fd int
	err = Retry(func() (err error) {
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(handle), access, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, errNoProc
	case err != nil:
		return nil, d.unopened(name, err, st)
	}
	if d.proven.Load() {
		return &File{fd: fd, path: d.Join(name), st: st}, nil
	}
	opened, err := fstat(fd)
	if err == nil && opened.SameFile(st) {
		d.proven.Store(true)
		return &File{fd: fd, path: d.Join(name), st: opened}, nil
	}
	unix.Close(fd)
	if err != nil {
		return nil, d.fail("stat", name, err)
	}
	return nil, errNoProc // something else is mounted at /proc
}
