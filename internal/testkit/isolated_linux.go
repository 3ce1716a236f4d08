package testkit

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Isolated makes a command run in namespaces of its own, of the kinds in flags (syscall.CLONE_NEWNS and so on). Mounts it
// makes are seen by nobody else.
func Isolated(cmd *exec.Cmd, flags uintptr) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags &^ syscall.CLONE_NEWNS, Unshareflags: flags & syscall.CLONE_NEWNS}
	return cmd
}

// OwnMounts moves the calling goroutine to a thread with a mount namespace of its own. The thread ends with the
// goroutine, since it is never unlocked, and the namespace with the last process in it.
func OwnMounts(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal("a mount namespace:", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal("private mounts:", err)
	}
}
