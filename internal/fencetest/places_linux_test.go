package fencetest

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// seen is what one side sees of an owner.
type seen struct {
	from        string
	side        side
	alive, gone string // the verdict
}

// either is the verdict from a pid namespace that is made after the owner's has gone: when it has got that one's number, its
// pids prove the owner dead.
const either = "dead or uncertain"

// place is where an owner is.
type place struct {
	owner side
	seen  []seen // the last one admits after the owner's end, if it can
}

// places are the owner's places by name, and how each is seen.
func (s *scene) places() map[string]place {
	first, second := s.world(""), s.world("")
	named := s.world("elsewhere")
	covered := s.bootCovered()
	sees := func(from string, p side, alive, gone string) seen { return seen{from, p, alive, gone} }
	return map[string]place{
		"the usual place": {nil, []seen{
			sees("a pid namespace", first.inside(), uncertain, uncertain),
			sees("a pid namespace of another host name", named.inside(), uncertain, uncertain),
			sees("a renamed host", otherName, live, dead),
			sees("a later boot time", timeApart("864000"), live, dead),
			sees("an earlier boot time", timeApart("-1"), live, dead),
			sees("a covered boot id", covered, uncertain, uncertain),
			sees("hidepid=1", hidden("1"), uncertain, dead),
			sees("hidepid=2", hidden("2"), uncertain, dead),
			sees("the same place", nil, live, dead),
		}},
		"a pid namespace": {first.inside(), []seen{
			sees("the initial one", nil, live, dead),
			sees("itself", first.inside(), live, dead),
			sees("one nested in it", first.nested(), uncertain, uncertain),
			sees("hidepid=2", hidden("2"), uncertain, uncertain),
			sees("its sibling", second.inside(), uncertain, uncertain),
		}},
		"a pid namespace of another host name": {named.inside(), []seen{
			sees("itself", named.inside(), live, dead),
			sees("one nested in it", named.nested(), uncertain, uncertain),
			sees("its sibling", second.inside(), uncertain, uncertain),
			sees("the initial one", nil, live, dead),
		}},
		"a nested pid namespace": {first.nested(), []seen{
			sees("the initial one", nil, live, dead),
			sees("its sibling", first.nested(), uncertain, either),
			sees("the one that it is nested in", first.inside(), uncertain, uncertain),
		}},
		"the first process of a pid namespace": {apart, []seen{
			sees("its sibling", apart, uncertain, either),
			sees("the initial one", nil, live, dead),
		}},
		"a renamed host": {otherName, []seen{
			sees("a pid namespace", first.inside(), uncertain, uncertain),
			sees("the usual place", nil, live, dead),
		}},
		"a time namespace": {timeApart("1000"), []seen{
			sees("another one", timeApart("-1"), live, dead),
			sees("the same one", timeApart("1000"), live, dead),
			sees("none", nil, live, dead),
		}},
		"a covered boot id": {covered, []seen{
			sees("the same", covered, live, uncertain),
			sees("a pid namespace", first.inside(), uncertain, uncertain),
			sees("the usual place", nil, live, uncertain),
		}},
	}
}

// TestNeverTwoOwners: wherever an owner is and whoever asks, an admission is refused while it lives; the verdict is the
// same word from show and from the admission; and only a dead one is taken over.
func TestNeverTwoOwners(t *testing.T) {
	needWorlds(t)
	for _, name := range []string{
		"the usual place", "a pid namespace", "a pid namespace of another host name", "a nested pid namespace",
		"the first process of a pid namespace", "a renamed host", "a time namespace", "a covered boot id",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			p := s.places()[name]
			owner := s.owner(p.owner)
			for _, v := range p.seen {
				s.verdict(v.side, v.alive)
				s.refused(v.side, "owner-"+v.alive)
			}
			owner.End(t)
			for _, v := range p.seen {
				if v.gone == either {
					if a := s.show(v.side); a.Verdict != dead && a.Verdict != uncertain {
						t.Errorf("from %s the owner is %s", v.from, a.Verdict)
					}
					continue
				}
				s.verdict(v.side, v.gone)
				if v.gone == uncertain {
					s.refused(v.side, ownerUncertain)
				}
			}
			if last := p.seen[len(p.seen)-1]; last.gone == dead {
				a := s.admitted(last.side)
				if a.Claim.ReclaimedFrom == nil || a.Claim.ReclaimedFrom.State != "fenced" {
					t.Errorf("the claim says %+v", a.Claim)
				}
			}
		})
	}
}

