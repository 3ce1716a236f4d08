package supervise

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// trampolineVariable marks a start of the wrapper's own binary as a trampoline. Its value is how many descriptors the command
// inherits.
const trampolineVariable = "HOLDFAST_TRAMPOLINE"

// firstFD is the first descriptor that a command inherits beside the standard ones. Behind the command's own, the trampoline
// has two: it is let go by a byte on the one, and tells on the other why the command did not start.
const firstFD = 3

// noSignal is the trampoline's status when the wrapper gave up.
const noSignal = 125

// Waiting is a process that exists, has its pid, and waits to become the command. Go or Cancel must be called.
type Waiting struct {
	child *Child
	name  string
	path  string
	gate  *os.File
	fault *os.File
}

// StartWaiting starts the wrapper's own binary, whose main has to call Jump first, as a trampoline for the command: so its
// pid can be recorded before it runs. pidVariable, unless empty, becomes an environment variable with that pid. The
// error is a *StartError.
func StartWaiting(c Command, pidVariable string) (*Waiting, error) {
	path, err := lookUp(c.Argv[0])
	if err != nil {
		return nil, startError(c.Argv[0], "", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, notTried(c.Argv[0], err)
	}
	gateOut, gateIn, err := os.Pipe()
	if err != nil {
		return nil, notTried(c.Argv[0], err)
	}
	defer gateOut.Close()
	faultOut, faultIn, err := os.Pipe()
	if err != nil {
		gateIn.Close()
		return nil, notTried(c.Argv[0], err)
	}
	defer faultIn.Close()
	jump := Command{
		Argv:  append([]string{os.Args[0], pidVariable, path}, c.Argv...),
		Env:   append(c.Env, trampolineVariable+"="+strconv.Itoa(len(c.Files))),
		Files: append(slices.Clone(c.Files), gateOut, faultIn),
		Kept:  c.Kept,
	}
	child, err := launch(self, jump)
	if err != nil {
		gateIn.Close()
		faultOut.Close()
		return nil, notTried(c.Argv[0], err)
	}
	child.waited = true
	return &Waiting{child: child, name: c.Argv[0], path: path, gate: gateIn, fault: faultOut}, nil
}

// PID is the pid that the command will have.
func (w *Waiting) PID() int { return w.child.PID }

// Go lets the process become the command. With a nil error the command has been executed. The error is a *StartError.
func (w *Waiting) Go() (*Child, error) {
	defer w.fault.Close()
	_, err := w.gate.Write([]byte{1})
	w.gate.Close()
	if err != nil {
		return nil, notTried(w.name, err)
	}
	text, err := io.ReadAll(w.fault) // its end is the exec: the descriptor does not survive that
	if err != nil {
		return nil, notTried(w.name, err)
	}
	if len(text) > 0 {
		<-w.child.exited
		n, _ := strconv.Atoi(string(text))
		return nil, startError(w.name, w.path, unix.Errno(n))
	}
	return w.child, nil
}

// Cancel ends the process without a command, and waits for its end.
func (w *Waiting) Cancel() {
	w.gate.Close()
	<-w.child.exited
	w.fault.Close()
}

// Jump makes this process the command, if it was started as a trampoline; otherwise it returns at once. It is the first
// call of a wrapper's main.
func Jump() {
	inherited, err := strconv.Atoi(os.Getenv(trampolineVariable))
	if err != nil {
		return
	}
	parent := os.Getppid()
	goFD, faultFD := firstFD+inherited, firstFD+inherited+1
	os.Unsetenv(trampolineVariable)
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT)
	}
	unix.CloseOnExec(faultFD)
	if !letGo(goFD) {
		os.Exit(noSignal)
	}
	// The command is executed by this very thread, so this thread must have the parent-death signal. A parent that was gone
	// before it had will not be noticed by it.
	if bindToParent(); os.Getppid() != parent {
		os.Exit(noSignal)
	}
	pidVariable, path, argv := os.Args[1], os.Args[2], os.Args[3:]
	if pidVariable != "" {
		os.Setenv(pidVariable, strconv.Itoa(os.Getpid()))
	}
	err = unix.Exec(path, argv, os.Environ())
	var no unix.Errno
	errors.As(err, &no)
	_, _ = unix.Write(faultFD, []byte(strconv.Itoa(int(no))))
	os.Exit(statusCannotExecute)
}

// letGo waits for the byte; the end of the pipe instead means that the wrapper gave up, or is gone.
func letGo(goFD int) bool {
	defer unix.Close(goFD)
	for {
		n, err := unix.Read(goFD, make([]byte, 1))
		if err != unix.EINTR {
			return n == 1
		}
	}
}
