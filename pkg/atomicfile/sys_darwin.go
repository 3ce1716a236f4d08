package atomicfile

import "golang.org/x/sys/unix"

func renameExclusive(dirfd int, from, to string) error {
	return unix.RenameatxNp(dirfd, from, dirfd, to, unix.RENAME_EXCL)
}

// datasync asks the drive itself to write, which fsync does not on this system.
func datasync(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}
