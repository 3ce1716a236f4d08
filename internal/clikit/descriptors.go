package clikit

import (
	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// descriptors is how many a verb that changes something may have open at a time beside those it begins with: a directory, a claim, a
// file and its handle, one or two for what else goes on, and those of the Go runtime, which ends the process when it gets none.
const descriptors = 10

// needDescriptors fails unless so many can be opened now, so that nothing ends halfway for the want of them.
func needDescriptors() error {
	var taken []int
	defer func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
	}()
	for range descriptors {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return regfile.IOError("open", "/", err)
		}
		taken = append(taken, fd)
	}
	return nil
}
