package testkit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Part is what a test binary does when it is started again as another process, under another user, limit or namespace.
// An error is printed and ends the process with status 1.
type Part func(args []string) error

// partEnv names the part to play.
const partEnv = "HOLDFAST_TEST_PART"

// partLimit is how long a part may take before the test fails.
const partLimit = 60 * time.Second

// A part's main goroutine stays on the main thread: some namespaces and the thread-group leader are that thread's.
func init() {
	if os.Getenv(partEnv) != "" {
		runtime.LockOSThread()
	}
}

// Main is the whole of a TestMain: it runs the tests, or in a process that Command made the part it names.
func Main(m *testing.M, parts map[string]Part) {
	name := os.Getenv(partEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	part, ok := parts[name]
	if !ok {
		panic("no part " + name)
	}
	if err := part(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command is this test binary, to play a part.
func Command(part string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	cmd.Env = append(os.Environ(), partEnv+"="+part, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return cmd
}

// Environment gives a part exactly these variables instead of the test's own.
func Environment(cmd *exec.Cmd, variables ...string) *exec.Cmd {
	part := cmd.Env[len(cmd.Env)-2:] // what Command added
	cmd.Env = append(slices.Clone(variables), part...)
	return cmd
}

// Become gives up root, for good: the process continues as that user and group, with no other groups than extra.
func Become(id int, extra ...int) error {
	if err := syscall.Setgroups(extra); err != nil {
		return err
	}
	if err := syscall.Setgid(id); err != nil {
		return err
	}
	return syscall.Setuid(id)
}

// Nobody is an ordinary user's number.
const Nobody = 65534

// Play runs a command to its end and returns its standard output. A status other than 0, or none within a minute, fails
// the test.
func Play(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(partLimit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	return out.String()
}

// Checks collects what a part found wrong, for it has no testing.T.
type Checks struct{ errs []error }

// That notes a finding unless ok.
func (c *Checks) That(ok bool, format string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// Err is all findings, nil when there is none.
func (c *Checks) Err() error { return errors.Join(c.errs...) }

// Running is a part that has come to its Ready and waits there.
type Running struct {
	Process *os.Process
	Line    string // what Ready said

	cmd   *exec.Cmd
	stdin io.Closer
	ended bool
}

// Ready says one line to the test that called Begin and waits until that test, or its process, ends.
func Ready(line string) {
	fmt.Println(line)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Begin starts a command and waits until it is ready. It is killed with the test at the latest.
func Begin(t testing.TB, cmd *exec.Cmd) *Running {
	t.Helper()
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &Running{Process: cmd.Process, cmd: cmd, stdin: stdin}
	t.Cleanup(r.Kill)
	timer := time.AfterFunc(partLimit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v ended before it was ready: %v", cmd, err)
	}
	r.Line = strings.TrimSuffix(line, "\n")
	return r
}

// End lets the part go on from Ready and waits for its end.
func (r *Running) End(t testing.TB) {
	t.Helper()
	r.stdin.Close()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the part with SIGKILL and waits for its end.
func (r *Running) Kill() {
	if !r.ended {
		_ = r.cmd.Process.Kill()
		_ = r.wait()
	}
}

func (r *Running) wait() error {
	timer := time.AfterFunc(partLimit, func() { r.cmd.Process.Kill() })
	defer timer.Stop()
	r.ended = true
	return r.cmd.Wait()
}

// Within runs f and fails the test when it has not come back after a generous while: a hang is a failure, not a long test.
func Within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		buf := make([]byte, 1<<16)
		t.Fatalf("still running after %s:\n%s", d, buf[:runtime.Stack(buf, true)])
	}
}
