package fencetest

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

const generationMismatch = "generation-mismatch"

// pausable starts an owner there that has marked leased, and marks that storage is open when it is told to go on. It returns its
// pid as the claim has it.
func (s *scene) pausable(from side) *testkit.Running {
	s.Helper()
	const script = `fencectl admit --dir "$D" --owner-pid $$ --ticket "$OUT/owner.ticket" --format json >"$OUT/admitted" &&
fencectl mark leased --lease never-held --ticket "$OUT/owner.ticket" >/dev/null && echo ready || exit
until test -e "$OUT/go"; do sleep 0.02; done
for step in storage-attempt storage-open closed close-failed; do
	fencectl mark $step --ticket "$OUT/owner.ticket" --format json >>"$OUT/marks" 2>>"$OUT/marks.err"
	echo $? >>"$OUT/statuses"
done
touch "$OUT/done"; exec cat`
	return testkit.Begin(s.T, s.command(from.words("sh", "-c", script)...))
}

// goesOn lets the paused owner go on and fails unless each of its steps is refused and changes nothing.
func (s *scene) goesOn() {
	s.Helper()
	before, ticket := s.listing(), s.read(s.file("owner.ticket"))
	s.touch("go")
	s.await("the paused owner's steps", func() bool { return exists(s.file("done")) })
	if got := strings.Fields(s.read(s.file("statuses"))); strings.Join(got, " ") != "1 1 1 1" {
		s.Errorf("the statuses are %v", got)
	}
	if n := strings.Count(s.read(s.file("marks")), `"code":"`+generationMismatch+`"`); n != 4 {
		s.Errorf("%d of 4 steps were %s:\n%s", n, generationMismatch, s.read(s.file("marks")))
	}
	s.same("the paused owner's steps", before)
	if now := s.read(s.file("owner.ticket")); now != ticket {
		s.Errorf("the ticket became %s", now)
	}
}

// TestPausedOwnerAfterABreak: an owner in another pid namespace is stopped; from a sibling, where it cannot be seen, an
// operator vouches that it is gone; somebody else is admitted. When it goes on, it learns that at its next step.
func TestPausedOwnerAfterABreak(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	first, second := s.world(""), s.world("")
	s.pausable(first.inside())
	pid := s.claim().Owner.PID
	first.kill(pid, unix.SIGSTOP)
	a := s.refused(second.inside(), ownerUncertain)
	words := []string{"break", "--dir", s.dir, "--generation", a.Claim.Generation, "--reason", "a test"}
	if a := s.ask(second.inside(), words...); a.Code != ownerUncertain {
		t.Errorf("a break without a word for it: %s", a.Code)
	}
	if a := s.ask(nil, append(words, "--owner-is-gone")...); a.Code != ownerLive {
		t.Errorf("a break from where the owner can be seen: %s", a.Code)
	}
	if a := s.ask(second.inside(), append(words, "--owner-is-gone")...); a.Code != "broken" {
		t.Fatalf("the break: %s: %s", a.Code, a.Reason)
	}
	s.admitted(second.inside())
	first.kill(pid, unix.SIGCONT)
	s.goesOn()
}

// TestPausedOwnerAfterAReclaim: the claim says another start, so that the pid looks reused; the owner is taken over.
func TestPausedOwnerAfterAReclaim(t *testing.T) {
	s := newScene(t)
	owner := s.pausable(nil)
	s.must(unix.Kill(owner.Process.Pid, unix.SIGSTOP))
	s.plantOtherStart()
	s.verdict(nil, dead)
	s.admitted(nil)
	s.must(unix.Kill(owner.Process.Pid, unix.SIGCONT))
	s.goesOn()
}

// plantOtherStart makes the claim's start key that of a process which started at another time.
func (s *scene) plantOtherStart() {
	s.Helper()
	ticks, _, _ := strings.Cut(strings.TrimPrefix(s.claim().Owner.StartKey, "linux:"), "@")
	s.plant("linux:"+ticks+"@", "linux:1"+ticks+"@")
}

// TestPausedRunAfterABreak: the same with a run: the hold keeps everybody else out in spite of the break, and the wrapper
// ends with 124 and changes nothing.
func TestPausedRunAfterABreak(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	first, second := s.world(""), s.world("")
	w := s.run(first.inside(), nil, "sh", "-c", `touch "$OUT/ready"; until test -e "$OUT/go"; do sleep 0.02; done; exit 7`)
	s.await("the command", func() bool { return exists(s.file("ready")) && s.isOpen() })
	pid := s.claim().Owner.PID
	first.kill(pid, unix.SIGSTOP)
	a := s.refused(second.inside(), ownerUncertain)
	a = s.ask(second.inside(), "break", "--dir", s.dir, "--generation", a.Claim.Generation, "--reason", "a test", "--owner-is-gone")
	if a.Code != "broken" {
		t.Fatalf("the break: %s: %s", a.Code, a.Reason)
	}
	s.refused(second.inside(), ownerUncertain)
	s.refused(nil, ownerUncertain)
	before := s.listing()
	first.kill(pid, unix.SIGCONT)
	w.signal(unix.SIGCONT) // nsenter has stopped with its child
	s.touch("go")
	if status := w.end(); status != statusLost {
		t.Errorf("the status is %d: %s", status, w.stderr())
	}
	if a := w.refusal(); a.Code != generationMismatch || !strings.Contains(w.stderr(), "status 124 is fencectl's own") {
		t.Errorf("%s: %s", a.Code, w.stderr())
	}
	s.same("the end of the run", before)
	s.admitted(second.inside())
}

// TestRunIsNotReclaimedByItsStartKeyAlone: the hold keeps a run's directory, whatever the claim says of its process.
func TestRunIsNotReclaimedByItsStartKeyAlone(t *testing.T) {
	s := newScene(t)
	w := s.run(nil, nil, "sh", "-c", `touch "$OUT/ready"; until test -e "$OUT/go"; do sleep 0.02; done; exit 7`)
	s.await("the command", func() bool { return exists(s.file("ready")) && s.isOpen() })
	s.plantOtherStart()
	s.names(s.refused(nil, ownerUncertain), w.cmd.Process.Pid)
	s.plant("@"+bootOf(s.claim()), "@6f1d8e4a-4a8b-4bd1-9a57-0d0d5c0c7d3e")
	s.names(s.refused(nil, ownerUncertain), w.cmd.Process.Pid)
	s.touch("go")
	w.end()
}

// names fails unless the refusal says that the hold is taken, and that this process has it open.
func (s *scene) names(a answer, pid int) {
	s.Helper()
	if a.Hold == nil || a.Hold.State != "held" {
		s.Errorf("the hold is %+v", a.Hold)
		return
	}
	for _, opener := range a.Hold.Openers {
		if opener == pid {
			return
		}
	}
	s.Errorf("the hold is open in %v, and %d is not said", a.Hold.Openers, pid)
}
