package atomicfile

import "golang.org/x/sys/unix"

func renameExclusive(dirfd int, from, to string) error {
	return unix.Renameat2(dirfd, from, dirfd, to, unix.RENAME_NOREPLACE)
}

func datasync(fd int) error { return unix.Fdatasync(fd) }
