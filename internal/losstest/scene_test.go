//go:build linux

package losstest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// patience is how long anything may take that is not bounded by a lease: the machine may be busy.
const patience = 30 * time.Second

// scene is a lease, a leasectl run that holds it, and who watches both. The state is in a directory of its own; what is
// watched is written elsewhere, so that whatever happens to the state's filesystem spoils no evidence.
type scene struct {
	*testing.T
	dir       string // the state, where the test and other holders see it
	lock      string // the lease file there
	seenAs    string // the same file as the run is told it
	evidence  string
	stampFile string
	events    string // the run's events file, where the test sees it
	eventsAs  string // the same file as the run is told it
	duration  time.Duration
	grace     time.Duration
	mark      testkit.Mark // in the environment of everything the run starts

	wrapper *exec.Cmd
	ended   chan struct{} // the wrapper has
	endedAt time.Time
	sight   *sight
}

// The usual lease lasts this long. Its grace is so long that on a busy machine its last quarter, in which
// everything has been sent SIGKILL, is long enough, and still some renewals can fail before it begins.
const (
	usualDuration = 6 * time.Second
	usualGrace    = 2400 * time.Millisecond
	shortGrace    = time.Second // for runs that are to survive a renewal on a busy machine
)

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := &scene{
		T: t, dir: filepath.Join(t.TempDir(), "state"), evidence: t.TempDir(), mark: testkit.NewMark(t),
		duration: usualDuration, grace: usualGrace,
	}
	s.must(os.Mkdir(s.dir, 0o755))
	s.lock = filepath.Join(s.dir, "a.lock")
	s.seenAs = s.lock
	s.stampFile = filepath.Join(s.evidence, "stamps")
	s.events = filepath.Join(s.evidence, "events")
	s.eventsAs = s.events
	t.Cleanup(s.clear)
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run starts the command under leasectl run, and returns when the lease is there and the command's first stamp.
func (s *scene) run(command ...string) { s.Helper(); s.runUnder(nil, command...) }

// runUnder is run with another program before leasectl, which executes it.
func (s *scene) runUnder(prefix []string, command ...string) {
	s.Helper()
	s.start(prefix, command...)
	s.await("the first stamp", func() bool { return len(s.stamps()) > 0 })
}

// start is run that waits for nothing.
func (s *scene) start(prefix []string, command ...string) {
	s.Helper()
	args := append([]string{"leasectl", "run", "--lock", s.seenAs, "--duration", s.duration.String(),
		"--grace", s.grace.String(), "--events", s.eventsAs, "--"}, command...)
	args = append(prefix, args...)
	s.sight = watch(s)
	s.wrapper = exec.Command(args[0], args[1:]...)
	s.wrapper.Env = append(os.Environ(), string(s.mark), stampsEnv+"="+s.stampFile)
	s.wrapper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	errs, err := os.Create(filepath.Join(s.evidence, "stderr"))
	s.must(err)
	s.wrapper.Stderr = errs
	// The parent-death signal comes with the end of the thread that started the wrapper, and some tests end threads. This one
	// is the test's own from now on, and ends with it.
	runtime.LockOSThread()
	s.must(s.wrapper.Start())
	s.must(errs.Close())
	s.ended = make(chan struct{})
	go func() {
		_ = s.wrapper.Wait()
		s.endedAt = time.Now()
		close(s.ended)
	}()
}

// await polls until a condition holds.
func (s *scene) await(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("no %s after %s; standard error:\n%s\nevents:\n%s", what, patience, s.stderr(), s.read(s.events))
		}
	}
}

// end waits for the wrapper's end and returns its status; 128 + N after signal N.
func (s *scene) end() int {
	s.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.Fatalf("leasectl still runs; standard error:\n%s\nevents:\n%s", s.stderr(), s.read(s.events))
	}
	s.sight.close()
	ws := s.wrapper.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func (s *scene) stderr() string { return s.read(filepath.Join(s.evidence, "stderr")) }

func (s *scene) read(path string) string {
	s.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return string(b)
}

// clear ends whatever a failed test has left.
func (s *scene) clear() {
	if s.ended == nil {
		return
	}
	_ = s.wrapper.Process.Kill()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.Error("leasectl cannot be ended")
	}
	s.sight.close()
}

// noted is a line of an events file.
type noted struct {
	Event     string
	At        time.Time
	Code      string
	Reason    string
	PID       int
	Status    *int
	Processes int
	GapMs     int64
	LeftMs    int64
	Lease     struct{ HolderID, ExpiresAt string }
}

// eventsIn are the events of a run so far.
func (s *scene) eventsIn(path string) (all []noted) {
	s.Helper()
	for line := range strings.Lines(s.read(path)) {
		var e noted
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.Fatalf("an event %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// event is the first event of a name, and whether there is one.
func (s *scene) event(name string) (noted, bool) {
	s.Helper()
	for _, e := range s.eventsIn(s.events) {
		if e.Event == name {
			return e, true
		}
	}
	return noted{}, false
}

// child is the command's pid.
func (s *scene) child() int {
	s.Helper()
	var started noted
	s.await("child-started event", func() (ok bool) {
		started, ok = s.event("child-started")
		return ok
	})
	return started.PID
}

func (s *scene) signal(pid int, sig syscall.Signal) { s.Helper(); s.must(unix.Kill(pid, sig)) }

// sleepUntil lets a part of the lease's duration pass, counted from the acquire that the file showed first.
func (s *scene) sleepUntil(part float64) {
	s.Helper()
	time.Sleep(time.Until(s.sight.acquired().Add(time.Duration(part * float64(s.duration)))))
}
