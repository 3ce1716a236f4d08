package clikit

import (
	"golang.org/x/sys/unix"

	"holdfast/internal/offload"
)

// IsTerminal reports whether a descriptor is a terminal, this process's or, in an offloaded program, the first process's.
func IsTerminal(fd int) bool {
	if width, offloaded := offload.Width(fd); offloaded && fd > 0 {
		return width > 0
	}
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return err == nil
}

// Width is the number of columns of a terminal; 80 where it does not say.
func Width(fd int) int {
	if width, offloaded := offload.Width(fd); offloaded && width > 0 {
		return width
	}
	if size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}
