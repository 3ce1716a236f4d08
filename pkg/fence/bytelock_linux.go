package fence

import (
	"io"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// lockByte locks the first byte of an open file for this opening of it alone.
func lockByte(fd int) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Len: 1}
	return regfile.Retry(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock) })
}

// byteLocked reports whether somebody else has that lock. What cannot be told is no lock: the other one, which is inherited,
// is the protocol's.
func byteLocked(fd int) bool {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Len: 1}
	err := regfile.Retry(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock) })
	return err == nil && lock.Type != unix.F_UNLCK
}