// hereAndInside runs a test with an owner in the test's own pid namespace, and with one in a world.
func hereAndInside(t *testing.T, test func(s *scene, from side, kill func(pid int))) {
	needWorlds(t)
	t.Run("here", func(t *testing.T) {
		s := newScene(t)
		test(s, nil, func(pid int) { s.must(unix.Kill(pid, unix.SIGKILL)) })
	})
	t.Run("inside", func(t *testing.T) {
		s := newScene(t)
		w := s.world("")
		test(s, w.inside(), func(pid int) { w.kill(pid, unix.SIGKILL) })
	})
}

// TestAZombieIsDead and keeps nobody out, also seen from outside its pid namespace.
func TestAZombieIsDead(t *testing.T) {
	// The parent never waits: cat in the place of the shell.
	const script = `sh -c 'fencectl admit --dir "$D" --owner-pid $$ --ticket "$OUT/ticket" >/dev/null; echo admitted; exec sleep 1000' & exec cat`
	hereAndInside(t, func(s *scene, from side, kill func(pid int)) {
		testkit.Begin(s.T, s.command(from.words("sh", "-c", script)...))
		s.refused(from, ownerLive)
		s.refused(apart, ownerUncertain)
		kill(s.claim().Owner.PID)
		a := s.eventually(from, dead)
		if !strings.Contains(a.VerdictReason, "zombie") {
			s.Errorf("the reason is %q", a.VerdictReason)
		}
		s.verdict(nil, dead)
		s.refused(apart, ownerUncertain)
		s.admitted(from)
	})
}

// TestAThreadOutlivesTheLeader: a process whose first thread has ended looks like a zombie, and lives.
func TestAThreadOutlivesTheLeader(t *testing.T) {
	const script = `fencectl admit --dir "$D" --owner-pid $$ --ticket "$OUT/ticket" >/dev/null && exec leaderless`
	hereAndInside(t, func(s *scene, from side, _ func(pid int)) {
		cmd := s.command(from.words("sh", "-c", script)...)
		in, err := cmd.StdinPipe()
		s.must(err)
		out, err := cmd.StdoutPipe()
		s.must(err)
		s.must(cmd.Start())
		expectLine(s, out, "ready")
		_, err = in.Write([]byte("x"))
		s.must(err)
		expectLine(s, out, "gone")
		s.verdict(nil, live)
		s.refused(from, ownerLive)
		s.refused(apart, ownerUncertain)
		s.must(in.Close())
		_ = cmd.Wait()
		s.eventually(from, dead)
		s.verdict(nil, dead)
		s.admitted(from)
	})
}

// TestAnotherBoot: a claim from another boot is dead on a local filesystem, whoever has its pid now and whatever the host is
// called; a weak key is of no boot that is known.
func TestAnotherBoot(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	w := s.world("elsewhere")
	for _, from := range []side{nil, w.inside(), otherName} {
		owner := s.owner(nil)
		s.plant("@"+bootOf(s.claim()), "@6f1d8e4a-4a8b-4bd1-9a57-0d0d5c0c7d3e")
		s.verdict(from, dead)
		s.admitted(from)
		owner.End(t)
		s.must(os.Remove(s.file("owner.ticket")))
	}
	owner := s.owner(nil)
	s.plant("@"+bootOf(s.claim()), "@?")
	s.verdict(nil, live)
	s.refused(nil, ownerLive)
	s.refused(w.inside(), ownerUncertain)
	owner.End(t)
	s.refused(nil, ownerUncertain)
}

// bootOf is the boot id in a claim's start key.
func bootOf(c *claim) string {
	_, rest, _ := strings.Cut(c.Owner.StartKey, "@")
	boot, _, _ := strings.Cut(rest, "/")
	return boot
}

// expectLine waits for a line of a program.
func expectLine(s *scene, out io.Reader, want string) {
	s.Helper()
	line, err := bufio.NewReaderSize(out, 16).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		s.Fatalf("%q, %v, want %q", line, err, want)
	}
}
