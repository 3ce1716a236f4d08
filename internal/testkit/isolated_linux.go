package testkit

import (
	"os/exec"
	"syscall"
)

// Isolated makes a command run in namespaces of its own, of the kinds in flags (syscall.CLONE_NEWNS and so on). Mounts it
// makes are seen by nobody else.
func Isolated(cmd *exec.Cmd, flags uintptr) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags &^ syscall.CLONE_NEWNS, Unshareflags: flags & syscall.CLONE_NEWNS}
	return cmd
}
