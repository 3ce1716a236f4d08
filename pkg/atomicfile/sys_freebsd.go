package atomicfile

import "golang.org/x/sys/unix"

// renameExclusive does not exist here; a hard link serves.
func renameExclusive(int, string, int, string) error { return unix.ENOSYS }

func datasync(fd int) error { return unix.Fsync(fd) }
