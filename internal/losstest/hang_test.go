//go:build linux

package losstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit/hangfs"
)

// hangingScene is a scene whose run sees the state on a filesystem that can hang. Others see what is behind it.
func hangingScene(t *testing.T) (*scene, *hangfs.FS) {
	t.Helper()
	s := newScene(t)
	disk := hangfs.Mount(t, s.dir)
	s.seenAs = filepath.Join(disk.Dir, filepath.Base(s.lock))
	return s, disk
}

// eventsOnIt puts the events file on the disk as well.
func (s *scene) eventsOnIt(disk *hangfs.FS) {
	s.events, s.eventsAs = filepath.Join(s.dir, "events"), filepath.Join(disk.Dir, "events")
}

// overButForTheWrapper waits until nothing runs but the wrapper, which the kernel keeps as long as its threads wait for the
// disk, and it has said why.
func (s *scene) overButForTheWrapper() {
	s.Helper()
	s.await("end of the command", func() bool {
		pids := s.mark.Processes()
		return len(pids) == 0 || len(pids) == 1 && pids[0] == s.wrapper.Process.Pid
	})
	s.await("last word", func() bool { return strings.Contains(s.stderr(), "status 124") })
	s.overBefore("the lease's end", s.sight.expiry())
}

func (s *scene) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// TestDiskHangs: the disk stops answering. The command, which ignores SIGTERM, is over before the lease is, and somebody
// who does not need that disk gets it then.
func TestDiskHangs(t *testing.T) {
	t.Parallel()
	for _, killable := range []bool{true, false} {
		t.Run(fmt.Sprintf("killable %v", killable), func(t *testing.T) {
			s, disk := hangingScene(t)
			if !killable {
				s.seenAs = filepath.Join(disk.Over().Dir, filepath.Base(s.lock))
			}
			s.run("stamp", "child", "deaf")
			other := s.contend()
			s.sleepUntil(0.2)
			disk.Hang()
			s.overButForTheWrapper()
			other.wins()
			if !killable && s.hasEnded() {
				t.Error("the wrapper could be killed")
			}
			disk.Answer()
			s.lost("renewal-overdue")
		})
	}
}

// TestCommandCannotBeEnded: a part of the command waits for a disk that does not answer, and cannot be killed. That is
// said, after everything else was ended, and the run ends without it.
func TestCommandCannotBeEnded(t *testing.T) {
	s := newScene(t)
	disk := hangfs.Mount(t, t.TempDir())
	s.must(os.WriteFile(filepath.Join(disk.Backing, "file"), nil, 0o644))
	file := filepath.Join(disk.Over().Dir, "file")
	s.run("sh", "-c", `stamp child deaf & while cat "$0"; do echo >>"$LOSS_STAMPS.read"; sleep 0.01; done`, file)
	s.await("a look at the disk", func() bool { return lookedAt(s.stampFile+".read") != "nothing" })
	disk.Hang()
	time.Sleep(300 * time.Millisecond)
	s.must(os.Remove(s.lock))
	if status := s.end(); status != statusLost {
		t.Errorf("the status is %d", status)
	}
	s.says("1 of the command's processes could not be ended")
	s.overBefore("the lease's end", s.sight.expiry())
	if e, told := s.event("descendants-left"); !told || e.Processes != 1 {
		t.Errorf("what is left was told as %+v", e)
	}
	if left := s.mark.Processes(); len(left) != 1 {
		t.Errorf("%d processes are left", len(left))
	}
	disk.Answer()
	s.await("end of the rest", func() bool { return len(s.mark.Processes()) == 0 })
}

// TestDiskHangsWithTheEventsOnIt: the events file is beside the lease. What cannot be written down is done all the same.
func TestDiskHangsWithTheEventsOnIt(t *testing.T) {
	s, disk := hangingScene(t)
	s.eventsOnIt(disk)
	s.run("stamp", "child", "deaf")
	other := s.contend()
	s.sleepUntil(0.2)
	disk.Hang()
	s.overButForTheWrapper()
	other.wins()
	disk.Answer()
	if status := s.end(); status != statusLost {
		t.Errorf("the status is %d", status)
	}
	s.lostOnStderr([]string{"renewal-overdue"})
}

// TestDiskHangsAndTheWrapperWasStopped: a wrapper that was stopped and continued looks at its lease before it continues the
// child, and that look does not come back.
func TestDiskHangsAndTheWrapperWasStopped(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"the events elsewhere", "the events on it"} {
		t.Run(where, func(t *testing.T) {
			s, disk := hangingScene(t)
			s.duration, s.grace = 6*time.Second, 1500*time.Millisecond
			if where == "the events on it" {
				s.eventsOnIt(disk)
			}
			s.run("stamp", "child", "deaf")
			other := s.contend()
			disk.Hang()
			s.signal(s.wrapper.Process.Pid, unix.SIGSTOP)
			s.sleepUntil(0.6) // long enough for a jump of the clocks to be told as well
			s.signal(s.wrapper.Process.Pid, unix.SIGCONT)
			s.overButForTheWrapper()
			other.wins()
			disk.Answer()
			if status := s.end(); status != statusLost {
				t.Errorf("the status is %d", status)
			}
			s.lostOnStderr([]string{"renewal-overdue"})
		})
	}
}

// TestDiskHangsForAWhile (case B32): a disk that answers again in time costs nothing.
func TestDiskHangsForAWhile(t *testing.T) {
	s, disk := hangingScene(t)
	s.duration, s.grace = 6*time.Second, 1500*time.Millisecond
	s.run("sh", "-c", "stamp child & sleep 7; kill $!; wait; exit 7")
	s.sleepUntil(0.45)
	disk.Hang()
	s.sleepUntil(0.6)
	disk.Answer()
	s.unharmed(7)
	if _, told := s.event("renewed"); !told {
		t.Errorf("never renewed: %s", s.read(s.events))
	}
}

// TestDiskFails: the disk is gone, and every access fails at once.
func TestDiskFails(t *testing.T) {
	s, disk := hangingScene(t)
	s.run("stamp", "child", "deaf")
	other := s.contend()
	s.sleepUntil(0.2)
	disk.Kill()
	s.lost("renewal-overdue")
	s.says("ENOTCONN")
	other.wins()
}

// TestCommandEndsWhileTheDiskHangs: the lease cannot be released, so it is left to expire, and the status is the command's.
func TestCommandEndsWhileTheDiskHangs(t *testing.T) {
	s, disk := hangingScene(t)
	s.grace = shortGrace
	s.run("sh", "-c", "stamp child & sleep 2; kill $!; wait; exit 7")
	disk.Hang()
	s.await("warning", func() bool { return strings.Contains(s.stderr(), "the lease was not released") })
	if late := time.Since(s.sight.expiry()); late > patience/2 {
		t.Errorf("said %s after the lease's end", late)
	}
	disk.Answer()
	if status := s.end(); status != 7 {
		t.Errorf("the status is %d, want the command's 7; standard error:\n%s", status, s.stderr())
	}
}
