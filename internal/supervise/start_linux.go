package supervise

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans of the child fall to this process instead of init.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// bindToParent gives the calling thread the parent-death signal, and the goroutine that thread: the signal belongs to a thread,
// not to its process.
func bindToParent() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
