package testkit

import (
	"os"

	"golang.org/x/sys/unix"
)

// kernelLease takes a lease (F_SETLEASE) of a file: another open waits until it is given up.
func kernelLease(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}
