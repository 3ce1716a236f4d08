package clikit

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieOf ends this process by the signal that has ended its command or its wait, so that whoever started it sees the same: a
// shell goes on with its loop after a program that has exited, whatever its status, and not after one that Ctrl-C has ended.
// It leaves no core. It returns where the signal ends nothing, as for the first process of a container, and for SIGKILL: this
// program was not killed, it has settled everything.
func dieOf(sig unix.Signal) {
	if sig == unix.SIGKILL || unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return
	}
	runtime.LockOSThread()
	if !defaultAction(sig) || unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil) != nil {
		return
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig) // to this very thread: it comes before the call returns
}

// defaultAction gives a signal the action that it has in programs that know nothing of it. The Go runtime handles almost every
// signal, so this goes past it: os/signal cannot be asked for that signal any more.
func defaultAction(sig unix.Signal) bool {
	var action [16]uint64 // the kernel's struct; all zero it says SIG_DFL
	const setSize = 8
	_, _, failed := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, setSize, 0, 0)
	return failed == 0
}
