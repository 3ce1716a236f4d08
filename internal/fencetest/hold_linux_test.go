package fencetest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// stay is what the grandchildren do: it says that it has started, and stays until it is told to end.
const stay = `sh -c 'touch "$OUT/started"; until test -e "$OUT/end"; do sleep 0.02; done'`

// orphaned are commands that leave a grandchild behind wherever it goes, and stay themselves, as "sleep 1000".
var orphaned = map[string]string{
	"a session of its own":   `setsid ` + stay + ` &`,
	"forked twice":           `setsid sh -c "(` + strings.ReplaceAll(strings.ReplaceAll(stay, `"`, `\"`), "$", `\$`) + ` &) & exit"`,
	"a pid namespace":        `setsid -f unshare -p -f --kill-child -- ` + stay,
	"a mount namespace":      `setsid -f unshare -m -- ` + stay,
	"with nothing else open": `setsid -f ` + stay + ` <&- >&- 2>&-`,
}

// orphan runs a command there that leaves a grandchild, and kills the wrapper: then the command is gone and the grandchild is
// not.
func (s *scene) orphan(from side, kill func(pid int), command string) {
	s.Helper()
	script := command + `
until test -e "$OUT/started"; do sleep 0.02; done; exec sleep 1000`
	w := s.run(from, nil, "sh", "-c", script, script)
	s.await("the command", func() bool { return s.running("sleep", "1000") == 1 && s.isOpen() })
	kill(s.claim().Owner.PID)
	if status := w.end(); status != 128+int(unix.SIGKILL) {
		s.Errorf("the wrapper's status is %d: %s", status, w.stderr())
	}
	s.await("the end of the command", func() bool { return s.running("sleep", "1000") == 0 })
}

// running counts the scene's processes that run exactly this.
func (s *scene) running(argv ...string) (n int) {
	for _, pid := range s.id.Processes() {
		words, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if string(words) == strings.Join(argv, "\x00")+"\x00" {
			n++
		}
	}
	return n
}

// TestGrandchildKeepsTheDirectory: the wrapper is killed. While a grandchild runs, wherever it has gone, nobody is admitted,
// from wherever; once it is gone anybody is, although most of them see nothing of the owner.
func TestGrandchildKeepsTheDirectory(t *testing.T) {
	needWorlds(t)
	for name, command := range orphaned {
		for _, inside := range []bool{false, true} {
			where := map[bool]string{false: "here", true: "inside"}[inside]
			t.Run(name+"/"+where, func(t *testing.T) {
				s := newScene(t)
				sibling := s.world("elsewhere").inside()
				from, nested, kill := side(nil), apart, func(pid int) { s.must(unix.Kill(pid, unix.SIGKILL)) }
				if inside {
					w := s.world("")
					from, nested, kill = w.inside(), w.nested(), func(pid int) { w.kill(pid, unix.SIGKILL) }
				}
				s.orphan(from, kill, command)
				a := s.refused(from, ownerUncertain)
				if a.Hold == nil || len(a.Hold.Openers) == 0 || !strings.Contains(a.Reason, "(open in pid ") {
					t.Errorf("the refusal does not name what has the hold open: %+v: %s", a.Hold, a.Reason)
				}
				for _, p := range []side{nested, sibling, nil} {
					s.refused(p, ownerUncertain)
					if a := s.show(p); a.Hold.State != "held" {
						t.Errorf("by way of %q the hold is %s", p, a.Hold.State)
					}
				}
				s.touch("end")
				for _, p := range []side{nil, from, nested, sibling} {
					s.eventually(p, dead)
				}
				s.admitted(sibling)
			})
		}
	}
}

// TestHoldNamesItsOwnerOnly: a free hold proves nothing of an owner whose it is not.
func TestHoldNamesItsOwnerOnly(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	sibling := s.world("").inside()
	if status := s.run(nil, nil, "true").end(); status != 0 {
		t.Fatalf("the status is %d", status)
	}
	s.owner(nil)
	s.verdict(nil, live)
	if a := s.verdict(sibling, uncertain); a.Hold == nil || a.Hold.State != "free" {
		t.Errorf("the hold is %+v", a.Hold)
	}
	s.refused(sibling, ownerUncertain)
}

