package fencetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	legacyLease = "legacy-lease-present"
	nativeLost  = "native-lease-lost"
)

// TestProperLockfile: the native lease between runs and programs that use npm's proper-lockfile, in both of its manners: the
// real path's name, and the name that was given.
func TestProperLockfile(t *testing.T) {
	modules := installLockfile(t)
	t.Run("shuts it out for as long as it runs", func(t *testing.T) { shutsOut(lockedScene(t, modules)) })
	t.Run("child", func(t *testing.T) {
		t.Run("ends by itself", func(t *testing.T) { childEnds(lockedScene(t, modules)) })
		t.Run("killed", func(t *testing.T) { childKilled(lockedScene(t, modules)) })
		t.Run("killed with its wrapper", func(t *testing.T) { childAndWrapperKilled(lockedScene(t, modules)) })
	})
	t.Run("killed, and taken over by the next run", func(t *testing.T) { takenOverByRun(lockedScene(t, modules)) })
	for _, realpath := range []bool{true, false} {
		for name, test := range map[string]func(s *scene, realpath bool){
			"held by node": heldByNode, "paused": pausedTooLong, "killed": takenOverByNode,
		} {
			t.Run(fmt.Sprintf("%s/realpath %v", name, realpath), func(t *testing.T) { test(lockedScene(t, modules), realpath) })
		}
	}
}

// heldByNode: while a node process has the lock nobody is admitted; afterwards everybody is.
func heldByNode(s *scene, realpath bool) {
	n := s.node("once", options{Realpath: realpath})
	n.holds(1)
	if a := s.refused(nil, legacyLease); !a.NativeLease && !strings.Contains(a.Reason, s.lockPath(realpath)) {
		s.Errorf("the reason is %q", a.Reason)
	}
	w := s.run(nil, []string{"--native-lease", "hold"}, "touch", s.file("ran"))
	if status := w.end(); status != statusRefused || exists(s.file("ran")) || w.refusal().Code != legacyLease {
		s.Errorf("status %d: %s", status, w.stderr())
	}
	if c := s.claim(); c != nil {
		s.Errorf("the claim is %+v", c)
	}
	n.end()
	s.heldToTheEnd()
}

// heldToTheEnd runs a command under a native lease, which is there while it runs, under both names, and gone afterwards.
func (s *scene) heldToTheEnd(flags ...string) {
	s.Helper()
	w := s.underRun(append([]string{"--native-lease", "hold"}, flags...)...)
	for _, realpath := range []bool{true, false} {
		if !exists(s.lockPath(realpath)) {
			s.Errorf("there is no %s", s.lockPath(realpath))
		}
	}
	s.touch("end")
	if c := w.ends(7, "closed", "closed"); c.Lease != "released" {
		s.Errorf("the lease was %s", c.Lease)
	}
	s.noLocks()
}

func (s *scene) noLocks() {
	s.Helper()
	for _, realpath := range []bool{true, false} {
		if exists(s.lockPath(realpath)) {
			s.Errorf("%s is left", s.lockPath(realpath))
		}
	}
}

// shutsOut: while a run holds the lease no program gets the lock, whatever it calls stale; afterwards they do.
func shutsOut(s *scene) {
	w := s.underRun("--native-lease", "hold")
	n := s.node("again",
		options{Stale: 2000}, options{Stale: 5000}, options{Stale: 10000}, options{},
		options{2000, true}, options{5000, true}, options{10000, true}, options{0, true})
	time.Sleep(13 * time.Second)
	if text := s.read(n.out); text != "" {
		s.Errorf("node said %s", text)
	}
	s.touch("end")
	w.ends(7, "closed", "closed")
	n.holds(2)
	if tries := n.end(); tries < 8 {
		s.Errorf("node has tried %d times", tries)
	}
}

// pausedTooLong: a wrapper that is stopped touches nothing, and node takes its lock for stale. When it goes on it finds that,
// and leaves node's lock alone.
func pausedTooLong(s *scene, realpath bool) {
	w := s.run(nil, []string{"--native-lease", "hold"}, "sleep", "1000")
	s.await("the command", s.isOpen)
	n := s.node("again", options{Stale: 2000, Realpath: realpath})
	w.signal(unix.SIGSTOP)
	n.holds(1)
	s.refused(nil, ownerLive)
	w.signal(unix.SIGCONT)
	if c := w.ends(statusLost, "close-failed", "unknown"); c.Lease != "failed" {
		s.Errorf("the lease was %s", c.Lease)
	}
	if a := w.refusal(); a.Code != nativeLost || s.running("sleep", "1000") != 0 {
		s.Errorf("%s: %s", a.Code, w.stderr())
	}
	if !exists(s.lockPath(realpath)) || exists(s.lockPath(!realpath)) {
		s.Errorf("node's is there: %v, the other one: %v", exists(s.lockPath(realpath)), exists(s.lockPath(!realpath)))
	}
	s.refused(nil, "lease-unattributed")
	time.Sleep(1500 * time.Millisecond) // node touches it
	n.end()
	s.noLocks()
	s.admitted(nil)
}

