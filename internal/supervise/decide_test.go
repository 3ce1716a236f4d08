package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestForward is the whole decision which signals to the wrapper are passed on, by where it is.
func TestForward(t *testing.T) {
	const all, none = "no terminal, background, foreground, hung up", ""
	names := map[place]string{noTerminal: "no terminal", background: "background", foreground: "foreground", hungUp: "hung up"}
	for sig, want := range map[unix.Signal]string{
		unix.SIGTERM:  all,
		unix.SIGUSR1:  all,
		unix.SIGUSR2:  all,
		unix.SIGINT:   "no terminal, background, hung up",
		unix.SIGQUIT:  "no terminal, background, hung up",
		unix.SIGHUP:   "no terminal, background",
		unix.SIGTSTP:  "no terminal, hung up",
		unix.SIGWINCH: none,
		unix.SIGCONT:  none,
		unix.SIGCHLD:  none,
		unix.SIGPIPE:  none,
		unix.SIGALRM:  none,
		unix.SIGTTIN:  none,
		unix.SIGTTOU:  none,
		unix.SIGURG:   none,
	} {
		got := ""
		for _, p := range []place{noTerminal, background, foreground, hungUp} {
			if forward(sig, p) {
				if got != "" {
					got += ", "
				}
				got += names[p]
			}
		}
		if got != want {
			t.Errorf("%s is passed on with %q, want %q", unix.SignalName(sig), got, want)
		}
	}
}

// TestOthersTellForAWhile: a SIGHUP long after the terminal has gone is somebody's to the wrapper.
func TestOthersTellForAWhile(t *testing.T) {
	leader, err := unix.Getsid(0) // which is told by the kernel alone
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[time.Duration]bool{-time.Hour: true, telling: false, time.Hour: false} {
		s := &Signals{gone: time.Now().Add(-since)}
		if got := s.othersTell(); got != (want && leader != os.Getpid()) {
			t.Errorf("after %s: %v", since, got)
		}
	}
}

// TestEnds: without a child, a signal ends the wrapper, unless it is about stopping and continuing.
func TestEnds(t *testing.T) {
	for sig, want := range map[unix.Signal]bool{
		unix.SIGTERM: true, unix.SIGINT: true, unix.SIGHUP: true, unix.SIGQUIT: true, unix.SIGUSR1: true, unix.SIGUSR2: true,
		unix.SIGTSTP: false, unix.SIGCONT: false, unix.SIGPIPE: false,
	} {
		if Ends(sig) != want {
			t.Errorf("%s ends a wrapper without a child: %v", unix.SignalName(sig), Ends(sig))
		}
	}
}

// TestBelow: descendants are found whatever their numbers, and nobody else is.
func TestBelow(t *testing.T) {
	for name, c := range map[string]struct {
		parents map[int]int
		want    []int
	}{
		"nothing":                          {map[int]int{}, nil},
		"root alone":                       {map[int]int{10: 1}, nil},
		"children and grandchildren":       {map[int]int{10: 1, 11: 10, 12: 11, 13: 10}, []int{11, 12, 13}},
		"numbers that have wrapped around": {map[int]int{10: 1, 400: 10, 3: 400, 2: 3, 5: 2}, []int{2, 3, 5, 400}},
		"strangers and the root's own":     {map[int]int{10: 4, 4: 1, 5: 4, 11: 5, 12: 10}, []int{12}},
		"a parent that is not listed":      {map[int]int{10: 1, 12: 11, 13: 12}, nil},
		"a circle, seen while it changed":  {map[int]int{10: 1, 20: 21, 21: 20, 11: 10}, []int{11}},
		"the root in a circle":             {map[int]int{10: 11, 11: 10}, []int{11}},
		"a long chain":                     chain(500),
	} {
		got := below(10, c.parents)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// chain is a chain of n processes below 10, each of them with a lower number than its parent.
func chain(n int) struct {
	parents map[int]int
	want    []int
} {
	parents, want, parent := map[int]int{}, []int{}, 10
	for i := range n {
		pid := 1000 + n - i
		parents[pid] = parent
		want = append(want, pid)
		parent = pid
	}
	slices.Sort(want)
	return struct {
		parents map[int]int
		want    []int
	}{parents, want}
}

// TestStatus: a status is the child's own, and 128 + N only after signal N; a dumped core makes no difference.
func TestStatus(t *testing.T) {
	const core = 0x80
	type answer struct {
		status int
		signal unix.Signal
	}
	want := map[unix.WaitStatus]answer{}
	for _, n := range []int{0, 1, 2, 64, 124, 125, 126, 127, 128, 130, 137, 143, 255} {
		want[unix.WaitStatus(n<<8)] = answer{status: n}
	}
	for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGKILL, unix.SIGSEGV, unix.SIGPIPE, unix.SIGTERM, 34, 64} {
		want[unix.WaitStatus(s)] = answer{128 + int(s), s}
		want[unix.WaitStatus(s|core)] = answer{128 + int(s), s}
	}
	for ws, want := range want {
		c := &Child{status: ws}
		if status, signal := c.Status(); (answer{status, signal}) != want {
			t.Errorf("wait status %#x: %d, %d, want %v", int(ws), status, int(signal), want)
		}
	}
}

// TestStartError: 127 says that there is no such program, 125 that the system had nothing to start one with, 126 every other
// reason why it cannot be executed.
func TestStartError(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{unix.ENOENT, 127, "command-not-found"},
		{&fs.PathError{Op: "fork/exec", Path: "x", Err: unix.ENOENT}, 127, "command-not-found"},
		{&exec.Error{Name: "x", Err: exec.ErrNotFound}, 127, "command-not-found"},
		{unix.EACCES, 126, "command-not-executable"},
		{&exec.Error{Name: "x", Err: fs.ErrPermission}, 126, "command-not-executable"},
		{unix.EISDIR, 126, "command-not-executable"},
		{unix.ENOEXEC, 126, "command-not-executable"},
		{unix.E2BIG, 126, "command-not-executable"},
		{unix.ETXTBSY, 126, "command-not-executable"},
		{&fs.PathError{Op: "fork/exec", Path: "x", Err: unix.EAGAIN}, 125, "io"},
		{unix.ENOMEM, 125, "io"},
		{unix.EMFILE, 125, "io"},
		{unix.ENFILE, 125, "io"},
	} {
		e := startError("x", "", fmt.Errorf("wrapped: %w", c.err))
		if e.Status != c.status || e.ErrorCode() != c.code {
			t.Errorf("%v: %d %s, want %d %s", c.err, e.Status, e.ErrorCode(), c.status, c.code)
		}
		if !errors.Is(e, c.err) {
			t.Errorf("%v is lost in %v", c.err, e)
		}
	}
}
