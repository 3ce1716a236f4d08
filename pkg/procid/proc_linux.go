package procid

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// readProc reads a file of /proc. Package os would set up the Go runtime's poller for it, which takes two more descriptors and
// ends the process when there are none.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	content := make([]byte, 0, 1024)
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := unix.Read(fd, content[len(content):cap(content)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return content, nil
		default:
			content = content[:len(content)+n]
		}
	}
}
