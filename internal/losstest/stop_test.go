//go:build linux

package losstest

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scheduling is what the kernel may need on a busy machine to run a process that was continued, and what that does first.
const scheduling = 3 * time.Second

// stopWrapper stops the wrapper until a moment; the command goes on, for nobody is there to end it.
func (s *scene) stopWrapper(until func()) (continued time.Time) {
	s.Helper()
	s.signal(s.wrapper.Process.Pid, unix.SIGSTOP)
	until()
	continued = time.Now()
	s.signal(s.wrapper.Process.Pid, unix.SIGCONT)
	return continued
}

// TestStoppedPastTheExpiry (cases B14, B30): a wrapper that was stopped until its lease had expired, or somebody else had
// taken it over, ends the command at once when it is continued, with no grace, and leaves the lease as it is.
func TestStoppedPastTheExpiry(t *testing.T) {
	t.Parallel()
	for _, contended := range []bool{false, true} {
		t.Run("contended "+strconv.FormatBool(contended), func(t *testing.T) {
			s := newScene(t)
			s.run("stamp", "child", "deaf")
			var there string
			continued := s.stopWrapper(func() {
				if contended {
					s.contend().gets()
				}
				s.sleepUntil(1.1)
				there = lookedAt(s.lock)
			})
			if status := s.end(); status != statusLost {
				t.Errorf("the status is %d", status)
			}
			if left := s.mark.Processes(); len(left) > 0 {
				t.Errorf("%d processes are left", len(left))
			}
			s.lostInEvents([]string{"expired", "not-holder"})
			s.lostOnStderr([]string{"expired", "not-holder"})
			s.overBeforeLoosely("the wrapper was continued", continued, scheduling)
			if now := lookedAt(s.lock); now != there {
				t.Errorf("the lease was %s, is %s", there, now)
			}
			if e, told := s.event("terminating"); told {
				t.Errorf("the command was given time: %+v", e)
			}
			if jump, told := s.event("clock-jump"); !told || jump.GapMs < 2000 {
				t.Errorf("the gap was told as %+v", jump)
			}
		})
	}
}

// TestStoppedForAWhile (case B14): late is not lost. A wrapper that is continued while its lease is its own renews it.
func TestStoppedForAWhile(t *testing.T) {
	s := newScene(t)
	s.duration, s.grace = 8*time.Second, 1600*time.Millisecond
	s.run("sh", "-c", "stamp child & sleep 9; kill $!; wait; exit 7")
	other := s.contend()
	s.sleepUntil(0.3)
	s.stopWrapper(func() { s.sleepUntil(0.65) }) // it should have renewed at half
	s.unharmed(7)
	if _, told := s.event("renewed"); !told {
		t.Errorf("never renewed: %s", s.read(s.events))
	}
	other.wins() // after the release
}

// TestChildIsStoppedWhenTheLossComes: the wrapper stops with its child, so both are found stopped when the lease is long
// gone. The child is never continued then: it does not get to do one more thing.
func TestChildIsStoppedWhenTheLossComes(t *testing.T) {
	s := newScene(t)
	s.run("stamp", "child", "deaf")
	s.signal(s.child(), unix.SIGSTOP)
	s.await("stop of the wrapper", func() bool { return stateOf(s.wrapper.Process.Pid) == "T" })
	before := s.stamps()["child"].count
	s.contend().gets()
	s.signal(s.wrapper.Process.Pid, unix.SIGCONT)
	s.lost("expired", "not-holder")
	if after := s.stamps()["child"].count; after != before {
		t.Errorf("a stopped child has stamped %d times after the loss", after-before)
	}
}

// TestGrandchildIsStoppedWhenTheLossComes: what is stopped takes no signal but SIGKILL; it is ended like the rest.
func TestGrandchildIsStoppedWhenTheLossComes(t *testing.T) {
	s := newScene(t)
	s.run("sh", "-c", "stamp stopped & kill -STOP $!; exec stamp child")
	s.must(os.Remove(s.lock))
	s.lost("absent")
}

// stateOf is the state of a process as ps shows it.
func stateOf(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// gets waits until the contender has the lease, in scenes in which that is no time by which anything must be over.
func (c *contender) gets() {
	c.s.Helper()
	if err := <-c.done; err != nil {
		c.s.Fatalf("the contender did not get the lease: %v: %s", err, c.s.read(c.out))
	}
}
