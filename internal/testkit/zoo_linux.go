package testkit

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// KernelLease takes a lease (F_SETLEASE) of a file: another open waits until it is given up. It tries for some seconds, since a
// child that another test is just starting has the file open until it runs its program.
func KernelLease(f *os.File) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		if !errors.Is(err, unix.EAGAIN) || time.Now().After(deadline) {
			return err
		}
	}
}

// KernelUnlease gives a lease up. Closing the file is not enough while a child that is being started has it open as well.
func KernelUnlease(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}
