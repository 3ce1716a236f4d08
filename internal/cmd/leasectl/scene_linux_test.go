package leasectl_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// lockFile is where the lease is, from a scene's directory.
const lockFile = "state/orchestrator.lock"

// scene is a fleet of its own, in which a wrapper runs the counting child.
type scene struct {
	t    *testing.T
	dir  string
	mark testkit.Mark
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, dir: t.TempDir(), mark: testkit.NewMark(t)}
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

// command is a command in the scene's directory, in a session without a terminal.
func (s *scene) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), string(s.mark))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// read is a file's content, nothing when there is none.
func (s *scene) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *scene) write(name, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(content), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// counted is what the counting child has counted.
func (s *scene) counted() []string {
	lines := strings.Fields(s.read("log"))
	return lines[min(2, len(lines)):]
}

// ready waits for the counting child and returns its pid and its wrapper's.
func (s *scene) ready() (child, wrapper int) {
	s.t.Helper()
	testkit.Eventually(s.t, "the child runs", func() bool { return strings.HasSuffix(s.read("log"), "\n") })
	child, err := strconv.Atoi(strings.Fields(s.read("log"))[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return child, parent(s.t, child)
}

// settle is how long something that must not happen is waited for.
const settle = 200 * time.Millisecond

// expectCounted waits until the child has counted these signals and then a while, in which no other may come.
func (s *scene) expectCounted(want ...string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the child has counted "+strings.Join(want, " "), func() bool { return len(s.counted()) >= len(want) })
	time.Sleep(settle)
	if got := s.counted(); !slices.Equal(got, want) {
		s.t.Errorf("the child counted %q, want %q", got, want)
	}
}

// endChild makes the counting child end with status 7.
func (s *scene) endChild() { s.write("log.end", "") }

// expectReleased checks that the lease was given back, and that nothing of the scene still runs.
func (s *scene) expectReleased() {
	s.t.Helper()
	if s.read(lockFile) != "" {
		s.t.Error("the lease was not released")
	}
	if !strings.Contains(s.read(lockFile+".journal"), `"op":"released"`) {
		s.t.Error("the journal has no release")
	}
}

// exitStatus waits for a command and gives its status as a shell does.
func exitStatus(t testing.TB, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%v has not ended", cmd)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// state is a process's letter in /proc, as ps shows it; empty when there is no such process.
func state(pid int) string {
	if fields := stat(pid); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

func parent(t testing.TB, pid int) int {
	t.Helper()
	fields := stat(pid)
	if len(fields) < 2 {
		t.Fatalf("process %d is gone", pid)
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// stat is /proc/PID/stat from the state on.
func stat(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

func stopped(pid int) bool { return state(pid) == "T" }

func send(t testing.TB, pid int, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(unix.SignalName(sig), ": ", err)
	}
}
