package leasectl_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// runEvent is a line of an events file.
type runEvent struct {
	Event, Code, Reason, Signal string
	PID, Status, Processes      int
}

func (s *scene) events() (events []runEvent) {
	s.t.Helper()
	dec := json.NewDecoder(strings.NewReader(s.read("events.jsonl")))
	for dec.More() {
		var e runEvent
		if err := dec.Decode(&e); err != nil {
			s.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// event is the first event of that name.
func (s *scene) event(name string) (runEvent, bool) {
	s.t.Helper()
	events := s.events()
	i := slices.IndexFunc(events, func(e runEvent) bool { return e.Event == name })
	if i < 0 {
		return runEvent{}, false
	}
	return events[i], true
}

// expectLost checks a run that has ended because it lost its lease for one of these reasons.
func (s *scene) expectLost(status int, errs string, codes ...string) {
	s.t.Helper()
	if status != 124 {
		s.t.Errorf("status %d, want 124", status)
	}
	if lost, _ := s.event("lost"); !slices.Contains(codes, lost.Code) || lost.Reason == "" {
		s.t.Errorf("the event is %+v, want one of the codes %q", lost, codes)
	}
	if _, ok := s.event("child-exited"); !ok {
		s.t.Error("no event tells of the child's end")
	}
	if _, ok := s.event("released"); ok {
		s.t.Error("a lease that was lost has been released")
	}
	if last := lastLine(errs); !strings.HasPrefix(last, "leasectl: the lease was lost: ") || !strings.HasSuffix(last, "status 124 is leasectl's own") {
		s.t.Errorf("the last line on standard error is %q", last)
	}
	if left := s.mark.Processes(); len(left) > 0 {
		s.t.Errorf("%d processes are left", len(left))
	}
}

// replaceLease puts another holder's lease in place, as a takeover does.
func (s *scene) replaceLease() {
	s.t.Helper()
	s.write("other", heldLease)
	if err := os.Rename(s.path("other"), s.path(lockFile)); err != nil {
		s.t.Fatal(err)
	}
}

// start starts a command whose standard error goes to the file "errors".
func (s *scene) start(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(name, args...)
	errs, err := os.Create(s.path("errors"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer errs.Close()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// startCounting starts a wrapper around the counting child.
func (s *scene) startCounting(flags ...string) (cmd *exec.Cmd, child int) {
	s.t.Helper()
	args := slices.Concat([]string{"run", "--events", "events.jsonl"}, flags, []string{"--", "count-signals", "log"})
	cmd = s.start("leasectl", args...)
	child, _ = s.ready()
	return cmd, child
}

// TestStoppedChildStopsTheWrapper: a wrapper does as its child does; continued, it continues the child, once.
func TestStoppedChildStopsTheWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd, child := s.startCounting()
	for range 3 {
		before := len(s.counted())
		send(t, child, unix.SIGSTOP)
		testkit.Eventually(t, "the wrapper stops", func() bool { return stopped(cmd.Process.Pid) })
		if !stopped(child) {
			t.Fatal("the child is not stopped")
		}
		send(t, cmd.Process.Pid, unix.SIGCONT)
		testkit.Eventually(t, "the child knows that it goes on", func() bool { return len(s.counted()) > before })
	}
	s.expectCounted("SIGCONT", "SIGCONT", "SIGCONT")
	s.endChild()
	if got := exitStatus(t, cmd); got != 7 {
		t.Errorf("status %d, want the child's, 7", got)
	}
	s.expectReleased()
}

// TestStopSentToTheWrapper: without a terminal there is no Ctrl-Z, so a SIGTSTP to the wrapper alone is passed on, and it stops
// with its child.
func TestStopSentToTheWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	// In a group whose parent is in another group of the session: elsewhere SIGTSTP does not stop.
	cmd := s.start("bash", "-c", "set -m; "+countingRun+" & wait -f $!")
	child, wrapper := s.ready()
	send(t, wrapper, unix.SIGTSTP)
	testkit.Eventually(t, "both stop", func() bool { return stopped(child) && stopped(wrapper) })
	send(t, wrapper, unix.SIGCONT)
	s.expectCounted("SIGCONT")
	s.endChild()
	if got := exitStatus(t, cmd); got != 7 {
		t.Errorf("status %d, want the child's, 7", got)
	}
	s.expectReleased()
}

// TestContinuedWrapperVerifiesFirst: when the lease has gone to another holder meanwhile, the child is ended before it is
// continued, and the other lease is left as it is.
func TestContinuedWrapperVerifiesFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd, child := s.startCounting("--grace", "400ms")
	send(t, child, unix.SIGSTOP)
	testkit.Eventually(t, "the wrapper stops", func() bool { return stopped(cmd.Process.Pid) })
	s.replaceLease()
	send(t, cmd.Process.Pid, unix.SIGCONT)
	status := exitStatus(t, cmd)
	s.expectLost(status, s.read("errors"), "not-holder")
	// To end a stopped process it is continued with each SIGTERM. One SIGCONT more would be one before the look at the lease.
	if terms, conts := s.times("SIGTERM"), s.times("SIGCONT"); terms == 0 || conts > terms {
		t.Errorf("the child counted %q", s.counted())
	}
	if s.read(lockFile) != heldLease {
		t.Error("the other holder's lease was changed")
	}
}

// times is how often the child has counted a signal.
func (s *scene) times(name string) (n int) {
	for _, counted := range s.counted() {
		if counted == name {
			n++
		}
	}
	return n
}

// TestStoppedWrapperLosesToATakeover is case B30: a wrapper that was stopped while its lease ended and was taken over ends its
// child as soon as it is continued.
func TestStoppedWrapperLosesToATakeover(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd, child := s.startCounting("--duration", "1s")
	send(t, cmd.Process.Pid, unix.SIGSTOP)
	s.must("leasectl", "wait", "--for", "expired", "--timeout", "30s")
	s.must("leasectl", "acquire", "--take-over", "--duration", "1h")
	after := s.read(lockFile)
	if stopped(child) {
		t.Error("the child was stopped too")
	}
	send(t, cmd.Process.Pid, unix.SIGCONT)
	status := exitStatus(t, cmd)
	s.expectLost(status, s.read("errors"), "expired", "not-holder")
	if s.read(lockFile) != after {
		t.Error("the other holder's lease was changed")
	}
}

// must runs a command that carries no mark, and fails the test when the command fails.
func (s *scene) must(name string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// TestKilledWrapper: the child dies with a wrapper that is killed by SIGKILL; the lease expires by itself, and is taken over
// only by who asks for that.
func TestKilledWrapper(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd, child := s.startCounting("--duration", "4s")
	lock := s.read(lockFile)
	send(t, cmd.Process.Pid, unix.SIGKILL)
	if got := exitStatus(t, cmd); got != 137 {
		t.Errorf("status %d, want 137", got)
	}
	testkit.Eventually(t, "the child is gone", func() bool { return state(child) == "" || state(child) == "Z" })
	if left := s.mark.Processes(); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
	if len(s.counted()) > 0 {
		t.Errorf("the child was sent %q", s.counted())
	}
	if s.read(lockFile) != lock {
		t.Error("the lease was changed")
	}
	s.must("leasectl", "wait", "--for", "expired", "--timeout", "30s")
	again := s.start("leasectl", "run", "-E", "33", "--", "true")
	if got := exitStatus(t, again); got != 33 {
		t.Errorf("status %d of a run that must not take over, want 33", got)
	}
	again = s.start("leasectl", "run", "--take-over", "--", "true")
	if got := exitStatus(t, again); got != 0 {
		t.Errorf("status %d of a run that may take over", got)
	}
	s.expectReleased()
}

// TestClosedStandardError: a wrapper that has something to say and nobody to say it to goes on all the same.
func TestClosedStandardError(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("leasectl", "run", "--events", "events.jsonl", "--", "count-signals", "log")
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	read.Close()
	s.ready()
	s.replaceLease()
	status := exitStatus(t, cmd)
	s.expectLost(status, "leasectl: the lease was lost: unheard; status 124 is leasectl's own", "not-holder")
}

// TestLossIsOverBeforeTheLeaseEnds is case B31: the holder can no longer renew, and its command has forked and ignores SIGTERM.
// When a contender gets the lease, nothing of the command is left.
func TestLossIsOverBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	testkit.NeedRoot(t)
	for _, tool := range []string{"unshare", "nsenter", "mount"} {
		testkit.NeedTool(t, tool)
	}
	s := newScene(t)
	s.write("state/keep", "")
	s.write("work.sh", `trap '' TERM; setsid -f sleep 300; sleep 300 & echo >started; while :; do sleep 0.1; done`)
	cmd := s.start("unshare", "--mount", "sh", "-c", "mount --bind state state && exec leasectl run --duration 8s --grace 3s --events events.jsonl -- sh work.sh")
	testkit.Eventually(t, "the command works", func() bool { return s.read("started") != "" })
	s.must("nsenter", "--target", itoa(cmd.Process.Pid), "--mount", "mount", "-o", "remount,ro,bind", s.path("state"))
	s.must("leasectl", "acquire", "--take-over", "--wait", "1m")
	left := slices.DeleteFunc(s.mark.Processes(), func(pid int) bool { return pid == cmd.Process.Pid })
	if len(left) > 0 {
		t.Errorf("the contender has the lease, and %d processes are left", len(left))
	}
	status := exitStatus(t, cmd)
	s.expectLost(status, s.read("errors"), "renewal-overdue")
	if failed, _ := s.event("renew-failed"); failed.Code != "io" || !strings.Contains(failed.Reason, "EROFS") {
		t.Errorf("the event is %+v", failed)
	}
	names := []string{}
	for _, e := range s.events() {
		if e.Event != "renew-failed" {
			names = append(names, e.Event)
		}
	}
	if want := []string{"acquired", "child-started", "lost", "terminating", "terminating", "killing", "child-exited"}; !slices.Equal(names, want) {
		t.Errorf("events %q, want %q", names, want)
	}
}

// TestLossEndsWhatTheChildLeft is the end of case B38: daemons count as the command's when the lease is lost.
func TestLossEndsWhatTheChildLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd := s.start("leasectl", "run", "--duration", "4s", "--events", "events.jsonl", "--",
		"sh", "-c", "setsid sleep 300 & setsid -f setsid -f sleep 300; echo >started; exec sleep 300")
	testkit.Eventually(t, "the command works", func() bool { return s.read("started") != "" && len(s.mark.Processes()) == 4 })
	started := time.Now()
	s.replaceLease()
	status := exitStatus(t, cmd)
	s.expectLost(status, s.read("errors"), "not-holder")
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s to notice and end", took)
	}
	if s.read(lockFile) != heldLease {
		t.Error("the other holder's lease was changed")
	}
}
