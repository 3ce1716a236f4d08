package atomicfile

import "golang.org/x/sys/unix"

func renameExclusive(fromfd int, from string, tofd int, to string) error {
	return unix.Renameat2(fromfd, from, tofd, to, unix.RENAME_NOREPLACE)
}

func datasync(fd int) error { return unix.Fdatasync(fd) }
