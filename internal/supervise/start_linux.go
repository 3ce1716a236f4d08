package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans of the child fall to this process instead of init.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
