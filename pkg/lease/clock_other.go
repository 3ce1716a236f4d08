//go:build !linux

package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime is CLOCK_MONOTONIC, which counts the time the machine was suspended on macOS, and does not on FreeBSD.
func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