// killedRun leaves a native lease, and a claim that says whose it was.
func (s *scene) killedRun() {
	s.Helper()
	w := s.run(nil, []string{"--native-lease", "hold"}, "sleep", "1000")
	s.await("the command", s.isOpen)
	w.kill()
	s.eventually(nil, dead)
	for _, realpath := range []bool{true, false} {
		if !exists(s.lockPath(realpath)) {
			s.Errorf("%s is gone with the wrapper", s.lockPath(realpath))
		}
	}
}

// takenOverByNode: node takes the lock of a run that was killed when it is stale. A run that is admitted meanwhile sees node
// at work, puts the claim back, and leaves node alone.
func takenOverByNode(s *scene, realpath bool) {
	s.killedRun()
	n := s.node("again", options{Stale: 2000, Realpath: realpath})
	n.holds(1)
	before := s.claim()
	w := s.run(nil, []string{"--native-lease", "hold", "--native-stale", "5s"}, "touch", s.file("ran"))
	if status := w.end(); status != statusRefused || exists(s.file("ran")) || w.refusal().Code != legacyLease {
		s.Errorf("status %d: %s", status, w.stderr())
	}
	after := s.claim()
	after.Generation = before.Generation
	if fmt.Sprint(*after) != fmt.Sprint(*before) {
		s.Errorf("the claim was %+v, and was put back as %+v", before, after)
	}
	n.end()
	s.heldToTheEnd("--native-stale", "1s")
}

// takenOverByRun: the next run takes the lease that is the dead owner's when nobody has touched it for long enough.
func takenOverByRun(s *scene) {
	s.killedRun()
	began := time.Now()
	s.heldToTheEnd("--native-stale", "2s")
	if waited := time.Since(began); waited < 2*time.Second {
		s.Errorf("it was taken over after %s", waited)
	}
}

// marking is a command that takes the lock with node, as proper-lockfile's users do, and marks its own states.
func (s *scene) marking(then string) []string {
	s.Helper()
	return []string{"sh", "-c", `(until grep -q held "$OUT/child"; do sleep 0.02; done
fencectl mark leased --ticket "$FENCE_TICKET" && fencectl mark storage-attempt --ticket "$FENCE_TICKET" &&
fencectl mark storage-open --ticket "$FENCE_TICKET") >/dev/null 3>&- &
` + then, s.script(), s.dir, options{Stale: 2000, Realpath: true}.String()}
}

const (
	lockAgain = `node "$0" again "$1" "$2" >"$OUT/child"`
	// lockForGood has a standard input that never ends.
	lockForGood = `test -e "$OUT/never" || mkfifo "$OUT/never"; exec ` + lockAgain + ` <>"$OUT/never"`
)

// childEnds: the command that has marked its own end has had the last word.
func childEnds(s *scene) {
	const then = `{ until test -e "$OUT/end"; do sleep 0.02; done; } | ` + lockAgain + `
fencectl mark closed --ticket "$FENCE_TICKET" >/dev/null; exit 5`
	w := s.run(nil, []string{"--native-lease", "child"}, s.marking(then)...)
	s.await("the command", s.isOpen)
	s.refused(nil, ownerLive)
	s.touch("end")
	if c := w.ends(5, "closed", "closed"); c.Lease != "released" {
		s.Errorf("the lease was %s", c.Lease)
	}
	s.noLocks()
}

// childKilled: the command is killed with the lock. The wrapper does not know what became of that; the lock is still the dead
// owner's, and the next run takes it over.
func childKilled(s *scene) {
	w := s.run(nil, []string{"--native-lease", "child"}, s.marking(lockForGood)...)
	s.await("the command", s.isOpen)
	s.killNode()
	if c := w.ends(128+int(unix.SIGKILL), "close-failed", "unknown"); c.Lease != "unknown" || !exists(s.lockPath(true)) {
		s.Errorf("the lease was %s", c.Lease)
	}
	s.heldToTheEnd("--native-stale", "2s")
}

// killNode kills the node process of the scene.
func (s *scene) killNode() {
	s.Helper()
	for _, pid := range s.id.Processes() {
		if strings.HasPrefix(s.read(fmt.Sprintf("/proc/%d/cmdline", pid)), "node\x00") {
			s.must(unix.Kill(pid, unix.SIGKILL))
			return
		}
	}
	s.Fatal("there is no node")
}

// childAndWrapperKilled: the claim still says held, so that the lock that is left is the dead owner's. The next command takes
// it when it is stale, by its own rule.
func childAndWrapperKilled(s *scene) {
	w := s.run(nil, []string{"--native-lease", "child"}, s.marking(lockForGood)...)
	s.await("the command", s.isOpen)
	w.kill()
	s.eventually(nil, dead)
	if c := s.claim(); c.State != "storage-open" || c.Lease != "held" || !exists(s.lockPath(true)) {
		s.Errorf("the claim is %+v", c)
	}
	s.must(os.Remove(s.file("child")))
	w = s.run(nil, []string{"--native-lease", "child"}, s.marking(lockForGood)...)
	s.await("the next command", func() bool { return s.isOpen() && s.claim().Owner.PID == w.cmd.Process.Pid })
	s.refused(nil, ownerLive)
	w.kill()
}