// findHold is for bash: it puts the number of the hold's descriptor into n.
const findHold = `for fd in /proc/$$/fd/*; do if [[ $(readlink $fd) == */entwurf-owner.hold ]]; then n=${fd##*/}; fi; done; `

// TestClosingTheHoldGivesItUp: a child that closes the inherited descriptor is not protected. While the wrapper lives that
// changes nothing. When it is killed, what runs on without the descriptor keeps nobody out.
func TestClosingTheHoldGivesItUp(t *testing.T) {
	needWorlds(t)
	testkit.NeedTool(t, "bash")
	s := newScene(t)
	sibling := s.world("").inside()
	w := s.run(nil, nil, "bash", "-c", findHold+`exec {n}>&-; setsid -f `+stay+`; until test -e "$OUT/started"; do sleep 0.02; done; exec sleep 1000`)
	s.await("the command", func() bool { return s.running("sleep", "1000") == 1 && s.isOpen() })
	s.refused(nil, ownerLive)
	s.refused(sibling, ownerUncertain)
	w.kill()
	s.eventually(sibling, dead)
	s.admitted(nil)
	if exists(s.file("end")) || len(s.id.Processes()) == 0 {
		t.Error("the grandchild had ended before the admission")
	}
}

// TestUnlockingTheHold: a child that gives up the lock itself, on the descriptor that it shares with the wrapper, changes nothing
// while the wrapper lives, which has a lock of its own: not even for those who cannot see it.
func TestUnlockingTheHold(t *testing.T) {
	needWorlds(t)
	testkit.NeedTool(t, "bash")
	s := newScene(t)
	sibling := s.world("").inside()
	w := s.run(nil, nil, "bash", "-c", findHold+`flock -u $n; `+untilEnd)
	s.await("the command", func() bool { return exists(s.file("started")) && s.isOpen() })
	if a := s.refused(nil, ownerLive); a.Hold == nil || a.Hold.State != "held" {
		t.Errorf("the hold is %+v", a.Hold)
	}
	if a := s.refused(sibling, ownerUncertain); a.Hold == nil || a.Hold.State != "held" {
		t.Errorf("from another namespace the hold is %+v", a.Hold)
	}
	s.touch("end")
	w.ends(7, "closed", "closed")
}

// TestDescriptors: beside what it would have without fencectl, the command has the hold, and nothing else; what was given to it
// under a number of its own it finds there.
func TestDescriptors(t *testing.T) {
	testkit.NeedTool(t, "bash")
	s := newScene(t)
	const script = `exec 3<"$0"; exec "$@" bash -c 'cat <&3; for fd in /proc/$$/fd/*; do [[ ${fd##*/} -gt 3 ]] && readlink $fd; done; exit 0'`
	s.must(os.WriteFile(s.file("three"), []byte("three\n"), 0o644))
	plain, err := s.command("bash", "-c", script, s.file("three"), "env").Output()
	s.must(err)
	under, err := s.command("bash", "-c", script, s.file("three"), "fencectl", "run", "--dir", s.dir, "--").Output()
	s.must(err)
	// The order is that of the numbers, so that the hold's place says nothing.
	want := strings.Split(string(plain)+s.dir+"/entwurf-owner.hold\n", "\n")
	if got := strings.Split(string(under), "\n"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) || got[0] != "three" {
		t.Errorf("it has %q, want %q", got, want)
	}
}

// TestScriptsNumbersAreFree: a command that uses the numbers that scripts use does not lose the hold by it.
func TestScriptsNumbersAreFree(t *testing.T) {
	s := newScene(t)
	s.orphan(nil, func(pid int) { s.must(unix.Kill(pid, unix.SIGKILL)) },
		"exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec 3>&1; "+orphaned["a session of its own"])
	s.refused(nil, ownerUncertain)
	s.touch("end")
	s.eventually(nil, dead)
}
