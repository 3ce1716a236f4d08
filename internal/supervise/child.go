package supervise

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// Command is what to run. Argv[0] is looked up on PATH unless it has a slash.
type Command struct {
	Argv  []string
	Env   []string
	Files []*os.File // what it inherits from descriptor 3 on
	Kept  []*os.File // what it inherits from descriptor 10 on, wherever there is room
}

// StartError says that the command never ran.
type StartError struct {
	Name   string
	Status int // 127 when there is no such program, 126 when it cannot be executed, 125 when it was not even tried
	Err    error

	hint string // what may be the matter, a clause
}

// ErrorCode is the stable code.
func (e *StartError) ErrorCode() string {
	switch e.Status {
	case statusNotFound:
		return "command-not-found"
	case statusNotTried:
		return regfile.CodeIO
	}
	return "command-not-executable"
}

// Unwrap gives the system's error.
func (e *StartError) Unwrap() error { return e.Err }

func (e *StartError) Error() string {
	name := regfile.Printable(e.Name)
	if name == "" {
		name = "''"
	}
	switch {
	case e.Status == statusNotTried:
		return "start " + name + ": " + regfile.Errno(e.Err)
	case e.Status == statusNotFound && e.hint == noInterpreter:
		return name + " cannot be executed: " + e.hint
	}
	text := name + ": no such program"
	if e.Status == statusCannotExecute {
		text = name + " cannot be executed: " + e.Err.Error()
	}
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

const (
	noInterpreter = "the interpreter that it names does not exist"
	noPath        = "PATH is not set"
	noMagic       = "if it is a script, has it a #! line?"
)

// The statuses of coreutils' timeout for a command that cannot be run.
const (
	statusNotTried      = 125
	statusCannotExecute = 126
	statusNotFound      = 127
)

// Child is a running command. One goroutine, locked to the thread that started it, waits for it and for every orphan
// that falls to this process; the thread outlives the child, whose parent-death signal is tied to it.
type Child struct {
	PID int

	waited  bool // it was there, as a trampoline, while the wrapper still looked at signals itself
	exited  chan struct{}
	stopped chan unix.Signal
	none    chan struct{} // closed when this process has no children left

	strangers strangers

	mu     sync.Mutex
	status unix.WaitStatus
}

// Start runs the command. The error is a *StartError.
func Start(c Command) (*Child, error) {
	path, err := lookUp(c.Argv[0])
	if err != nil {
		return nil, startError(c.Argv[0], "", err)
	}
	child, err := launch(path, c)
	if err != nil {
		return nil, startError(c.Argv[0], path, err)
	}
	return child, nil
}

// launch starts a process and begins to wait for it.
func launch(path string, c Command) (*Child, error) {
	child := &Child{exited: make(chan struct{}), stopped: make(chan unix.Signal, 1), none: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: see Child
		becomeSubreaper()
		child.strangers = noteStrangers()
		var err error
		child.PID, err = fork(path, c)
		started <- err
		if err == nil {
			child.reap()
		}
	}()
	return child, <-started
}

// lookUp finds a program as execvp does: also in the current directory when PATH says so, and what is on PATH but cannot be
// executed is not called missing.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, exec.ErrNotFound) && name != "":
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if _, statErr := os.Stat(filepath.Join(dir, name)); statErr == nil {
				return "", &exec.Error{Name: name, Err: fs.ErrPermission}
			}
		}
	}
	return path, err
}

// startError tells by the system's error whose failure it is. That there is no process, no memory or no descriptor to be had
// says nothing of the program.
// The path is that of the program, or empty when none was found.
func startError(name, path string, err error) *StartError {
	e := &StartError{Name: name, Status: statusCannotExecute, Err: err}
	var no unix.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		e.Status = statusNotFound
		e.hint = whyNotFound(name, path)
	case errors.Is(err, unix.ENOEXEC):
		e.hint = noMagic
	case errors.As(err, &no) && slices.Contains([]unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE}, no):
		e.Status = statusNotTried
	}
	return e
}

// whyNotFound is why a program is not found that whoever named it may well have.
func whyNotFound(name, path string) string {
	if _, err := os.Stat(path); path != "" && err == nil {
		return noInterpreter
	}
	if _, set := os.LookupEnv("PATH"); !set && !strings.Contains(name, "/") {
		return noPath
	}
	return ""
}

// notTried is the error of a wrapper that has itself failed.
func notTried(name string, err error) *StartError {
	return &StartError{Name: name, Status: statusNotTried, Err: err}
}

// firstKept is the first descriptor for what is only to be kept open: the ones below are those that scripts number themselves,
// that LISTEN_FDS counts from, and that an inner wrapper gives out.
const firstKept = 10

func fork(path string, c Command) (int, error) {
	for _, f := range c.Kept {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, firstKept) // which an exec does not close
		if err != nil {
			return 0, os.NewSyscallError("fcntl", err)
		}
		defer unix.Close(fd)
	}
	p, err := os.StartProcess(path, c.Argv, &os.ProcAttr{
		Env:   c.Env,
		Files: append([]*os.File{os.Stdin, os.Stdout, os.Stderr}, c.Files...),
		Sys:   dieWithParent(),
	})
	if err != nil {
		return 0, err
	}
	pid := p.Pid
	return pid, p.Release() // waiting is reap's
}

// reap waits for every child until there is none. When the command ends and leaves nothing behind, that is known before
// its end is told.
func (c *Child) reap() {
	options := unix.WUNTRACED
	ended := false
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no children
			close(c.none)
			if ended {
				close(c.exited)
			}
			return
		case pid == 0: // some are left, and run
			close(c.exited)
			ended, options = false, unix.WUNTRACED
		case pid != c.PID:
		case ws.Stopped():
			select {
			case c.stopped <- ws.StopSignal():
			default:
			}
		default:
			c.mu.Lock()
			c.status = ws
			c.mu.Unlock()
			ended, options = true, unix.WNOHANG
		}
	}
}

// Status is the child's exit status as a shell gives it: its own, or 128 + N after signal N, which is then returned too.
func (c *Child) Status() (status int, signal unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Signaled() {
		return 128 + int(c.status.Signal()), c.status.Signal()
	}
	return c.status.ExitStatus(), 0
}

// Signal sends a signal to the child, if it has not ended.
func (c *Child) Signal(s unix.Signal) {
	select {
	case <-c.exited:
	default:
		_ = unix.Kill(c.PID, s)
	}
}
