package fencetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// wrapper is a fencectl run in the background.
type wrapper struct {
	s     *scene
	cmd   *exec.Cmd
	name  string
	ended chan struct{}
}

// run starts a command under fencectl run.
func (s *scene) run(from side, flags []string, command ...string) *wrapper {
	s.Helper()
	argv := append(append([]string{"fencectl", "run", "--dir", s.dir}, flags...), "--")
	w := &wrapper{s: s, cmd: s.command(from.words(append(argv, command...)...)...), ended: make(chan struct{})}
	w.name = s.file(fmt.Sprint("run", time.Now().UnixNano()))
	out, err := os.Create(w.name + ".out")
	s.must(err)
	defer out.Close()
	errs, err := os.Create(w.name + ".err")
	s.must(err)
	defer errs.Close()
	w.cmd.Stdout, w.cmd.Stderr = out, errs
	s.must(w.cmd.Start())
	go func() {
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	s.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.ended
	})
	return w
}

func (w *wrapper) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// end waits for the wrapper's end and returns its status.
func (w *wrapper) end() int {
	w.s.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		w.s.Fatalf("fencectl still runs; standard error:\n%s", w.stderr())
	}
	return testkit.StatusOf(w.cmd.ProcessState)
}

func (w *wrapper) stderr() string { return w.s.read(w.name + ".err") }
func (w *wrapper) stdout() string { return w.s.read(w.name + ".out") }

// refusal is the object on the standard error of a run that has ended.
func (w *wrapper) refusal() answer {
	w.s.Helper()
	return w.s.answered(w.cmd, "", w.stderr())
}

// signal sends a signal to a wrapper that was started in the test's own pid namespace.
func (w *wrapper) signal(sig unix.Signal) {
	w.s.Helper()
	w.s.must(unix.Kill(w.cmd.Process.Pid, sig))
}

// kill ends the wrapper, and waits for its end.
func (w *wrapper) kill() {
	w.s.Helper()
	w.signal(unix.SIGKILL)
	w.end()
}

// isStopped reports whether the wrapper is stopped now, every thread of it.
func (w *wrapper) isStopped() bool {
	w.s.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", w.cmd.Process.Pid))
	w.s.must(err)
	for _, path := range threads {
		if !strings.Contains(w.s.read(path), ") T ") {
			return false
		}
	}
	return len(threads) > 0
}
