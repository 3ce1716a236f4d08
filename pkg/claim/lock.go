package claim

import (
	"errors"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// errNoLocks says that the filesystem has no kernel locks.
var errNoLocks = errors.New("the filesystem has no kernel locks")

// tryLock takes a kernel lock without waiting; false means that another open file has it.
func tryLock(fd, how int) (bool, error) {
	err := regfile.Retry(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK),
		errors.Is(err, unix.EINVAL):
		return false, errNoLocks
	}
	return false, err
}
